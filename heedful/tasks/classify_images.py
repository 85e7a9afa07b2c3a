"""Saying of a picture what it shows: `ClassifyImagesTask` is what the training loop needs, `ImageClassifier` what a
person uses.

B pictures of N channels and H x W pixels, K labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.augment import Augment, draws, mixed, seen
from heedful.data.batches import shuffled
from heedful.data.images import ImageFile, ImageFiles, Preparation
from heedful.data.labelled_images import Part
from heedful.errors import InputError, NonFiniteError
from heedful.models.inference import for_inference
from heedful.models.vit import ViT
from heedful.tasks.folder import read_textless_run
from heedful.tasks.metrics import accuracy, f1
from heedful.tasks.recipe import Recipe
from heedful.train.loss import Loss

READ = 128  # pictures that are looked at together
TOP = 5  # `top5`: whether the right label is among so many


@dataclass(frozen=True, kw_only=True)
class About:
    """What the answers of a model mean, and how pictures are prepared for it: task.json, beside the task's name."""

    labels: tuple[str, ...]
    preparation: Preparation
    mirrored: bool = False  # probabilities are the mean of those of a picture and of its mirror image


class Batch(NamedTuple):
    """Which pictures of the training set, and which other one each of them may be mixed with."""

    epoch: int
    pictures: list[int]
    partners: list[int]

    @property
    def rows(self) -> int:
        return len(self.pictures)

    def part(self, rank: int, ranks: int) -> "Batch":
        """The pictures that are `rank`'s of `ranks` that share this batch."""
        return Batch(self.epoch, self.pictures[rank::ranks], self.partners[rank::ranks])


class ClassifyImagesTask:
    """Batches of labelled pictures, which are read and changed only when their loss is asked for."""

    def __init__(self, part: Part, about: About, augment: Augment, recipe: Recipe) -> None:
        self.part, self.about, self.augment = part, about, augment
        self.seed, self.size, self.mixup = recipe.train.seed, recipe.images.batch, recipe.images.mixup
        self.smoothing = recipe.train.smoothing or 0.0
        self.targets = targets_of(part.labels, about.labels)
        self._kept: tuple[int, list[Batch]] | None = None

    def batches(self, epoch: int) -> list[Batch]:
        if self._kept is None or self._kept[0] != epoch:
            order = shuffled(len(self.part), self.seed, epoch)
            groups = [order[i : i + self.size] for i in range(0, len(order), self.size)]
            self._kept = epoch, [Batch(epoch, own, own[1:] + own[:1]) for own in groups]
        return self._kept[1]

    def loss(self, model: ViT, batch: Batch) -> Loss:
        used = list(dict.fromkeys([*batch.pictures, *(batch.partners if self.mixup else ())]))
        rows = {index: row for row, index in enumerate(used)}
        pixels, target = self.pixels(used, batch.epoch), self.targets[used]
        own = [rows[index] for index in batch.pictures]
        if not self.mixup:
            return Loss(self._cross_entropy(model, pixels[own], [(target[own], torch.ones(len(own)))]), batch.rows)
        others = [rows[index] for index in batch.partners]
        drawn = draws(batch.pictures, self.seed, batch.epoch, "mixup")
        shares = torch.tensor([draw.betavariate(self.mixup, self.mixup) for draw in drawn])
        pixels = mixed(pixels[own], pixels[others], shares)
        total = self._cross_entropy(model, pixels, [(target[own], shares), (target[others], 1 - shares)])
        return Loss(total, batch.rows)

    def pixels(self, pictures: Sequence[int], epoch: int) -> Float[Tensor, "B N H W"]:
        """The pictures as this epoch sees them."""
        return seen(self.part.images, pictures, self.about.preparation, self.augment, self.seed, epoch)

    def _cross_entropy(self, model: ViT, pixels: Tensor, targets: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Summed, in float32, of targets that count by their shares."""
        assert model.head is not None
        logits = model(pixels.to(model.head.weight)).float()
        total = logits.new_zeros(())
        for target, share in targets:
            each = F.cross_entropy(logits, target.to(logits.device), reduction="none", label_smoothing=self.smoothing)
            total = total + (each * share.to(logits.device)).sum()
        return total


def targets_of(labels: Sequence[str], known: Sequence[str]) -> Int[Tensor, "B"]:
    """Raises InputError for a label that the model does not know."""
    numbers = {label: number for number, label in enumerate(known)}
    for label in labels:
        if label not in numbers:
            what = f"the label {label!r} was not among those that this model learnt"
            raise InputError(what, fix=f"its labels are {', '.join(known)}")
    return torch.tensor([numbers[label] for label in labels])


class ImageClassifier:
    """A trained classifier of pictures."""

    def __init__(self, model: ViT, about: dict[str, Any]) -> None:
        self.model: ViT = model.eval()
        self.about = about
        own = {key: value for key, value in about.items() if key != "task"}
        self.says = from_json(About, own, where="task.json")

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "ImageClassifier":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, about = read_textless_run(Path(run))
        if about.get("task") != "classify-images":
            raise InputError(f"a model for {about.get('task')!r}, not for classifying pictures", where=str(run))
        return cls(for_inference(model.to(device)), about)

    def classify(self, files: Sequence[str | Path]) -> list[list[tuple[str, float]]]:
        """The labels of each picture, the best first, each with its probability. Raises MissingError or InputError."""
        images = ImageFiles([ImageFile(Path(file)) for file in files], channels=self.says.preparation.channels, most=0)
        made = []
        for chances in self._logits(Part(images, [""] * len(files))).softmax(1).tolist():
            made.append(sorted(zip(self.says.labels, chances, strict=True), key=lambda item: -item[1]))
        return made

    def evaluate(self, part: Part) -> dict[str, float]:
        """The loss in nats, accuracy, macro F1, and of more than five labels the accuracy of the best five."""
        target, logits = targets_of(part.labels, self.says.labels), self._logits(part)
        said = logits.argmax(1)
        macro, _ = f1([[str(i)] for i in said.tolist()], [[str(i)] for i in target.tolist()])
        found = {
            "loss": float(F.cross_entropy(logits, target)),
            "accuracy": accuracy(said.tolist(), target.tolist()),
            "macro_f1": macro,
        }
        if logits.shape[1] > TOP:
            among = (logits.topk(TOP).indices == target[:, None]).any(1)
            found["top5"] = float(among.float().mean())
        return found

    def sample(self, part: Part, shown: int) -> str:
        """What is said of the first pictures, a line each."""
        chances = self._logits(Part(part.images, part.labels[:shown])).softmax(1)
        best = [(float(own.max()), self.says.labels[int(own.argmax())]) for own in chances]
        return "".join(f"{label}: {said} {p:.3f}\n" for label, (p, said) in zip(part.labels, best, strict=False))

    @torch.inference_mode()
    def _logits(self, part: Part) -> Float[Tensor, "B K"]:
        assert self.model.head is not None
        device, found = self.model.head.weight.device, []
        for first in range(0, len(part), READ):
            pictures = [part.images[i] for i in range(first, min(first + READ, len(part)))]
            pixels = self.says.preparation(pictures).to(device)
            logits = self.model(pixels).float().cpu()
            if self.says.mirrored:
                other = self.model(pixels.flip(-1)).float().cpu()
                logits = logits.log_softmax(1).logaddexp(other.log_softmax(1)) - math.log(2)
            if logits.isnan().any():
                raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
            found.append(logits)
        return torch.cat(found)
