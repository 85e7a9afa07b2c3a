"""Pictures as texts of pixels, drawn and completed by a language model (Chen et al. 2020, "Generative Pretraining from
Pixels"): `PaintTask` is what the training loop needs, `Painter` what a person uses.

A picture is a document of S x S tokens, numbers of its palette row by row, behind a token that begins it. B pictures
of N channels, k pixels that are given, n drawings of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int, UInt8
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.augment import Augment, seen
from heedful.data.images import ImageFile, ImageFiles, Images, Preparation
from heedful.data.palette import Palette
from heedful.decode.search import sample
from heedful.errors import InputError, NonFiniteError
from heedful.models.inference import for_inference
from heedful.models.lm import LM
from heedful.tasks.folder import read_textless_run
from heedful.tasks.generate import SCORED, Block, cross_entropy
from heedful.tasks.pictures import Batch, batches_of, prepared
from heedful.tasks.recipe import Recipe
from heedful.train.loop import counter_seed
from heedful.train.loss import Loss


@dataclass(frozen=True, kw_only=True)
class About:
    """What a painter's tokens mean, and how pictures are prepared for it: task.json, beside the task's name."""

    palette: Palette
    preparation: Preparation

    @property
    def pixels(self) -> int:
        """Of a picture."""
        return math.prod(self.preparation.size)

    def block(self, pictures: Tensor) -> Block:
        """Prepared pictures as rows of tokens."""
        following = self.palette.numbers(pictures).flatten(1)
        tokens = F.pad(following[:, :-1], (1, 0), value=len(self.palette))
        return Block(tokens, following, torch.ones_like(tokens))


class PaintTask:
    """Batches of pictures, which are read and changed only when their loss is asked for: nats a pixel."""

    def __init__(self, images: Images, about: About, augment: Augment, recipe: Recipe) -> None:
        self.images, self.about, self.augment = images, about, augment
        self.seed, self.size, self.smoothing = recipe.train.seed, recipe.images.batch, recipe.train.smoothing or 0.0

    def batches(self, epoch: int) -> list[Batch]:
        return batches_of(len(self.images), self.size, seed=self.seed, epoch=epoch)

    def loss(self, model: LM, batch: Batch) -> Loss:
        about = self.about
        pictures = seen(self.images, batch.pictures, about.preparation, self.augment, self.seed, batch.epoch)
        return cross_entropy(model, about.block(pictures), across=True, smoothing=self.smoothing)


class Painter:
    """A trained language model of pixels."""

    def __init__(self, model: LM, about: dict[str, Any]) -> None:
        self.model: LM = model.eval()
        self.about = about
        self.says = from_json(About, {key: value for key, value in about.items() if key != "task"}, where="task.json")
        embed, made = model.config.embed, (len(self.says.palette) + 1, self.says.pixels)
        if (embed.vocab_size, embed.places.size) != made:
            what = f"{made[0] - 1} colours and {made[1]} pixels, for which the model was not made"
            raise InputError(what, where="task.json", fix="config.json and task.json must come from one run")

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Painter":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, about = read_textless_run(Path(run))
        if about.get("task") != "paint":
            raise InputError(f"a model for {about.get('task')!r}, not for painting", where=str(run))
        return cls(for_inference(model.to(device)), about)

    def begin(self, files: Sequence[str | Path], *, keep: float = 0.5) -> Int[Tensor, "B k"]:
        """The upper rows of pictures, this share of all, for `paint` to go on from. Raises MissingError or
        InputError."""
        fitting = self.says.preparation
        rows = round(keep * fitting.size[0])
        if not 0 <= rows < fitting.size[0]:
            what = f"keep = {keep:g} leaves no row to paint, or more than there are"
            raise InputError(what, fix="give 0.5, or another share")
        images = ImageFiles([ImageFile(Path(file)) for file in files], channels=fitting.channels, most=0)
        numbers = [self.says.palette.numbers(pictures) for pictures, _ in prepared(images, fitting, most=1)]
        return torch.cat(numbers)[:, :rows].flatten(1)

    def paint(
        self,
        begun: Int[Tensor, "B k"] | None = None,
        *,
        samples: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        batch: int = 32,
    ) -> UInt8[Tensor, "B n N S S"]:
        """Pictures that go on from these pixels, or from nothing (B is 1 then), `samples` of each; temperature 0 takes
        the most probable colours. At most `batch` are made at a time: they change nothing about each other."""
        begun = torch.zeros(1, 0, dtype=torch.long) if begun is None else begun
        B, size, begin = len(begun), self.says.preparation.size, len(self.says.palette)
        if samples < 1 or batch < 1:
            raise InputError(f"{samples} samples in batches of {batch}", fix="give 1 or more")
        begun, made = begun.repeat_interleave(samples, 0), []
        seeds = [counter_seed(seed, i, j) for i in range(B) for j in range(samples)]
        for first in range(0, len(begun), batch):
            given = begun[first : first + batch]
            prompts = F.pad(given, (1, 0), value=begin).to(self.model.head.weight.device)
            drawn = sample(
                self.model,
                prompts[:, :-1],
                bos=prompts[:, -1],
                eos=begin,
                longest=self.says.pixels - given.shape[1],
                seed=seeds[first : first + batch],
                temperature=temperature,
                top_k=top_k or None,
                top_p=top_p,
                forbidden=(begin,),
            )
            made.append(torch.cat([given, torch.tensor([one.tokens for (one,) in drawn])], 1))
        return self.says.palette.paint(torch.cat(made).view(-1, *size)).unflatten(0, (B, samples))

    @torch.inference_mode()
    def evaluate(self, images: Images) -> dict[str, float]:
        """The loss in nats a pixel, and the same in bits: of the palette's numbers, not of the colours before it."""
        nats, most = 0.0, max(1, SCORED // self.says.pixels)
        for pictures, _ in prepared(images, self.says.preparation, most=most):
            nats += float(cross_entropy(self.model, self.says.block(pictures), across=True).total)
        loss = nats / (len(images) * self.says.pixels)
        if not math.isfinite(loss):
            raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
        return {"loss": loss, "bits_per_pixel": loss / math.log(2)}
