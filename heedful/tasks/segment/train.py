"""Trains a segmenter, from scratch or from another's weights."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import torch

from heedful.core.config import to_json
from heedful.data.images.masks import IGNORE, MaskedImages, MaskedPart, doubt, read_masked_images
from heedful.errors import InputError, counted
from heedful.models.pyramid import Pyramid, PyramidConfig
from heedful.models.vision_presets import SEGMENTERS, segformer_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.tasks.segment.recipe import SegmentRecipe
from heedful.tasks.segment.use import Segmenter, SegmentSpec, pixel_loss
from heedful.tasks.shared.picture_job import PictureJob, make_viewer
from heedful.tasks.shared.pictures import PictureBatch, Viewer
from heedful.training.loss import Loss

TOLD = ("loss", "miou", "pixel_accuracy")


class SegmentTask:
    """Batches of pictures with masks, and the loss of the predicted classes of their pixels."""

    def __init__(self, part: MaskedPart, viewer: Viewer) -> None:
        self.part, self.viewer = part, viewer

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        return self.viewer.batches(epoch)

    def loss(self, model: Pyramid, batch: PictureBatch) -> Loss:
        pixels, views = self.viewer.look(batch)
        size = (pixels.shape[2], pixels.shape[3])
        masks = [
            view.pixels(self.part.masks[index], size, resample="nearest")
            for index, view in zip(batch.pictures, views, strict=True)
        ]
        weight = model.head.out.weight
        return pixel_loss(model(pixels.to(weight)), torch.cat(masks).to(weight.device))


class SegmentJob(PictureJob[SegmentRecipe, MaskedImages, Pyramid]):
    kinds: ClassVar = "a folder with images/ and masks/, or shapes"
    served: ClassVar = Segmenter
    config_kind: ClassVar = PyramidConfig
    spec_kind: ClassVar = SegmentSpec
    score_names = ("miou",)
    answers: SegmentSpec

    def __init__(self, recipe: SegmentRecipe, corpus: MaskedImages | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        classes, found = corpus.classes, self.read_pictures()
        seen = self.seen_whole(found)
        masks = _read(corpus.train)
        for part in (corpus.valid, *corpus.tests.values()):
            _read(part)
            self.notes += doubt(part, classes)
        if self.start is None:
            row = row_of(SEGMENTERS, recipe)
            self.config = segformer_config(row, n_classes=len(classes.labels), channels=corpus.channels)
        else:
            self.config = replace(self.start.config, n_classes=len(classes.labels))
        self.answers = SegmentSpec(classes=classes, preparation=seen)
        self.viewer = make_viewer(corpus.train.images, seen, recipe.images, recipe.train.seed)
        self.fingerprint = sha256(f"{found.fingerprint} {masks}".encode()).hexdigest()

    def read(self) -> MaskedImages:
        return read_masked_images(self.recipe.data.path, channels=self.channels)

    def describe(self) -> str:
        rows, columns = self.answers.preparation.size
        pictures = counted(len(self.corpus.train), "picture")
        return f"{pictures}, {len(self.answers.labels)} classes, {rows} x {columns} pixels"

    def own_facts(self) -> dict[str, object]:
        return {"classes": to_json(self.corpus.classes), "preparation": to_json(self.answers.preparation)}

    def new_heads(self) -> Collection[str]:
        """The output layer of the head, unless the labels are the same."""
        assert self.start is not None
        return () if self.start.spec.labels == self.answers.labels else ("head.out",)

    def task(self, model: Pyramid) -> SegmentTask:
        return SegmentTask(self.corpus.train, self.viewer)

    def floor(self) -> float:
        """The mean IoU of saying the most frequent class of every pixel, or all classes as often as they are, whichever
        is more."""
        classes, counts = len(self.answers.labels), torch.zeros(256, dtype=torch.int64)
        for index in range(len(self.valid)):
            counts += self.valid.masks[index].flatten().long().bincount(minlength=256)
        own = counts[:classes]
        shares = own[own > 0] / own.sum()
        return 0.01 + float(torch.maximum(shares.max() / len(shares), (shares / (2 - shares)).mean()))

    def measure(self, model: Pyramid) -> Measurement:
        scores = Segmenter(model, self.spec()).measure(self.valid)
        loss = scores.pop("loss")
        sample = "".join(f"{name}: {value:.4f}\n" for name, value in scores.items())
        return Measurement(loss, scores, scores["miou"], sample)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return self.told(
            {test: {name: each[name] for name in TOLD} for test, each in scores.items()},
            what=f"Says what every pixel of a picture belongs to: {', '.join(self.answers.labels)}.",
            learnt_on=f"{counted(len(self.corpus.train), 'picture')} from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on the validation pictures (mean IoU {best['miou']:.4f})",
            use=[f"heed segment {folder} PICTURE.png --out MASKS", f"heed eval {folder} --data MORE"],
        )


def _read(part: MaskedPart) -> str:
    """Reads all masks and returns the sha256 of their values. Raises InputError for a mask that cannot be read or has
    an unknown class, and where no pixel of any mask has a class."""
    digest, classed = sha256(), False
    for index in range(len(part)):
        mask = part.masks[index].contiguous()
        classed = classed or bool((mask != IGNORE).any())
        digest.update(mask.numpy().tobytes())
    if not classed:
        what = "no pixel of these masks has a class"
        raise InputError(what, where=part.names[0], fix=f"give masks with other numbers than {IGNORE}")
    return digest.hexdigest()
