"""Training a segmenter, from scratch or from another's weights: from a recipe and its masks to a model's
configuration."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.images import Preparation, survey
from heedful.data.masks import MaskedImages, MaskedPart, read_masked_images
from heedful.errors import InputError
from heedful.models.pyramid import PyramidConfig
from heedful.models.vision_presets import SEGMENTERS, segmenter
from heedful.tasks.folder import parameters, write_model
from heedful.tasks.job import Measured, Scores
from heedful.tasks.picture_job import begin_from, make_viewer, picture_card, read_start, view_size
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.segment import About, Segmenter, SegmentTask

TOLD = ("loss", "miou", "pixel_accuracy")


class SegmentJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, knows what it was started from. All pictures
    and masks are read once, so that what is wrong with one is said before anything is trained. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: MaskedImages | None = None, begun: Path | None = None) -> None:
        self.recipe = recipe
        if corpus is None and not recipe.data.path:
            raise InputError("no data was given", fix="--data PATH: a folder with images/ and masks/, or shapes")
        self.start = read_start(recipe, begun, PyramidConfig, About)
        channels = recipe.images.channels if self.start is None else self.start.about.preparation.channels
        self.corpus = corpus = corpus or read_masked_images(recipe.data.path, channels=channels)
        classes, size = corpus.classes, view_size(corpus.size, recipe.images.size)
        found = survey(corpus.train.images)
        masks = _read(corpus.train)
        for part in (corpus.valid, *corpus.tests.values()):
            survey(part.images)
            _read(part)
        if self.start is None:
            row = row_of(SEGMENTERS, recipe)
            self.config = segmenter(row, n_classes=len(classes.labels), channels=corpus.channels)
            seen = Preparation(channels=corpus.channels, resize=size, mean=found.mean, std=found.std)
        else:
            self.config, seen = (
                replace(self.start.config, n_classes=len(classes.labels)),
                self.start.about.preparation,
            )
            if recipe.images.size is not None or len(seen.resize) != 2:
                seen = replace(seen, resize=size, longest=None)
        self.about = About(classes=classes, preparation=seen)
        self.viewer = make_viewer(corpus.train.images, seen, recipe)
        self.notes = list(corpus.notes)
        self.fingerprint = hashlib.sha256(f"{found.fingerprint} {masks}".encode()).hexdigest()
        self.tokenizer_hash = ""
        self.score_names: tuple[str, ...] = ("miou",)

    def describe(self) -> str:
        rows, columns = self.about.preparation.size
        return f"{len(self.corpus.train):,} pictures, {len(self.about.labels)} classes, {rows} x {columns} pixels"

    def tokenizers(self) -> dict[str, bytes]:
        return {}

    def facts(self) -> dict[str, object]:
        corpus = self.corpus
        parts = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
        return {
            "pictures": {name: len(part) for name, part in parts.items()},
            "classes": to_json(corpus.classes),
            "preparation": to_json(self.about.preparation),
            "fingerprint": self.fingerprint,
            "notes": self.notes,
        } | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        """The weights that are started from; the map to classes stays new unless the labels are the same."""
        if self.start is not None:
            same = self.start.about.labels == self.about.labels
            begin_from(self.recipe.start_from, model, new=() if same else ("head.out",))

    def task(self, model: Any) -> SegmentTask:
        return SegmentTask(self.corpus.train, self.viewer)

    def measure(self, model: Any) -> Measured:
        scores = Segmenter(model, self._task()).evaluate(self.corpus.valid)
        loss = scores.pop("loss")
        sample = "".join(f"{name}: {value:.4f}\n" for name, value in scores.items())
        return Measured(loss, scores, scores["miou"], sample)

    def write(self, folder: Path, model: Any) -> None:
        write_model(folder, model, parameters(model), {"task.json": self._task()})

    def finish(self, folder: Path, device: str) -> Scores:
        best = Segmenter.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(part) for name, part in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return picture_card(
            folder,
            self.recipe,
            {test: {name: each[name] for name in TOLD} for test, each in scores.items()},
            what=f"Says what every pixel of a picture belongs to: {', '.join(self.about.labels)}.",
            trained=f"{len(self.corpus.train):,} pictures from `{self.corpus.name}`",
            preparation=self.about.preparation,
            kept=f"step {best['step']:,}, the best on the validation pictures (mean IoU {best['miou']:.4f})",
            minutes=minutes,
            use=[f"heed segment {folder} PICTURE.png --out MASKS", f"heed eval {folder} --data MORE"],
            notes=self.notes,
        )

    def _task(self) -> dict[str, object]:
        return {"task": "segment", **to_json(self.about)}


def _read(part: MaskedPart) -> str:
    """Every mask, and the sha256 of all. Raises InputError for one that cannot be read, or has a number that is no
    class."""
    digest = hashlib.sha256()
    for index in range(len(part)):
        digest.update(part.masks[index].contiguous().numpy().tobytes())
    return digest.hexdigest()
