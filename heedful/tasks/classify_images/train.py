"""Trains an image classifier, from scratch or from another's weights.

B pictures, K labels.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.core.config import to_json
from heedful.core.seeds import shuffled
from heedful.data.images.augment import AUGMENTS, Augment, draws, mixed, seen
from heedful.data.images.files import Preparation, Survey
from heedful.data.images.labelled import LabelledImages, Part, label_names, read_labelled_images
from heedful.errors import InputError, counted
from heedful.metrics.labels import by_luck, entropy, most_frequent
from heedful.models.patches import interpolated_positions
from heedful.models.vision_presets import VISION_TRANSFORMERS, vit_config
from heedful.models.vit import ViT, ViTConfig
from heedful.run.card import CardText, Scores
from heedful.run.folder import load_weights, parameters
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.run.teacher import Teacher
from heedful.store.model import read_model
from heedful.tasks.classify_images.recipe import ClassifyImagesRecipe
from heedful.tasks.classify_images.use import ImageClassifier, ImageLabelSpec, targets_of
from heedful.tasks.shared.picture_job import PictureJob, augment_of, fitted, seen_as
from heedful.tasks.shared.served import spec_of
from heedful.training.distillation import Outputs
from heedful.training.loss import Loss

SHOWN = 8  # pictures in a sample


class MixedBatch(NamedTuple):
    """Indices of training pictures, and for each the index of another one, which it may be mixed with."""

    epoch: int
    pictures: list[int]
    partners: list[int]


class ClassifyImagesTask:
    """Batches of labelled pictures, which are read and augmented only when their loss is computed."""

    def __init__(
        self,
        part: Part,
        spec: ImageLabelSpec,
        augment: Augment,
        recipe: ClassifyImagesRecipe,
        teacher: Teacher | None = None,
    ) -> None:
        self.part, self.spec, self.augment, self.teacher = part, spec, augment, teacher
        self.seed, self.size, self.mixup = recipe.train.seed, recipe.images.batch, recipe.images.mixup
        self.smoothing = recipe.train.smoothing or 0.0
        self.targets = targets_of(part.labels, spec.labels)

    def batches(self, epoch: int, model: object) -> list[MixedBatch]:
        order = shuffled(len(self.part), self.seed, epoch)
        groups = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        return [MixedBatch(epoch, own, own[1:] + own[:1]) for own in groups]

    def loss(self, model: ViT, batch: MixedBatch) -> Loss:
        used = list(dict.fromkeys([*batch.pictures, *(batch.partners if self.mixup else ())]))
        rows = {index: row for row, index in enumerate(used)}
        pixels, target = self.pixels(used, batch.epoch), self.targets[used]
        own = [rows[index] for index in batch.pictures]
        if not self.mixup:
            return self._loss(model, pixels[own], [(target[own], torch.ones(len(own)))])
        others = [rows[index] for index in batch.partners]
        drawn = draws(batch.pictures, self.seed, batch.epoch, "mixup")
        shares = torch.tensor([draw.betavariate(self.mixup, self.mixup) for draw in drawn])
        pixels = mixed(pixels[own], pixels[others], shares)
        return self._loss(model, pixels, [(target[own], shares), (target[others], 1 - shares)])

    def pixels(self, pictures: Sequence[int], epoch: int) -> Float[Tensor, "B N H W"]:
        """The pictures with this epoch's augmentations."""
        return seen(self.part.images, pictures, self.spec.preparation, self.augment, self.seed, epoch)

    def _loss(self, model: ViT, pixels: Tensor, targets: Sequence[tuple[Tensor, Tensor]]) -> Loss:
        """With a teacher, the last head learns its answers, and the first one the labels (Touvron et al. 2021, section
        4)."""
        assert model.head is not None
        pixels = pixels.to(model.head.weight)
        if self.teacher is None:
            return Loss(self._cross_entropy(model(pixels).float(), targets), len(pixels))

        def outputs(teacher: ViT) -> Outputs:
            return Outputs(teacher.read_out(teacher.hidden(pixels)), lambda read: teacher.by_head(read).mean(dim=1))

        read = model.read_out(model.hidden(pixels))
        total = self._cross_entropy(model.by_head(read)[:, 0].float(), targets)
        student = Outputs(read, lambda read: model.by_head(read)[:, -1])
        return self.teacher.mixed(Loss(total, len(pixels)), student, outputs)

    def _cross_entropy(self, logits: Float[Tensor, "B K"], targets: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """The cross-entropy with each target, weighted by its shares, summed in float32."""
        total = logits.new_zeros(())
        for target, share in targets:
            each = F.cross_entropy(logits, target.to(logits.device), reduction="none", label_smoothing=self.smoothing)
            total = total + (each * share.to(logits.device)).sum()
        return total


class ClassifyImagesJob(PictureJob[ClassifyImagesRecipe, LabelledImages, ViT]):
    kinds: ClassVar = "a folder with a folder of pictures for each label"
    served: ClassVar = ImageClassifier
    config_kind: ClassVar = ViTConfig
    spec_kind: ClassVar = ImageLabelSpec
    score_names = ("accuracy",)
    answers: ImageLabelSpec

    def __init__(
        self, recipe: ClassifyImagesRecipe, corpus: LabelledImages | None = None, begun: Path | None = None
    ) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        labels = label_names([corpus.train])
        if len(labels) < 2:
            raise InputError(f"one label alone: {labels[0]!r}", where=corpus.name, fix="give two or more")
        found = self.read_pictures()
        for part in (corpus.valid, *corpus.tests.values()):
            targets_of(part.labels, labels)
        if self.start is None:
            self.config, preparation = _made_for(corpus, recipe, found, self.taught, n_classes=len(labels))
        else:
            self.config, preparation = _resumed(*self.start, recipe, n_classes=len(labels))
        self.answers = ImageLabelSpec(labels=labels, preparation=preparation, mirrored=recipe.images.mirrored)
        self.augment = augment_of(recipe.images, AUGMENTS)
        self.fingerprint = sha256(repr((found.fingerprint, corpus.train.labels)).encode()).hexdigest()

    @property
    def taught(self) -> Preparation | None:
        """The preparation of the teacher's pictures."""
        return None if self.teacher is None else spec_of(ImageLabelSpec, self.teacher.about).preparation

    def read(self) -> LabelledImages:
        return read_labelled_images(self.recipe.data.path, channels=self.channels)

    def describe(self) -> str:
        rows, columns = self.answers.preparation.size
        pictures, labels = counted(len(self.corpus.train), "picture"), counted(len(self.answers.labels), "label")
        return f"{pictures} of {labels}, {rows} x {columns} pixels"

    def own_facts(self) -> dict[str, object]:
        return {"labels": list(self.answers.labels), "preparation": to_json(self.answers.preparation)}

    def new_heads(self) -> Collection[str]:
        same = self.start is not None and self.start[1].labels == self.answers.labels
        return () if same else ("head", "teacher_head")

    def begin(self, model: ViT) -> None:
        """Loads the weights to start from, with position embeddings interpolated where the size of pictures differs."""
        if self.start is None:
            return
        config, _ = self.start
        _, tensors = read_model(Path(self.recipe.start_from))
        own = parameters(model)
        tensors |= {name: own[name] for name in own if name.split(".")[0] in self.new_heads()}
        table, grids = "position_embeddings.table.weight", (config.patches.grid, self.config.patches.grid)
        if table in tensors:
            first = len(tensors[table]) - grids[0][0] * grids[0][1]
            tensors[table] = interpolated_positions(tensors[table], *grids, first=first)
        load_weights(model, tensors, where=f"{self.recipe.start_from}/model.safetensors")

    def task(self, model: ViT) -> ClassifyImagesTask:
        return ClassifyImagesTask(self.corpus.train, self.answers, self.augment, self.recipe, self.teacher)

    def chance(self) -> float:
        return entropy(self.corpus.train.labels)

    def floor(self) -> float:
        return by_luck(len(self.valid), most_frequent(self.valid.labels))

    def measure(self, model: ViT) -> Measurement:
        classifier = ImageClassifier(model, self.spec())
        scores = classifier.measure(self.valid)
        loss = scores.pop("loss")
        return Measurement(loss, scores, scores["accuracy"], classifier.sample(self.valid, SHOWN))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        preparation = self.answers.preparation
        told = self.told(
            scores,
            what="Says what a picture shows.",
            learnt_on=f"{counted(len(self.corpus.train), 'picture')}, from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on the validation pictures (accuracy {best['accuracy']:.4f})",
            use=[f"heed classify {folder} PICTURE.png", f"heed eval {folder} --data MORE"],
        )
        return replace(
            told,
            after=f" Labels: {', '.join(self.answers.labels)}.",
            how=f"{seen_as(preparation)}{', grey' if preparation.channels == 1 else ''}.",
            limits=f"{told.limits} Its probabilities are not calibrated.",
        )


def _made_for(
    corpus: LabelledImages, recipe: ClassifyImagesRecipe, found: Survey, taught: Preparation | None, *, n_classes: int
) -> tuple[ViTConfig, Preparation]:
    """A new model's configuration, and the preparation of its pictures: that of its teacher, if there is one."""
    wanted = recipe.images.size or (None if taught is None else max(taught.size))
    row, size = fitted(row_of(VISION_TRANSFORMERS, recipe), recipe, wanted, corpus.size)
    config = vit_config(replace(row, channels=corpus.channels), n_classes=n_classes, size=(size, size))
    if taught is not None and (taught.size, taught.channels) == ((size, size), corpus.channels):
        return config, taught
    seen = Preparation(channels=corpus.channels, resize=(size,), crop=(size, size), mean=found.mean, std=found.std)
    return config, seen


def _resumed(
    config: ViTConfig, answers: ImageLabelSpec, recipe: ClassifyImagesRecipe, *, n_classes: int
) -> tuple[ViTConfig, Preparation]:
    """The configuration of the model to start from, for these labels, and for `images.size` where it is given."""
    seen, size = answers.preparation, recipe.images.size
    if size is not None and (size, size) != seen.size:
        seen = replace(seen, resize=(size,), crop=(size, size))
    patches = replace(config.patches, size=seen.size)
    return replace(config, n_classes=n_classes, patches=patches), seen
