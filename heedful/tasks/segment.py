"""Saying of every pixel what it belongs to: `SegmentTask` is what the training loop needs, `Segmenter` what a person
uses.

B pictures of N channels and H x W pixels, h x w places of the model's map, K classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.images import ImageFile, ImageFiles, Images, Preparation
from heedful.data.masks import IGNORE, Classes, MaskedPart
from heedful.errors import InputError, NonFiniteError
from heedful.models.inference import for_inference
from heedful.models.pyramid import Pyramid
from heedful.tasks.folder import read_textless_run
from heedful.tasks.pictures import Batch, Viewer, prepared
from heedful.train.loss import Loss

READ = 16  # pictures that are looked at together


@dataclass(frozen=True, kw_only=True)
class About:
    """What a segmenter's classes are, and how pictures are prepared for it: task.json, beside the task's name."""

    classes: Classes
    preparation: Preparation

    def __post_init__(self) -> None:
        if self.preparation.crop:
            raise InputError("pictures are cropped, but every pixel has a class", where="task.json")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.classes.labels


class SegmentTask:
    """Batches of pictures with masks, and the loss of what is said of their pixels."""

    def __init__(self, part: MaskedPart, viewer: Viewer) -> None:
        self.part, self.viewer = part, viewer

    def batches(self, epoch: int) -> list[Batch]:
        return self.viewer.batches(epoch)

    def loss(self, model: Pyramid, batch: Batch) -> Loss:
        pixels, views = self.viewer.look(batch)
        size = (pixels.shape[2], pixels.shape[3])
        masks = [
            view.pixels(self.part.masks[index], size, resample="nearest")
            for index, view in zip(batch.pictures, views, strict=True)
        ]
        weight = model.head.out.weight
        return pixel_loss(model(pixels.to(weight)), torch.cat(masks).to(weight.device))


def pixel_loss(logits: Float[Tensor, "B K h w"], mask: UInt8[Tensor, "B H W"]) -> Loss:
    """Cross-entropy in nats of every pixel that has a class, by logits enlarged to the mask's size: a sum, and of how
    many."""
    large = enlarged(logits, (mask.shape[1], mask.shape[2]))
    total = F.cross_entropy(large, mask.long(), ignore_index=IGNORE, reduction="sum")
    return Loss(total, max(1, int((mask != IGNORE).sum())))


def enlarged(logits: Float[Tensor, "B K h w"], size: tuple[int, int]) -> Float[Tensor, "B K H W"]:
    """In float32, by bilinear interpolation (Xie et al. 2021, section 4.1)."""
    return F.interpolate(logits.float(), size=size, mode="bilinear")


class Segmenter:
    """A trained model that says what every pixel belongs to."""

    def __init__(self, model: Pyramid, about: dict[str, Any]) -> None:
        self.model: Pyramid = model.eval()
        self.about = about
        self.says = from_json(About, {key: value for key, value in about.items() if key != "task"}, where="task.json")

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Segmenter":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, about = read_textless_run(Path(run))
        if about.get("task") != "segment":
            raise InputError(f"a model for {about.get('task')!r}, not for segmenting", where=str(run))
        return cls(for_inference(model.to(device)), about)

    def segment(self, files: Sequence[str | Path]) -> list[UInt8[Tensor, "H W"]]:
        """The class of each pixel of each picture, as a number of `says.labels`. Raises MissingError or InputError."""
        images = ImageFiles([ImageFile(Path(file)) for file in files], channels=self.says.preparation.channels, most=0)
        return [logits.argmax(0).to(torch.uint8) for logits in self._logits(images)]

    def evaluate(self, part: MaskedPart) -> dict[str, float]:
        """At each picture's own size: the loss in nats a pixel; `miou`, the mean over the classes that occur or are
        found of `iou LABEL`, intersection over union of all pictures together; and `pixel_accuracy`."""
        K = len(self.says.labels)
        counts, total, count = torch.zeros(K, K, dtype=torch.int64), 0.0, 0
        for index, logits in enumerate(self._logits(part.images)):
            mask = part.masks[index]
            loss = pixel_loss(logits[None], mask)
            total, count = total + float(loss.total), count + loss.count
            counts += confusion(logits.argmax(0), mask[0], K)
        return {"loss": total / count, **overlaps(counts, self.says.labels)}

    def _logits(self, images: Images) -> Iterator[Float[Tensor, "K H W"]]:
        """Of each picture, enlarged to its own size."""
        weight = self.model.head.out.weight
        for pixels, sizes in prepared(images, self.says.preparation, most=READ):
            with torch.inference_mode():
                found = self.model(pixels.to(weight)).float().cpu()
            if found.isnan().any():
                raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
            for logits, size in zip(found, sizes, strict=True):
                yield enlarged(logits[None], size)[0]


def confusion(said: Int[Tensor, "H W"], mask: UInt8[Tensor, "H W"], n_classes: int) -> Int[Tensor, "K K"]:
    """How many pixels of each class (rows) are said to be of which (columns)."""
    real = mask != IGNORE
    pairs = mask[real].long() * n_classes + said[real].long()
    return torch.bincount(pairs, minlength=n_classes**2).view(n_classes, n_classes)


def overlaps(counts: Int[Tensor, "K K"], labels: Sequence[str]) -> dict[str, float]:
    """`miou`, `pixel_accuracy` and `iou LABEL` of a confusion matrix; a class that neither occurs nor is found has
    none. Raises InputError where no pixel has a class."""
    right, either = counts.diagonal(), counts.sum(0) + counts.sum(1) - counts.diagonal()
    if not counts.any():
        raise InputError("no pixel of these masks has a class", fix="give masks with other numbers than 255")
    each = {f"iou {label}": float(right[i] / either[i]) for i, label in enumerate(labels) if either[i]}
    return {
        "miou": sum(each.values()) / len(each),
        "pixel_accuracy": float(right.sum() / counts.sum()),
        **each,
    }
