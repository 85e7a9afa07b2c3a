"""Training a classifier of texts, from scratch, from a language model or from an encoder: from a recipe and its
examples to a tokenizer, token ids and the model's configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from heedful.core.config import to_json
from heedful.data.labelled import Example, Labelled, read_labelled
from heedful.errors import InputError
from heedful.models.classifier import ClassifierConfig
from heedful.models.lm import LMConfig
from heedful.tasks.body import copy_body, read_body
from heedful.tasks.card import data_facts, fingerprint, model_card, origin, score_table
from heedful.tasks.classify import About, ClassifyTask, Layout, TextClassifier
from heedful.tasks.folder import parameters, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import read_start

RANKS = {"label": "accuracy", "choice": "accuracy", "score": "spearman", "labels": "micro_f1"}
SHOWN = 8  # examples of a sample
AUXILIARY = 0.5  # where a recipe says nothing, of a language model (Radford et al. 2018, section 4.1)


class ClassifyJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: Labelled | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .jsonl, .tsv or .csv file, or a folder of such")
        self.corpus = corpus = corpus or read_labelled(data.path)
        self.start = read_start(recipe, begun, "generate", "fill", "encode")
        self.tokenizer, body = read_body(recipe, _texts(corpus.train), begun, self.start, pooler=True)
        self.about = _about(corpus, symmetric=recipe.classify.symmetric)
        answers = {"choice": None, "score": 1}.get(corpus.answer, len(self.about.labels))
        layout = Layout(self.tokenizer, self.about, body)
        if isinstance(body, LMConfig):
            grown = replace(body, embed=replace(body.embed, vocab_size=layout.tokens))
            self.config, auxiliary = ClassifierConfig(lm=grown, answers=answers), AUXILIARY
        else:
            self.config, auxiliary = ClassifierConfig(encoder=body, answers=answers), 0.0
            if recipe.classify.auxiliary:
                what = "an encoder cannot go on with texts, which classify.auxiliary is the weight of"
                raise InputError(what, fix="leave out classify.auxiliary")
        self.auxiliary = auxiliary if recipe.classify.auxiliary is None else recipe.classify.auxiliary
        self.examples = layout.encode(corpus.train)
        self.notes = list(corpus.notes)
        if layout.cut:
            self.notes.append(f"{layout.cut:,} sequences of more than {layout.context} tokens lose the end of a text")
        for examples in (corpus.valid, *corpus.tests.values()):
            layout.encode(examples)  # refuses labels that are not learnt, before anything is trained
        self.fingerprint = fingerprint(map(repr, corpus.train))
        self.tokenizer_hash = self.tokenizer.fingerprint
        self.score_names: tuple[str, ...] = (RANKS[corpus.answer],)

    def describe(self) -> str:
        about = self.about
        what = {"score": "scored", "choice": "with choices"}.get(about.answer, f"of {len(about.labels)} labels")
        return f"{len(self.examples):,} examples {what}, {self.tokenizer.size:,} tokens in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        corpus = self.corpus
        own = {
            "answer": corpus.answer,
            "labels": list(self.about.labels),
            "fingerprint": self.fingerprint,
            "vocabulary": self.tokenizer.size,
            "notes": self.notes,
        }
        return data_facts(corpus, "examples") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        """The body's weights; the answers stay as they are."""
        if self.start:
            copy_body(model.lm or model.encoder, self.recipe.start_from)

    def task(self, model: Any) -> ClassifyTask:
        return ClassifyTask(self.examples, self.recipe.train, answer=self.about.answer, auxiliary=self.auxiliary)

    def measure(self, model: Any) -> Measured:
        classifier = TextClassifier(model, self.tokenizer, self._task())
        scores = classifier.evaluate(self.corpus.valid)
        loss = scores.pop("loss")
        shown = self.corpus.valid[:SHOWN]
        found = classifier.classify(
            [one.text for one in shown],
            pairs=[one.pair for one in shown],
            choices=[one.choices for one in shown] if self.about.answer == "choice" else (),
        )
        lines = [
            f"{one.text} {one.pair}\n    {label} {score:.3f}\n"
            for one, ((label, score), *_) in zip(shown, found, strict=True)
        ]
        return Measured(loss, scores, scores[RANKS[self.about.answer]], "".join(lines))

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self._task())

    def finish(self, folder: Path, device: str) -> Scores:
        best = TextClassifier.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(examples) for name, examples in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        rank = RANKS[self.about.answer]
        ask = {"choice": ' --choice "One." --choice "Another."'}.get(self.about.answer, "")
        return model_card(
            folder,
            what=f"Classifies texts. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} examples, from `{self.corpus.name}`."
            + (f" Labels: {', '.join(self.about.labels)}." if self.about.labels else ""),
            table=score_table("texts", scores),
            how=f"Texts are cut to {self.config.body.embed.places.size} tokens.",
            kept=f"step {best['step']:,}, the best on the validation examples ({rank} {best[rank]:.4f})",
            minutes=minutes,
            use=[f'heed classify {folder} "A text."{ask}', f"heed eval {folder} --data more.jsonl"],
            limits="It has seen only the texts above: on others expect worse than the table says. Its probabilities "
            "are not calibrated.",
            notes=self.corpus.notes,
        )

    def _task(self) -> dict[str, object]:
        return {"task": "classify", **to_json(self.about)}


def _texts(examples: Sequence[Example]) -> list[str]:
    return [text for one in examples for text in (one.text, one.pair, *one.choices) if text]


def _about(corpus: Labelled, *, symmetric: bool) -> About:
    match corpus.answer:
        case "label":
            return About(answer="label", labels=tuple(sorted({one.label for one in corpus.train})), symmetric=symmetric)
        case "labels":
            labels = sorted({label for one in corpus.train for label in one.labels})
            return About(answer="labels", labels=tuple(labels), symmetric=symmetric)
        case "score":
            scores = [one.score for one in corpus.train]
            return About(answer="score", mean=fmean(scores), deviation=pstdev(scores) or 1.0, symmetric=symmetric)
        case _:
            return About(answer="choice")
