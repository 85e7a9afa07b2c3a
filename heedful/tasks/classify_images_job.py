"""Training a classifier of pictures, from scratch or from another's weights: from a recipe and its pictures to a
model's configuration that fits their size."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.core.embed import places_between
from heedful.data.augment import AUGMENTS
from heedful.data.images import Preparation, Survey, survey
from heedful.data.labelled_images import LabelledImages, label_names, read_labelled_images
from heedful.errors import InputError
from heedful.models.vision_presets import VISION_TRANSFORMERS, vision_transformer
from heedful.models.vit import ViTConfig
from heedful.store.checkpoint import read_model
from heedful.tasks.card import data_facts, model_card, origin, score_table
from heedful.tasks.classify_images import About, ClassifyImagesTask, ImageClassifier, targets_of
from heedful.tasks.folder import load_weights, parameters, write_model
from heedful.tasks.job import Measured, Scores
from heedful.tasks.picture_job import augment_of, fitted, read_start
from heedful.tasks.recipe import Recipe, row_of

SHOWN = 8  # pictures of a sample


class ClassifyImagesJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, knows what it was started from. All pictures
    are read once, so that what is wrong with one is said before anything is trained. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: LabelledImages | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a folder with a folder of pictures for each label")
        self.start = read_start(recipe, begun, ViTConfig, About)
        channels = recipe.images.channels if self.start is None else self.start.about.preparation.channels
        self.corpus = corpus = corpus or read_labelled_images(data.path, channels=channels)
        labels = label_names([corpus.train])
        if len(labels) < 2:
            raise InputError(f"one label alone: {labels[0]!r}", where=corpus.name, fix="give two or more")
        found = survey(corpus.train.images)
        for part in (corpus.valid, *corpus.tests.values()):
            targets_of(part.labels, labels)
            survey(part.images)
        if self.start is None:
            self.config, preparation = _made_for(corpus, recipe, found, n_classes=len(labels))
        else:
            self.config, preparation = _resumed(*self.start, recipe, n_classes=len(labels))
        self.about = About(labels=labels, preparation=preparation, mirrored=recipe.images.mirrored)
        self.augment = augment_of(recipe.images, AUGMENTS, labels=True)
        self.notes = list(corpus.notes)
        self.fingerprint = hashlib.sha256(repr((found.fingerprint, corpus.train.labels)).encode()).hexdigest()
        self.tokenizer_hash = ""
        self.score_names: tuple[str, ...] = ("accuracy",)

    def describe(self) -> str:
        rows, columns = self.about.preparation.size
        return f"{len(self.corpus.train):,} pictures of {len(self.about.labels)} labels, {rows} x {columns} pixels"

    def tokenizers(self) -> dict[str, bytes]:
        return {}

    def facts(self) -> dict[str, object]:
        own = {
            "labels": list(self.about.labels),
            "preparation": to_json(self.about.preparation),
            "fingerprint": self.fingerprint,
            "notes": self.notes,
        }
        return data_facts(self.corpus, "pictures") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        """The weights that are started from, places between where the size is another. The heads stay as they are,
        unless the labels are the same."""
        if self.start is None:
            return
        config, about = self.start
        _, tensors = read_model(Path(self.recipe.start_from))
        own = parameters(model)
        if about.labels != self.about.labels:
            tensors |= {name: own[name] for name in own if name.split(".")[0] in ("head", "teacher_head")}
        table, grids = "places.table.weight", (config.patches.grid, self.config.patches.grid)
        if table in tensors:
            first = len(tensors[table]) - grids[0][0] * grids[0][1]
            tensors[table] = places_between(tensors[table], *grids, first=first)
        load_weights(model, tensors, where=f"{self.recipe.start_from}/model.safetensors")

    def task(self, model: Any) -> ClassifyImagesTask:
        return ClassifyImagesTask(self.corpus.train, self.about, self.augment, self.recipe)

    def measure(self, model: Any) -> Measured:
        classifier = ImageClassifier(model, self._task())
        scores = classifier.evaluate(self.corpus.valid)
        loss = scores.pop("loss")
        return Measured(loss, scores, scores["accuracy"], classifier.sample(self.corpus.valid, SHOWN))

    def write(self, folder: Path, model: Any) -> None:
        write_model(folder, model, parameters(model), {"task.json": self._task()})

    def finish(self, folder: Path, device: str) -> Scores:
        best = ImageClassifier.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(part) for name, part in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        size = " x ".join(map(str, self.about.preparation.size))
        return model_card(
            folder,
            what=f"Says what a picture shows. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} pictures, from `{self.corpus.name}`. Labels: {', '.join(self.about.labels)}.",
            table=score_table("pictures", scores),
            how=f"Pictures are resized to {size} pixels{', grey' if self.about.preparation.channels == 1 else ''}.",
            kept=f"step {best['step']:,}, the best on the validation pictures (accuracy {best['accuracy']:.4f})",
            minutes=minutes,
            use=[f"heed classify {folder} PICTURE.png", f"heed eval {folder} --data MORE"],
            limits="It has seen only the pictures above: on others expect worse than the table says. Its probabilities "
            "are not calibrated.",
            notes=self.corpus.notes,
        )

    def _task(self) -> dict[str, object]:
        return {"task": "classify-images", **to_json(self.about)}


def _made_for(
    corpus: LabelledImages, recipe: Recipe, found: Survey, *, n_classes: int
) -> tuple[ViTConfig, Preparation]:
    """A new model for pictures of this size."""
    row, size = fitted(row_of(VISION_TRANSFORMERS, recipe), recipe, corpus.size)
    config = vision_transformer(replace(row, channels=corpus.channels), n_classes=n_classes, size=(size, size))
    seen = Preparation(channels=corpus.channels, resize=(size,), crop=(size, size), mean=found.mean, std=found.std)
    return config, seen


def _resumed(config: ViTConfig, about: About, recipe: Recipe, *, n_classes: int) -> tuple[ViTConfig, Preparation]:
    """The model that is started from, for these labels, and for `images.size` where it is given."""
    seen, size = about.preparation, recipe.images.size
    if size is not None and (size, size) != seen.size:
        seen = replace(seen, resize=(size,), crop=(size, size))
    patches = replace(config.patches, size=seen.size)
    return replace(config, n_classes=n_classes, patches=patches), seen
