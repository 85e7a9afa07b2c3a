"""Classifies pictures with a trained model.

B pictures of N channels and H x W pixels, K labels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypedDict, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.images.files import Preparation, each_of, where_of
from heedful.data.images.labelled import Part, read_test_images
from heedful.data.parts import scored_by_name
from heedful.metrics.labels import accuracy, f1
from heedful.models.vit import ViT
from heedful.run.folder import Saved
from heedful.run.task import NOTHING, Ask, NoOptions, Scored
from heedful.tasks.shared.asked import refuse_nothing, refuse_unknown_labels
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.served import TextlessModel, opened, picture_facts, refuse_nan_answers, spec_of

READ = 128  # pictures in a batch
TOP = 5  # the k of top-k accuracy, `top5`


@dataclass(frozen=True, kw_only=True)
class ImageLabelSpec:
    """The content of task.json besides the task's name: what a model's answers mean, and how it prepares pictures."""

    labels: tuple[str, ...]
    preparation: Preparation
    mirrored: bool = False  # probabilities are the mean of those of a picture and of its mirror image


def targets_of(labels: Sequence[str], known: Sequence[str]) -> Int[Tensor, "B"]:
    """The indices of the labels. Raises InputError for a label that the model does not have."""
    numbers = {label: number for number, label in enumerate(known)}
    refuse_unknown_labels(dict.fromkeys(labels), known)
    return torch.tensor([numbers[label] for label in labels])


def ranked(labels: Sequence[str], logits: Float[Tensor, "B K"]) -> list[list[tuple[str, float]]]:
    """The labels of each row with their probabilities, the best first."""
    rows = logits.softmax(1).tolist()
    return [sorted(zip(labels, chances, strict=True), key=lambda item: -item[1]) for chances in rows]


def label_scores(logits: Float[Tensor, "B K"], target: Int[Tensor, "B"]) -> dict[str, float]:
    """The loss in nats, accuracy and macro F1; with more than five labels also the top-5 accuracy."""
    best = logits.argmax(1)
    macro, _ = f1([[str(i)] for i in best.tolist()], [[str(i)] for i in target.tolist()])
    scores = {
        "loss": float(F.cross_entropy(logits, target)),
        "accuracy": accuracy(best.tolist(), target.tolist()),
        "macro_f1": macro,
    }
    if logits.shape[1] > TOP:
        among = (logits.topk(TOP).indices == target[:, None]).any(1)
        scores["top5"] = float(among.float().mean())
    return scores


class ImageClassifier(TextlessModel[ViT]):
    """A trained image classifier."""

    task: ClassVar = "classify-images"
    purpose: ClassVar = "classifying pictures"

    def __init__(self, model: ViT, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(ImageLabelSpec, about)

    @one_or_many()
    def classify(self, files: Sequence[str | Path]) -> list[list[tuple[str, float]]]:
        """The labels of each picture with their probabilities, the best first. Raises MissingError or InputError."""
        images = opened(files, self.spec.preparation)
        return ranked(self.spec.labels, self._logits(Part(images, [""] * len(files))))

    @checks_arguments
    def measure(self, part: Part) -> dict[str, float]:
        """As `label_scores`."""
        refuse_nothing(part)
        return label_scores(self._logits(part), targets_of(part.labels, self.spec.labels))

    def sample(self, part: Part, shown: int) -> str:
        """The most likely label of each of the first pictures, after its own label, a line each."""
        chances = self._logits(Part(part.images, part.labels[:shown])).softmax(1)
        best = [(float(own.max()), self.spec.labels[int(own.argmax())]) for own in chances]
        return "".join(f"{label}: {said} {p:.3f}\n" for label, (p, said) in zip(part.labels, best, strict=False))

    @torch.inference_mode()
    def _logits(self, part: Part) -> Float[Tensor, "B K"]:
        device, found = next(self.model.parameters()).device, [torch.empty(0, len(self.spec.labels))]
        for first in range(0, len(part), READ):
            numbers = range(first, min(first + READ, len(part)))
            files = [where_of(part.images, i) for i in numbers]
            pixels = self.spec.preparation([part.images[i] for i in numbers], files).to(device)
            logits = self.model(pixels).float().cpu()
            if self.spec.mirrored:
                other = self.model(pixels.flip(-1)).float().cpu()
                logits = logits.log_softmax(1).logaddexp(other.log_softmax(1)) - math.log(2)
            refuse_nan_answers(logits)
            found.append(logits)
        return torch.cat(found)


@runtime_checkable
class FileClassifier(Protocol):
    """Says of each file its labels with their probabilities, the best first."""

    def classify(self, files: Sequence[str]) -> list[list[tuple[str, float]]]: ...


class LabelledFile(TypedDict):
    """An answer as a record: the labels with their probabilities, the best first."""

    input: str
    labels: list[dict[str, Any]]


def classify_files(
    classifier: FileClassifier, files: Sequence[str], options: NoOptions = NOTHING
) -> Iterator[LabelledFile]:
    for file, found in zip(files, classifier.classify(files), strict=True):
        yield {"input": file, "labels": [{"label": label, "score": score} for label, score in found]}


ASK = Ask(classify_files, NoOptions, reads="pictures")


def score_image_classifier(classifier: ImageClassifier, options: DataOptions) -> Iterator[Scored]:
    tests = read_test_images(options.path, channels=classifier.spec.preparation.channels)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, classifier.measure(part), examples=each_of(part.images))


def image_classifier_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(ImageLabelSpec, dict(saved.about))
    return picture_facts(saved, spec.labels, spec.preparation)
