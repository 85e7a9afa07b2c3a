"""Predicts the class of every pixel with a trained model.

B pictures of N channels and H x W pixels, h x w positions of the model's map, K classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Integer, UInt8
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.images.files import Images, Preparation, each_of, to_image
from heedful.data.images.masks import IGNORE, Classes, MaskedPart, doubt, read_test_masks
from heedful.data.parts import scored_by_name
from heedful.decode.settings import setting
from heedful.errors import InputError
from heedful.look.sheet import data_url
from heedful.metrics.names import in_words
from heedful.models.pyramid import Pyramid
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.served import TextlessModel, opened, picture_facts, refuse_nan_answers, spec_of
from heedful.training.loss import Loss

READ = 16  # pictures in a batch


@dataclass(frozen=True, kw_only=True)
class SegmentSpec:
    """The content of task.json besides the task's name: a segmenter's classes, and how it prepares pictures."""

    classes: Classes
    preparation: Preparation

    def __post_init__(self) -> None:
        if self.preparation.crop:
            raise InputError("pictures are cropped, but every pixel has a class", where="task.json")

    @property
    def labels(self) -> tuple[str, ...]:
        return self.classes.labels


def pixel_loss(logits: Float[Tensor, "B K h w"], mask: UInt8[Tensor, "B H W"]) -> Loss:
    """The cross-entropy in nats, summed over the pixels that have a class, with logits upsampled to the mask's size;
    and the number of these pixels."""
    large = upsampled(logits, (mask.shape[1], mask.shape[2]))
    total = F.cross_entropy(large, mask.long(), ignore_index=IGNORE, reduction="sum")
    return Loss(total, max(1, int((mask != IGNORE).sum())))


def upsampled(logits: Float[Tensor, "B K h w"], size: tuple[int, int]) -> Float[Tensor, "B K H W"]:
    """The logits at this size, in float32, by bilinear interpolation (Xie et al. 2021, section 4.1)."""
    return F.interpolate(logits.float(), size=size, mode="bilinear")


class Segmenter(TextlessModel[Pyramid]):
    """A trained segmenter."""

    task: ClassVar = "segment"
    purpose: ClassVar = "segmenting"

    def __init__(self, model: Pyramid, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(SegmentSpec, about)

    @one_or_many()
    def segment(self, files: Sequence[str | Path]) -> list[UInt8[Tensor, "H W"]]:
        """The class of each pixel of each picture, as an index into `spec.labels`. Raises MissingError or
        InputError."""
        images = opened(files, self.spec.preparation)
        return [likeliest(logits, size) for logits, size in self._logits(images)]

    @checks_arguments
    def measure(self, part: MaskedPart) -> dict[str, float]:
        """Scores at each picture's own size: the loss in nats per pixel; `iou LABEL`, intersection over union over all
        pictures together; `miou`, its mean over the classes that occur or are predicted; and `pixel_accuracy`."""
        refuse_nothing(part)
        K = len(self.spec.labels)
        counts, total, count = torch.zeros(K, K, dtype=torch.int64), 0.0, 0
        for index, (logits, _) in enumerate(self._logits(part.images)):
            mask = part.masks[index][0]
            loss, found = measured(logits, mask)
            total, count = total + float(loss.total), count + loss.count
            counts += confusion(found, mask, K)
        return {"loss": total / count, **overlaps(counts, self.spec.labels)}

    def _logits(self, images: Images) -> Iterator[tuple[Float[Tensor, "K h w"], tuple[int, int]]]:
        """Yields the logits of each picture, and its own size."""
        weight = self.model.head.out.weight
        for pixels, sizes in prepared(images, self.spec.preparation, most=READ):
            with torch.inference_mode():
                found = self.model(pixels.to(weight)).float().cpu()
            refuse_nan_answers(found)
            yield from zip(found, sizes, strict=True)


def likeliest(logits: Float[Tensor, "K h w"], size: tuple[int, int]) -> UInt8[Tensor, "H W"]:
    """The class with the largest logit at each pixel of a picture of this size."""
    best, found = torch.full(size, -torch.inf), torch.zeros(size, dtype=torch.uint8)
    for number, own in enumerate(enlarged(logits, size)):
        found[own > best] = number
        best = torch.maximum(best, own)
    return found


def measured(logits: Float[Tensor, "K h w"], mask: UInt8[Tensor, "H W"]) -> tuple[Loss, UInt8[Tensor, "H W"]]:
    """The `pixel_loss` of one picture, and the `likeliest` classes."""
    size = (mask.shape[0], mask.shape[1])
    best, whole, right = torch.full((3, *size), -torch.inf)
    found = torch.zeros(size, dtype=torch.uint8)
    for number, own in enumerate(enlarged(logits, size)):
        found[own > best] = number
        best, whole = torch.maximum(best, own), torch.logaddexp(whole, own)
        right = torch.where(mask == number, own, right)
    real = mask != IGNORE
    return Loss((whole - right)[real].sum(), max(1, int(real.sum()))), found


def enlarged(logits: Float[Tensor, "K h w"], size: tuple[int, int]) -> Iterator[Float[Tensor, "H W"]]:
    """Yields the upsampled logits of one class at a time, to save memory: a photograph has millions of pixels."""
    for own in logits:
        yield upsampled(own[None, None], size)[0, 0]


def confusion(said: Integer[Tensor, "H W"], mask: UInt8[Tensor, "H W"], n_classes: int) -> Int[Tensor, "K K"]:
    """The number of pixels of each class (rows) that are predicted as each class (columns)."""
    real = mask != IGNORE
    pairs = mask[real].long() * n_classes + said[real].long()
    return torch.bincount(pairs, minlength=n_classes**2).view(n_classes, n_classes)


def overlaps(counts: Int[Tensor, "K K"], labels: Sequence[str]) -> dict[str, float]:
    """`miou`, `pixel_accuracy` and `iou LABEL` of a confusion matrix; without the IoU of classes that neither occur nor
    are predicted. Raises InputError where no pixel has a class."""
    right, either = counts.diagonal(), counts.sum(0) + counts.sum(1) - counts.diagonal()
    if not counts.any():
        raise InputError("no pixel of these masks has a class", fix="give masks with other numbers than 255")
    each = {f"iou {label}": float(right[i] / either[i]) for i, label in enumerate(labels) if either[i]}
    return {
        "miou": sum(each.values()) / len(each),
        "pixel_accuracy": float(right.sum() / counts.sum()),
        **each,
    }


def shares(segmenter: Segmenter, found: UInt8[Tensor, "H W"]) -> list[dict[str, Any]]:
    """The share of a picture's pixels of each class that is found in it."""
    classes = segmenter.spec.classes
    counted = found.flatten().long().bincount(minlength=len(classes.labels)) / found.numel()
    listed = zip(classes.labels, classes.values, counted.tolist(), strict=True)
    return [{"label": label, "value": value, "share": round(share, 4)} for label, value, share in listed if share]


class SegmentedPicture(TypedDict):
    """A record: the shares of a picture's classes; and its mask, a PNG as a data URL, if requested."""

    input: str
    labels: list[dict[str, Any]]
    mask: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    mask: bool = setting(False, "Whether the answer has the mask, a kind for each pixel.")


def segment_pictures(segmenter: Segmenter, files: Sequence[str], options: SegmentOptions) -> Iterator[SegmentedPicture]:
    values = torch.tensor(segmenter.spec.classes.values, dtype=torch.uint8)
    for file, found in zip(files, segmenter.segment(files), strict=True):
        made: SegmentedPicture = {"input": file, "labels": shares(segmenter, found)}
        if options.mask:
            made["mask"] = data_url(to_image(values[found.long()][None]))
        yield made


ASK = Ask(segment_pictures, SegmentOptions, reads="pictures")


def score_segmenter(segmenter: Segmenter, options: DataOptions) -> Iterator[Scored]:
    spec = segmenter.spec
    tests = read_test_masks(options.path, spec.classes, channels=spec.preparation.channels)
    for name, part in scored_by_name(tests, options.path).items():
        scores: dict[str, Any] = segmenter.measure(part)
        told = ", ".join(in_words(key, value) for key, value in scores.items())
        labels = [f"iou {label}" for label in spec.labels]
        each = {name.removeprefix("iou "): scores.pop(name) for name in labels if name in scores}
        yield Scored(name, scores | {"iou": each}, told, doubt(part, spec.classes), each_of(part.images))


def segmenter_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(SegmentSpec, dict(saved.about))
    return picture_facts(saved, spec.labels, spec.preparation)
