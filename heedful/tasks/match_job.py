"""Training a model that matches pictures and texts: from a recipe and its pairs to a tokenizer and the model's
configuration."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.augment import AUGMENTS
from heedful.data.captions import CaptionedImages, read_captioned
from heedful.data.images import Preparation, survey
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models.clip import CLIPConfig
from heedful.models.vision_presets import PAIRS, two_towers
from heedful.tasks.card import data_facts
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.match import LARGEST_SCALE, About, Layout, Matcher, MatchTask, lowered
from heedful.tasks.picture_job import augment_of, begin_from, fitted, picture_card, read_start
from heedful.tasks.recipe import Recipe, row_of

SHOWN = 8  # pictures of a sample
MEASURED = ("text_to_image_recall_10", "image_to_text_recall_10")


class MatchJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, knows its tokenizer and what it was started
    from. All pictures are read once, so that what is wrong with one is said before anything is trained. Raises
    InputError."""

    def __init__(self, recipe: Recipe, corpus: CaptionedImages | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .csv with the columns image,text, or a folder")
        self.start = read_start(recipe, begun, CLIPConfig, About)
        channels = recipe.images.channels if self.start is None else self.start.about.preparation.channels
        self.corpus = corpus = corpus or read_captioned(data.path, channels=channels)
        if len(corpus.train) < 2:
            raise InputError("one picture alone, expected at least two to tell apart", where=corpus.name)
        found = survey(corpus.train.images)
        for part in (corpus.valid, *corpus.tests.values()):
            survey(part.images)
        texts = [text for own in corpus.train.captions for text in own]
        known = Path(recipe.start_from) if begun is None and recipe.start_from else begun
        tokenizers = None if known is None else read_tokenizers(known)
        self.tokenizer = _learnt(recipe, texts) if tokenizers is None else tokenizers[0]
        if self.start is None:
            seen = Preparation(channels=corpus.channels, mean=found.mean, std=found.std)
            self.config, self.about = _made_for(corpus, recipe, seen, self.tokenizer)
        else:
            self.config, self.about = self.start
            if recipe.images.size not in (None, self.about.preparation.size[0]):
                raise InputError("images.size cannot be chosen: the model is that of another run", fix="leave it out")
        self.layout = _layout(self.tokenizer, self.about, self.config)
        self.layout.encode(texts)
        self.notes = list(corpus.notes)
        if self.layout.cut:
            self.notes.append(
                f"{self.layout.cut:,} texts are longer than {self.layout.context - 2} tokens, and lose their end"
            )
        if recipe.train.accumulate > 1:
            self.notes.append(f"pictures are told from the others of their batch of {recipe.images.batch} alone")
        self.fingerprint = hashlib.sha256(repr((found.fingerprint, corpus.train.captions)).encode()).hexdigest()
        self.tokenizer_hash = self.tokenizer.fingerprint
        self.score_names: tuple[str, ...] = MEASURED

    def describe(self) -> str:
        rows, columns = self.about.preparation.size
        texts = sum(map(len, self.corpus.train.captions))
        return f"{len(self.corpus.train):,} pictures with {texts:,} texts, {rows} x {columns} pixels"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        corpus = self.corpus
        parts = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
        own = {
            "texts": {name: sum(map(len, part.captions)) for name, part in parts.items()},
            "preparation": to_json(self.about.preparation),
            "vocabulary": self.tokenizer.size,
            "fingerprint": self.fingerprint,
            "notes": self.notes,
        }
        return data_facts(corpus, "pictures") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start is not None:
            begin_from(self.recipe.start_from, model)

    def task(self, model: Any) -> MatchTask:
        augment = augment_of(self.recipe.images, AUGMENTS)
        layout = _layout(self.tokenizer, self.about, self.config)
        return MatchTask(self.corpus.train, self.about, layout, augment, self.recipe)

    def measure(self, model: Any) -> Measured:
        matcher = Matcher(model, self.tokenizer, self._task())
        found = matcher.evaluate(self.corpus.valid)
        loss, sample = found.pop("loss"), matcher.sample(self.corpus.valid, SHOWN)
        return Measured(loss, {name: found[name] for name in MEASURED}, sum(found.values()), sample)

    def write(self, folder: Path, model: Any) -> None:
        """A temperature that its last step has brought too low is what all losses took it for."""
        tensors = parameters(model)
        tensors["log_scale"] = tensors["log_scale"].clamp(max=LARGEST_SCALE)
        write_run(folder, model, tensors, self.tokenizer, self.tokenizer, self._task())

    def finish(self, folder: Path, device: str) -> Scores:
        best = Matcher.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(part) for name, part in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return picture_card(
            folder,
            self.recipe,
            scores,
            what="Says which texts belong to a picture, and which pictures to a text. Recall at k: how often one that "
            f"belongs to it is among the best k, of {self._sizes()}. Its probabilities are not calibrated, and say "
            "nothing of texts that were not asked for.",
            trained=f"{self.describe()}, from `{self.corpus.name}`",
            preparation=self.about.preparation,
            kept=f"step {best['step']:,}, the best on the validation pictures by the sum of all recalls (text to image "
            f"recall 10: {best[MEASURED[0]]:.4f})",
            minutes=minutes,
            use=[f'heed match {folder} PICTURE.png --text "one thing" --text "another"'],
            notes=self.notes,
        )

    def _sizes(self) -> str:
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return ", ".join(f"{len(part):,} pictures in {name}" for name, part in sets.items())

    def _task(self) -> dict[str, object]:
        return {"task": "match", **to_json(self.about)}


def _learnt(recipe: Recipe, texts: list[str]) -> Tokenizer:
    return train_tokenizer(map(lowered, texts), kind=recipe.data.tokenizer, size=recipe.data.vocab_size)


def _layout(tokenizer: Tokenizer, about: About, config: CLIPConfig) -> Layout:
    text = config.text
    return Layout(tokenizer, lower=about.lower, context=text.embed.places.size, end=text.end)


def _made_for(
    corpus: CaptionedImages, recipe: Recipe, seen: Preparation, tokenizer: Tokenizer
) -> tuple[CLIPConfig, About]:
    """A new model for pictures of this size."""
    row, size = fitted(row_of(PAIRS, recipe), recipe, corpus.size)
    config = two_towers(row, vocab_size=tokenizer.size, end=tokenizer.eos, size=(size, size), channels=corpus.channels)
    return config, About(preparation=replace(seen, resize=(size,), crop=(size, size)))
