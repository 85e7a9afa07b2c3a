"""Detects objects in pictures with a trained model.

B pictures of N channels and H x W pixels, Q queries, K labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.images.boxes import BoxedPart, Things, read_test_boxes
from heedful.data.images.files import Images, Preparation, each_of
from heedful.data.images.views import View, whole
from heedful.data.parts import scored_by_name
from heedful.errors import InputError
from heedful.metrics.boxes import ScoredBox, average_precision
from heedful.models.detr import DETR, Detections
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.detect.options import DetectOptions
from heedful.tasks.shared.asked import refuse_nothing, refuse_unknown_labels
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.served import TextlessModel, opened, picture_facts, refuse_nan_answers, spec_of
from heedful.training.detection import Target, corners, set_loss

READ = 32  # pictures in a batch


@dataclass(frozen=True, kw_only=True)
class DetectSpec:
    """The content of task.json besides the task's name: a detector's classes, and how it prepares pictures."""

    labels: tuple[str, ...]
    preparation: Preparation

    def __post_init__(self) -> None:
        if self.preparation.crop:
            raise InputError("pictures are cropped, but boxes may be anywhere in them", where="task.json")


def target_of(things: Things, view: View, labels: Sequence[str], device: torch.device | str = "cpu") -> Target:
    """The targets in a view of a picture: the objects whose centre is visible."""
    boxes, inside = view.boxes(torch.tensor([thing.box for thing in things]).view(-1, 4))
    classes = torch.tensor([labels.index(thing.label) for thing in things], dtype=torch.int64)
    upper_left, lower_right = boxes.split(2, dim=1)
    centred = torch.cat([(upper_left + lower_right) / 2, lower_right - upper_left], dim=1)
    return Target(classes[inside].to(device), centred[inside].to(device))


def check_labels(part: BoxedPart, known: Sequence[str]) -> None:
    """Raises InputError for a label that the model does not have."""
    for name, things in zip(part.names, part.things, strict=True):
        refuse_unknown_labels((thing.label for thing in things), known, name)


class Detector(TextlessModel[DETR]):
    """A trained detector."""

    task: ClassVar = "detect"
    purpose: ClassVar = "detecting"

    def __init__(self, model: DETR, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(DetectSpec, about)

    @one_or_many()
    def detect(self, files: Sequence[str | Path], *, threshold: float = 0.5) -> list[list[ScoredBox]]:
        """The objects that are detected in each picture with at least this probability, the most probable first, with
        boxes in its own pixels. Raises MissingError or InputError."""
        images = opened(files, self.spec.preparation)
        return [[one for one in own if one.score >= threshold] for own in self.find(images)]

    def find(self, images: Images) -> list[list[ScoredBox]]:
        """The most likely label and the box of every query on each picture, the most probable first."""
        return [own for logits, sizes in self._logits(images) for own in self._found(logits, sizes)]

    @checks_arguments
    def measure(self, part: BoxedPart) -> dict[str, float]:
        """The loss of the last layer per object, and `average_precision`. Raises InputError for a label that the model
        does not have."""
        refuse_nothing(part)
        check_labels(part, self.spec.labels)
        total, count, found = 0.0, 0, list[list[ScoredBox]]()
        for logits, sizes in self._logits(part.images):
            things = part.things[len(found) : len(found) + len(sizes)]
            targets = [target_of(own, whole(size), self.spec.labels) for own, size in zip(things, sizes, strict=True)]
            loss = set_loss(logits.logits[-1:], logits.boxes[-1:], targets)
            total, count = total + float(loss.total), count + loss.count
            found += self._found(logits, sizes)
        return {"loss": total / count, **average_precision(found, part.things, part.crowds)}

    def found(
        self, logits: Float[Tensor, "Q classes"], boxes: Float[Tensor, "Q 4"], size: tuple[int, int]
    ) -> list[ScoredBox]:
        """The prediction of each query for one picture; `size` is its rows and columns of pixels."""
        scores, classes = logits.softmax(-1)[:, :-1].max(-1)
        pixels = corners(boxes).clamp(0, 1) * torch.tensor([*reversed(size)] * 2)
        listed = zip(classes.tolist(), scores.tolist(), pixels.tolist(), strict=True)
        return [ScoredBox(self.spec.labels[number], score, tuple(box)) for number, score, box in listed]

    def _found(self, logits: Detections, sizes: Sequence[tuple[int, int]]) -> Iterator[list[ScoredBox]]:
        for own, boxes, size in zip(logits.logits[-1], logits.boxes[-1], sizes, strict=True):
            yield sorted(self.found(own, boxes, size), key=lambda one: -one.score)

    def _logits(self, images: Images) -> Iterator[tuple[Detections, list[tuple[int, int]]]]:
        weight = self.model.queries.weight  # float, also where linear maps have fewer bits
        for pixels, sizes in prepared(images, self.spec.preparation, most=READ):
            with torch.inference_mode():
                logits, boxes = (part.float().cpu() for part in self.model(pixels.to(weight)))
            refuse_nan_answers(logits)
            yield Detections(logits, boxes), sizes


class DetectedThings(TypedDict):
    """An answer as a record."""

    input: str
    boxes: list[dict[str, Any]]  # of `ScoredBox`, with rounded edges


def detect_things(detector: Detector, files: Sequence[str], options: DetectOptions) -> Iterator[DetectedThings]:
    for file, found in zip(files, detector.detect(files, threshold=options.threshold), strict=True):
        yield detected_record(file, found)


def detected_record(file: str, found: Sequence[ScoredBox]) -> DetectedThings:
    boxes = [{**one._asdict(), "box": [round(edge, 2) for edge in one.box]} for one in found]
    return {"input": file, "boxes": boxes}


ASK = Ask(detect_things, DetectOptions, reads="pictures")


def score_detector(detector: Detector, options: DataOptions) -> Iterator[Scored]:
    tests, notes = read_test_boxes(options.path, channels=detector.spec.preparation.channels)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, detector.measure(part), notes=notes, examples=each_of(part.images))
        notes = ()  # they are about all test sets


def detector_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(DetectSpec, dict(saved.about))
    return picture_facts(saved, spec.labels, spec.preparation)
