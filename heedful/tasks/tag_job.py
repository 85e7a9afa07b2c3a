"""Training a tagger of words, from scratch or from an encoder: from a recipe and its sentences to a tokenizer, token
ids and the model's configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.parts import Parts
from heedful.data.tagged import Sentence, read_tagged
from heedful.errors import InputError
from heedful.models.encoder import EncoderConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.tasks.body import copy_body, read_body
from heedful.tasks.card import data_facts, fingerprint, model_card, origin, score_table
from heedful.tasks.folder import parameters, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.metrics import has_spans
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import read_start
from heedful.tasks.tag import About, Layout, Tagger, TagTask, labelled

SHOWN = 8  # sentences of a sample


class TagJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: Parts[Sentence] | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .conllu or .tsv file, or a folder of such")
        self.corpus = corpus = corpus or read_tagged(data.path)
        self.start = read_start(recipe, begun, "fill", "encode")
        texts = [one.text for one in corpus.train]
        self.tokenizer, body = read_body(recipe, texts, begun, self.start, pooler=False)
        assert isinstance(body, EncoderConfig)  # presets and starts are no others
        labels = tuple(sorted({label for one in corpus.train for label in one.labels}))
        self.about = {"task": "tag", **to_json(About(labels=labels))}
        self.config = TokenClassifierConfig(encoder=body, answers=len(labels))
        layout = Layout(self.tokenizer, body.embed.places.size)
        self.examples = labelled(layout, corpus.train, labels)
        self.notes = list(corpus.notes)
        if layout.parted:
            self.notes.append(f"{layout.parted:,} sentences are too long for the model, and read in parts")
        others = [one for part in (corpus.valid, *corpus.tests.values()) for one in part]
        if new := {label for one in others for label in one.labels} - {*labels}:
            self.notes.append(f"labels that no training word has, and which are never right: {', '.join(sorted(new))}")
        self.fingerprint = fingerprint(map(repr, corpus.train))
        self.tokenizer_hash = self.tokenizer.fingerprint
        self.rank = "span_f1" if has_spans(labels) else "accuracy"
        self.score_names: tuple[str, ...] = (self.rank,)

    def describe(self) -> str:
        words = sum(len(one.words) for one in self.corpus.train)
        sizes = f"{len(self.corpus.train):,} sentences, {words:,} words of {self.config.answers} labels"
        return f"{sizes}, {self.tokenizer.size:,} tokens in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        own = {"labels": self.about["labels"], "fingerprint": self.fingerprint, "vocabulary": self.tokenizer.size}
        started = self.start.facts() if self.start else {}
        return data_facts(self.corpus, "sentences") | own | {"notes": self.notes} | started

    def begin(self, model: Any) -> None:
        """The encoder's weights; the linear map stays as it is."""
        if self.start:
            copy_body(model.encoder, self.recipe.start_from)

    def task(self, model: Any) -> TagTask:
        return TagTask(self.examples, self.recipe.train)

    def measure(self, model: Any) -> Measured:
        tagger, valid = Tagger(model, self.tokenizer, self.about), self.corpus.valid
        scores = tagger.evaluate(valid)
        found = tagger.tag_words([one.words for one in valid[:SHOWN]])
        sample = "".join(" ".join(f"{word.word}/{word.label}" for word in words) + "\n" for words in found)
        return Measured(scores.pop("loss"), scores, scores[self.rank], sample)

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self.about)

    def finish(self, folder: Path, device: str) -> Scores:
        best = Tagger.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(sentences) for name, sentences in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return model_card(
            folder,
            what=f"Labels the words of sentences. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} sentences, from `{self.corpus.name}`. Labels: "
            f"{', '.join(self.about['labels'])}.",
            table=score_table("sentences", scores),
            how=f"Loss is in nats a word. The model reads {self.config.encoder.embed.places.size} tokens at a time.",
            kept=f"step {best['step']:,}, the best on the validation sentences ({self.rank} {best[self.rank]:.4f})",
            minutes=minutes,
            use=[f'heed tag {folder} "words of a sentence"', f"heed eval {folder} --data more.tsv"],
            limits="It has seen only the sentences above: on others expect worse than the table says. A text given to "
            "`heed tag` is parted at blanks alone; where the words above were parted otherwise (a full stop from its "
            "word), part it so.",
            notes=self.corpus.notes,
        )
