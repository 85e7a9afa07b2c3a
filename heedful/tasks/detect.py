"""Finding things in pictures: `DetectTask` is what the training loop needs, `Detector` what a person uses.

B pictures of N channels and H x W pixels, Q queries, K labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.boxes import BoxedPart, Things
from heedful.data.images import ImageFile, ImageFiles, Images, Preparation
from heedful.data.views import View, whole
from heedful.errors import InputError, NonFiniteError
from heedful.models.detr import DETR
from heedful.models.detr import Found as Logits
from heedful.models.inference import for_inference
from heedful.tasks.average_precision import Found, average_precision
from heedful.tasks.folder import read_textless_run
from heedful.tasks.pictures import Batch, Viewer, prepared
from heedful.train.detection import Target, corners, set_loss
from heedful.train.loss import Loss

READ = 32  # pictures that are looked at together


@dataclass(frozen=True, kw_only=True)
class About:
    """What a detector's classes are, and how pictures are prepared for it: task.json, beside the task's name."""

    labels: tuple[str, ...]
    preparation: Preparation

    def __post_init__(self) -> None:
        if self.preparation.crop:
            raise InputError("pictures are cropped, but boxes may be anywhere in them", where="task.json")


class DetectTask:
    """Batches of pictures with boxes, and the loss of what is found in them after each layer."""

    def __init__(self, part: BoxedPart, about: About, viewer: Viewer) -> None:
        self.part, self.about, self.viewer = part, about, viewer

    def batches(self, epoch: int) -> list[Batch]:
        return self.viewer.batches(epoch)

    def loss(self, model: DETR, batch: Batch) -> Loss:
        pixels, views = self.viewer.look(batch)
        weight = model.class_head.weight
        targets = [
            target_of(self.part.things[index], view, self.about.labels, weight.device)
            for index, view in zip(batch.pictures, views, strict=True)
        ]
        found = model(pixels.to(weight))
        return set_loss(found.logits, found.boxes, targets)


def target_of(things: Things, view: View, labels: Sequence[str], device: torch.device | str = "cpu") -> Target:
    """What is to be found in a view of a picture: the things whose centre it shows."""
    boxes, inside = view.boxes(torch.tensor([thing.box for thing in things]).view(-1, 4))
    classes = torch.tensor([labels.index(thing.label) for thing in things], dtype=torch.int64)
    upper_left, lower_right = boxes.split(2, dim=1)
    centred = torch.cat([(upper_left + lower_right) / 2, lower_right - upper_left], dim=1)
    return Target(classes[inside].to(device), centred[inside].to(device))


def check_labels(part: BoxedPart, known: Sequence[str]) -> None:
    """Raises InputError for a label that the model does not know."""
    for name, things in zip(part.names, part.things, strict=True):
        for thing in things:
            if thing.label not in known:
                what = f"the label {thing.label!r} was not among those that this model learnt"
                raise InputError(what, where=name, fix=f"its labels are {', '.join(known)}")


class Detector:
    """A trained model that finds things."""

    def __init__(self, model: DETR, about: dict[str, Any]) -> None:
        self.model: DETR = model.eval()
        self.about = about
        self.says = from_json(About, {key: value for key, value in about.items() if key != "task"}, where="task.json")

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Detector":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, about = read_textless_run(Path(run))
        if about.get("task") != "detect":
            raise InputError(f"a model for {about.get('task')!r}, not for detecting", where=str(run))
        return cls(for_inference(model.to(device)), about)

    def detect(self, files: Sequence[str | Path], *, threshold: float = 0.5) -> list[list[Found]]:
        """What is found in each picture with at least this probability, the surest first, boxes in its own pixels.
        Raises MissingError or InputError."""
        images = ImageFiles([ImageFile(Path(file)) for file in files], channels=self.says.preparation.channels, most=0)
        return [[one for one in own if one.score >= threshold] for own in self.find(images)]

    def find(self, images: Images) -> list[list[Found]]:
        """The label that is likeliest, and the box, of every query on each picture, the surest first."""
        return [own for logits, sizes in self._logits(images) for own in self._found(logits, sizes)]

    def evaluate(self, part: BoxedPart) -> dict[str, float]:
        """The loss of the last layer by the number of things, and `average_precision`. Raises InputError for a label
        that the model does not know."""
        check_labels(part, self.says.labels)
        total, count, found = 0.0, 0, list[list[Found]]()
        for logits, sizes in self._logits(part.images):
            things = part.things[len(found) : len(found) + len(sizes)]
            targets = [target_of(own, whole(size), self.says.labels) for own, size in zip(things, sizes, strict=True)]
            loss = set_loss(logits.logits[-1:], logits.boxes[-1:], targets)
            total, count = total + float(loss.total), count + loss.count
            found += self._found(logits, sizes)
        return {"loss": total / count, **average_precision(found, part.things)}

    def found(
        self, logits: Float[Tensor, "Q classes"], boxes: Float[Tensor, "Q 4"], size: tuple[int, int]
    ) -> list[Found]:
        """What each query says of one picture with so many rows and columns of pixels."""
        scores, classes = logits.softmax(-1)[:, :-1].max(-1)
        pixels = corners(boxes).clamp(0, 1) * torch.tensor([*reversed(size)] * 2)
        listed = zip(classes.tolist(), scores.tolist(), pixels.tolist(), strict=True)
        return [Found(self.says.labels[number], score, tuple(box)) for number, score, box in listed]

    def _found(self, logits: Logits, sizes: Sequence[tuple[int, int]]) -> Iterator[list[Found]]:
        for own, boxes, size in zip(logits.logits[-1], logits.boxes[-1], sizes, strict=True):
            yield sorted(self.found(own, boxes, size), key=lambda one: -one.score)

    def _logits(self, images: Images) -> Iterator[tuple[Logits, list[tuple[int, int]]]]:
        weight = self.model.class_head.weight
        for pixels, sizes in prepared(images, self.says.preparation, most=READ):
            with torch.inference_mode():
                logits, boxes = (part.float().cpu() for part in self.model(pixels.to(weight)))
            if logits.isnan().any():
                raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
            yield Logits(logits, boxes), sizes


def sample(found: Sequence[Sequence[Found]], part: BoxedPart) -> str:
    """What is there and what was found, for a person to compare."""
    lines = []
    for name, things, own in zip(part.names, part.things, found, strict=False):
        there = ", ".join(f"{one.label} at {_pixels(one.box)}" for one in things)
        said = ", ".join(f"{one.label} {one.score:.2f} at {_pixels(one.box)}" for one in own if one.score >= 0.5)
        lines.append(f"{name}: {there or 'nothing'}\n    {said or 'nothing'}\n")
    return "".join(lines)


def _pixels(box: Float[Tensor, "4"] | Sequence[float]) -> str:
    return "(" + " ".join(f"{float(edge):.0f}" for edge in box) + ")"
