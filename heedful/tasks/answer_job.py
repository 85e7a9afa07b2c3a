"""Training answers to questions, from scratch or from an encoder: from a recipe and its questions to a tokenizer, token
ids and the model's configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.parts import Parts
from heedful.data.questions import Question, read_questions
from heedful.errors import InputError
from heedful.models.encoder import EncoderConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.tasks.answer import About, Answerer, AnswerTask, Layout
from heedful.tasks.body import copy_body, read_body
from heedful.tasks.card import data_facts, fingerprint, model_card, origin, score_table
from heedful.tasks.folder import parameters, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import read_start

SHOWN = 8  # questions of a sample


class AnswerJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    score_names: tuple[str, ...] = ("exact_match", "f1")

    def __init__(self, recipe: Recipe, corpus: Parts[Question] | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .json or .jsonl file, or a folder of such")
        self.corpus = corpus = corpus or read_questions(data.path)
        self.start = read_start(recipe, begun, "fill", "encode")
        texts = [one.question for one in corpus.train] + [*dict.fromkeys(one.context for one in corpus.train)]
        self.tokenizer, body = read_body(recipe, texts, begun, self.start, pooler=False)
        assert isinstance(body, EncoderConfig)  # presets and starts are no others
        self.about: dict[str, Any] = {"task": "answer", **to_json(_about(recipe, corpus))}
        self.config = TokenClassifierConfig(encoder=body, answers=2, dropout=0.0)
        layout = Layout(self.tokenizer, body.embed.places.size)
        self.windows = [window for own in layout.encode(corpus.train) for window in own]
        self.notes = list(corpus.notes)
        self.fingerprint = fingerprint(map(repr, corpus.train))
        self.tokenizer_hash = self.tokenizer.fingerprint

    def describe(self) -> str:
        sizes = f"{len(self.corpus.train):,} questions in {len(self.windows):,} windows"
        return f"{sizes}, {self.tokenizer.size:,} tokens in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        own = {"windows": len(self.windows), "fingerprint": self.fingerprint, "vocabulary": self.tokenizer.size}
        started = self.start.facts() if self.start else {}
        return data_facts(self.corpus, "questions") | own | {"notes": self.notes} | started

    def begin(self, model: Any) -> None:
        """The encoder's weights; the linear map stays as it is."""
        if self.start:
            copy_body(model.encoder, self.recipe.start_from)

    def task(self, model: Any) -> AnswerTask:
        return AnswerTask(self.windows, self.recipe.train)

    def measure(self, model: Any) -> Measured:
        answerer, shown = Answerer(model, self.tokenizer, self.about), self.corpus.valid[:SHOWN]
        scores = answerer.evaluate(self.corpus.valid)
        found = answerer.answer([one.question for one in shown], [one.context for one in shown])
        sample = "".join(f"{one.question}\n    {best.text}\n" for one, (best, *_) in zip(shown, found, strict=True))
        return Measured(scores.pop("loss"), scores, scores["f1"], sample)

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self.about)

    def finish(self, folder: Path, device: str) -> Scores:
        best = Answerer.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(questions) for name, questions in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return model_card(
            folder,
            what=f"Answers questions by a stretch of a text. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} questions, from `{self.corpus.name}`.",
            table=score_table("questions", scores),
            how="Exact matches and F1 are SQuAD's, from 0 to 1: case, punctuation and articles aside. Loss is in nats "
            f"a window of {self.config.encoder.embed.places.size} tokens.",
            kept=f"step {best['step']:,}, the best on the validation questions (F1 {best['f1']:.4f})",
            minutes=minutes,
            use=[f'heed answer {folder} "A question?" --context text.txt', f"heed eval {folder} --data more.json"],
            limits="It always finds something, right or wrong"
            + (", or says that the text does not tell." if self.about["unanswerable"] else ".")
            + " It has seen only the questions above: on others expect worse than the table says.",
            notes=self.corpus.notes,
        )


def _about(recipe: Recipe, corpus: Parts[Question]) -> About:
    unanswerable = any(not one.answers for one in corpus.train)
    return About(longest=recipe.answer.longest, unanswerable=unanswerable)
