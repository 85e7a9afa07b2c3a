"""Training a detector, from scratch or from another's weights: from a recipe and its boxes to a model's
configuration."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.boxes import BoxedImages, read_boxed_images, thing_labels
from heedful.data.images import Preparation, survey
from heedful.errors import InputError
from heedful.models.detr import DETRConfig
from heedful.models.vision_presets import DETECTORS, detector
from heedful.tasks.card import data_facts
from heedful.tasks.detect import About, Detector, DetectTask, check_labels, sample
from heedful.tasks.folder import parameters, write_model
from heedful.tasks.job import Measured, Scores
from heedful.tasks.picture_job import begin_from, make_viewer, picture_card, read_start, view_size
from heedful.tasks.recipe import Recipe, row_of

SHOWN = 8  # pictures of a sample
ROOM = 2  # queries a thing of the fullest picture, at least


class DetectJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, knows what it was started from. All pictures
    are read once, so that what is wrong with one is said before anything is trained. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: BoxedImages | None = None, begun: Path | None = None) -> None:
        self.recipe = recipe
        if corpus is None and not recipe.data.path:
            raise InputError("no data was given", fix="--data PATH: a COCO .json file, a folder of such, or shapes")
        self.start = read_start(recipe, begun, DETRConfig, About)
        channels = recipe.images.channels if self.start is None else self.start.about.preparation.channels
        self.corpus = corpus = corpus or read_boxed_images(recipe.data.path, channels=channels)
        labels = thing_labels(corpus.train)
        found = survey(corpus.train.images)
        for part in (corpus.valid, *corpus.tests.values()):
            check_labels(part, labels)
            survey(part.images)
        self.notes = list(corpus.notes)
        most = max(map(len, corpus.train.things))
        size = view_size(corpus.size, recipe.images.size)
        if self.start is None:
            row = row_of(DETECTORS, recipe)
            queries = row.n_queries if "n_queries" in recipe.model else max(row.n_queries, ROOM * most)
            backbone = replace(row.backbone, channels=corpus.channels)
            self.config = detector(replace(row, backbone=backbone), n_classes=len(labels), n_queries=queries)
            seen = Preparation(channels=corpus.channels, resize=size, mean=found.mean, std=found.std)
        else:
            self.config, seen = replace(self.start.config, n_classes=len(labels)), self.start.about.preparation
            if recipe.images.size is not None or len(seen.resize) != 2:
                seen = replace(seen, resize=size, longest=None)
        if most > self.config.n_queries:
            self.notes.append(f"a picture has {most} things, but {self.config.n_queries} queries find no more")
        self.about = About(labels=labels, preparation=seen)
        self.viewer = make_viewer(corpus.train.images, seen, recipe)
        self.fingerprint = hashlib.sha256(repr((found.fingerprint, corpus.train.things)).encode()).hexdigest()
        self.tokenizer_hash = ""
        self.score_names: tuple[str, ...] = ("map", "map50")

    def describe(self) -> str:
        things, (rows, columns) = sum(map(len, self.corpus.train.things)), self.about.preparation.size
        return (
            f"{len(self.corpus.train):,} pictures with {things:,} things of {len(self.about.labels)} labels, "
            f"{rows} x {columns} pixels, {self.config.n_queries} queries"
        )

    def tokenizers(self) -> dict[str, bytes]:
        return {}

    def facts(self) -> dict[str, object]:
        corpus = self.corpus
        parts = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
        own = {
            "things": {name: sum(map(len, part.things)) for name, part in parts.items()},
            "labels": list(self.about.labels),
            "preparation": to_json(self.about.preparation),
            "fingerprint": self.fingerprint,
            "notes": self.notes,
        }
        return data_facts(corpus, "pictures") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        """The weights that are started from; the head that names classes stays new unless the labels are the same."""
        if self.start is not None:
            same = self.start.about.labels == self.about.labels
            begin_from(self.recipe.start_from, model, new=() if same else ("class_head",))

    def task(self, model: Any) -> DetectTask:
        return DetectTask(self.corpus.train, self.about, self.viewer)

    def measure(self, model: Any) -> Measured:
        served = Detector(model, self._task())
        scores = served.evaluate(self.corpus.valid)
        loss = scores.pop("loss")
        found = served.find([self.corpus.valid.images[i] for i in range(min(SHOWN, len(self.corpus.valid)))])
        return Measured(loss, scores, scores["map"], sample(found, self.corpus.valid))

    def write(self, folder: Path, model: Any) -> None:
        write_model(folder, model, parameters(model), {"task.json": self._task()})

    def finish(self, folder: Path, device: str) -> Scores:
        best = Detector.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(part) for name, part in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return picture_card(
            folder,
            self.recipe,
            scores,
            what=f"Finds things in pictures: {', '.join(self.about.labels)}.",
            trained=f"{len(self.corpus.train):,} pictures from `{self.corpus.name}`",
            preparation=self.about.preparation,
            kept=f"step {best['step']:,}, the best on the validation pictures (mAP {best['map']:.4f})",
            minutes=minutes,
            use=[f"heed detect {folder} PICTURE.png --out FOUND.png", f"heed eval {folder} --data MORE"],
            notes=self.notes,
        )

    def _task(self) -> dict[str, object]:
        return {"task": "detect", **to_json(self.about)}
