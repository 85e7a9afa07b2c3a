"""Trains a detector, from scratch or from another's weights."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor

from heedful.core.config import to_json
from heedful.data.images.boxes import BoxedImages, BoxedPart, read_boxed_images, thing_labels
from heedful.data.parts import spread
from heedful.errors import InputError, counted
from heedful.metrics.boxes import ScoredBox
from heedful.metrics.labels import by_luck
from heedful.models.detr import DETR, DETRConfig
from heedful.models.vision_presets import DETECTORS, detr_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.tasks.detect.recipe import DetectRecipe
from heedful.tasks.detect.use import Detector, DetectSpec, check_labels, target_of
from heedful.tasks.shared.picture_job import PictureJob, make_viewer, some_pictures
from heedful.tasks.shared.pictures import PictureBatch, Viewer
from heedful.training.detection import set_loss
from heedful.training.loss import Loss

SHOWN = 8  # pictures in a sample
ROOM = 2  # the fewest queries per object of the picture with the most objects


class DetectTask:
    """Batches of pictures with boxes, and the loss of the predictions after each layer."""

    def __init__(self, part: BoxedPart, spec: DetectSpec, viewer: Viewer) -> None:
        self.part, self.spec, self.viewer = part, spec, viewer

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        return self.viewer.batches(epoch)

    def loss(self, model: DETR, batch: PictureBatch) -> Loss:
        pixels, views = self.viewer.look(batch)
        weight = model.class_head.weight
        targets = [
            target_of(self.part.things[index], view, self.spec.labels, weight.device)
            for index, view in zip(batch.pictures, views, strict=True)
        ]
        found = model(pixels.to(weight))
        return set_loss(found.logits, found.boxes, targets)


class DetectJob(PictureJob[DetectRecipe, BoxedImages, DETR]):
    kinds: ClassVar = "a COCO .json file, a folder of such, or shapes"
    served: ClassVar = Detector
    config_kind: ClassVar = DETRConfig
    spec_kind: ClassVar = DetectSpec
    score_names = ("map", "map50")
    halves = False  # a part of the loss is a mean over the batch
    answers: DetectSpec

    def __init__(self, recipe: DetectRecipe, corpus: BoxedImages | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        labels = thing_labels(corpus.train)
        found = self.read_pictures()
        for name, part in {"valid": corpus.valid, **corpus.tests}.items():
            check_labels(part, labels)
            if not any(part.things):
                what = f"no box in any picture of the part {name}, on which the model is to be measured"
                raise InputError(what, where=corpus.name, fix="give pictures with boxes there, or leave the part out")
        most, seen = max(map(len, corpus.train.things)), self.seen_whole(found)
        if self.start is None:
            row = row_of(DETECTORS, recipe)
            queries = row.n_queries if "n_queries" in recipe.model else max(row.n_queries, ROOM * most)
            backbone = replace(row.backbone, channels=corpus.channels)
            self.config = detr_config(replace(row, backbone=backbone), n_classes=len(labels), n_queries=queries)
        else:
            self.config = replace(self.start.config, n_classes=len(labels))
        if most > self.config.n_queries:
            self.notes.append(f"a picture has {most} things, but {self.config.n_queries} queries find no more")
        self.answers = DetectSpec(labels=labels, preparation=seen)
        self.viewer = make_viewer(corpus.train.images, seen, recipe.images, recipe.train.seed)
        self.fingerprint = sha256(repr((found.fingerprint, corpus.train.things)).encode()).hexdigest()

    def read(self) -> BoxedImages:
        return read_boxed_images(self.recipe.data.path, channels=self.channels)

    def portion(self, valid: BoxedPart, share: float) -> BoxedPart:
        """A share of the validation pictures that includes some with boxes, however few have any."""
        numbers, full = spread(len(valid), share), [i for i, own in enumerate(valid.things) if own]
        if not any(valid.things[i] for i in numbers):
            numbers = sorted({*numbers, *(full[i] for i in spread(len(full), share))})
        return some_pictures(valid, numbers)

    def describe(self) -> str:
        things, (rows, columns) = sum(map(len, self.corpus.train.things)), self.answers.preparation.size
        return (
            f"{counted(len(self.corpus.train), 'picture')} with {counted(things, 'thing')} of "
            f"{counted(len(self.answers.labels), 'label')}, "
            f"{rows} x {columns} pixels, {self.config.n_queries} queries"
        )

    def own_facts(self) -> dict[str, object]:
        return {
            "things": {name: sum(map(len, part.things)) for name, part in self.corpus.named().items()},
            "labels": list(self.answers.labels),
            "preparation": to_json(self.answers.preparation),
        }

    def new_heads(self) -> Collection[str]:
        """The class head, unless the labels are the same."""
        assert self.start is not None
        return () if self.start.spec.labels == self.answers.labels else ("class_head",)

    def task(self, model: DETR) -> DetectTask:
        return DetectTask(self.corpus.train, self.answers, self.viewer)

    def floor(self) -> float:
        return by_luck(sum(map(len, self.valid.things)))

    def measure(self, model: DETR) -> Measurement:
        served = Detector(model, self.spec())
        scores = served.measure(self.valid)
        loss = scores.pop("loss")
        found = served.find([self.valid.images[i] for i in range(min(SHOWN, len(self.valid)))])
        return Measurement(loss, scores, scores["map"], _sample(found, self.valid))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return self.told(
            scores,
            what=f"Finds things in pictures: {', '.join(self.answers.labels)}.",
            learnt_on=f"{counted(len(self.corpus.train), 'picture')} from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on the validation pictures (mAP {best['map']:.4f})",
            use=[f"heed detect {folder} PICTURE.png --out FOUND.png", f"heed eval {folder} --data MORE"],
        )


def _sample(found: Sequence[Sequence[ScoredBox]], part: BoxedPart) -> str:
    """The true and the detected objects, to be compared by eye."""
    lines = []
    for name, things, own in zip(part.names, part.things, found, strict=False):
        there = ", ".join(f"{one.label} at {_pixels(one.box)}" for one in things)
        said = ", ".join(f"{one.label} {one.score:.2f} at {_pixels(one.box)}" for one in own if one.score >= 0.5)
        lines.append(f"{name}: {there or 'nothing'}\n    {said or 'nothing'}\n")
    return "".join(lines)


def _pixels(box: Float[Tensor, "4"] | Sequence[float]) -> str:
    return "(" + " ".join(f"{float(edge):.0f}" for edge in box) + ")"
