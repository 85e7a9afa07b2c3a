"""Pictures as texts of pixels, generated and completed by a language model (Chen et al. 2020, "Generative Pretraining
from Pixels").

A picture is a document of S x S tokens, which are the numbers of its colours in the palette, row by row, after a token
that begins it. B pictures of N channels, k given pixels, n samples of each.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Int, UInt8
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.core.seeds import counter_seed
from heedful.data.batches import TextBatch
from heedful.data.images.files import Images, Preparation, each_of, to_image
from heedful.data.images.labelled import read_test_images
from heedful.data.images.palette import Palette
from heedful.data.parts import scored_by_name
from heedful.decode.search import sample
from heedful.decode.settings import Sampling, SamplingOptions
from heedful.errors import InputError, NonFiniteError
from heedful.look.sheet import data_url
from heedful.models.lm import LM
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.generate.likelihood import SCORED
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.paint.options import PaintOptions
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import listed
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.served import TextlessModel, opened, size_in_words, spec_of


@dataclass(frozen=True, kw_only=True)
class PaintSpec:
    """The content of task.json besides the task's name: the meaning of a painter's tokens, and how it prepares
    pictures."""

    palette: Palette
    preparation: Preparation

    @property
    def pixels(self) -> int:
        """The number of pixels of a picture."""
        return math.prod(self.preparation.size)

    def batch(self, pictures: Tensor) -> TextBatch:
        """Prepared pictures as rows of tokens."""
        following = self.palette.numbers(pictures).flatten(1)
        tokens = F.pad(following[:, :-1], (1, 0), value=len(self.palette))
        return TextBatch(tokens, following, torch.ones_like(tokens))


class Painter(TextlessModel[LM]):
    """A trained language model of pixels."""

    task: ClassVar = "paint"
    purpose: ClassVar = "painting"

    def __init__(self, model: LM, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(PaintSpec, about)
        embed, made = model.config.embed, (len(self.spec.palette) + 1, self.spec.pixels)
        if (embed.vocab_size, embed.context_length) != made:
            what = f"{made[0] - 1} colours and {made[1]} pixels, for which the model was not made"
            raise InputError(what, where="task.json", fix="config.json and task.json must come from one run")

    @checks_arguments
    def begin(self, files: Sequence[str | Path], *, keep: float = 0.5) -> Int[Tensor, "B k"]:
        """The upper rows of pictures, a share `keep` of all rows, for `paint` to continue. Raises MissingError or
        InputError."""
        fitting = self.spec.preparation
        rows = round(keep * fitting.size[0]) if 0 <= keep <= 1 else -1
        if not 0 <= rows < fitting.size[0]:
            what = f"keep = {keep:g} leaves no row to paint, or more than there are"
            raise InputError(what, fix="give 0.5, or another share")
        images = opened(listed(files), fitting)
        if not len(images):
            raise InputError("no picture to complete", fix="give one or more")
        numbers = [self.spec.palette.numbers(pictures) for pictures, _ in prepared(images, fitting, most=1)]
        return torch.cat(numbers)[:, :rows].flatten(1)

    @checks_arguments
    def paint(
        self,
        begun: Int[Tensor, "B k"] | None = None,
        *,
        samples: int = 1,
        batch: int = 32,
        **sampling: Unpack[SamplingOptions],
    ) -> UInt8[Tensor, "B n N S S"]:
        """Generates `samples` pictures that continue each of these rows of pixels, or new pictures (B is then 1), drawn
        as described in `Sampling`. At most `batch` are generated at a time; they do not influence each other."""
        begun = torch.zeros(1, 0, dtype=torch.long) if begun is None else begun
        B, size, begin = len(begun), self.spec.preparation.size, len(self.spec.palette)
        if samples < 1 or batch < 1:
            raise InputError(f"{samples} samples in batches of {batch}", fix="give 1 or more")
        how = Sampling(**sampling)
        begun, made = begun.repeat_interleave(samples, 0), []
        seeds = [counter_seed(how.seed, i, j) for i in range(B) for j in range(samples)]
        for first in range(0, len(begun), batch):
            given = begun[first : first + batch]
            prompts = F.pad(given, (1, 0), value=begin).to(self.model.head.weight.device)
            drawn = sample(
                self.model,
                prompts[:, :-1],
                bos=prompts[:, -1],
                eos=begin,
                longest=self.spec.pixels - given.shape[1],
                sampling=how,
                seeds=seeds[first : first + batch],
                forbidden=(begin,),
            )
            made.append(torch.cat([given, torch.tensor([one.tokens for (one,) in drawn])], 1))
        return self.spec.palette.paint(torch.cat(made).view(-1, *size)).unflatten(0, (B, samples))

    @checks_arguments
    @torch.inference_mode()
    def measure(self, images: Images) -> dict[str, float]:
        """The loss in nats per pixel, and in bits, of the numbers in the palette, not of the original colours. Raises
        NonFiniteError."""
        refuse_nothing(images)
        nats, most = 0.0, max(1, SCORED // self.spec.pixels)
        for pictures, _ in prepared(images, self.spec.preparation, most=most):
            nats += float(next_token_loss(self.model, self.spec.batch(pictures), across=True).total)
        loss = nats / (len(images) * self.spec.pixels)
        if not math.isfinite(loss):
            raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
        return {"loss": loss, "bits_per_pixel": loss / math.log(2)}


class PaintedPicture(TypedDict):
    """Generated pictures, PNGs as data URLs, that complete a picture, or new ones (the input is then "")."""

    input: str
    pictures: list[str]


def paint_pictures(painter: Painter, files: Sequence[str], options: PaintOptions) -> Iterator[PaintedPicture]:
    """Generates pictures that complete those in the files; new ones where a file is "". Raises MissingError or
    InputError."""
    if not files:
        return
    if any(files) and not all(files):
        raise InputError("pictures to complete and new ones at once", fix="ask for each by itself")
    begun = painter.begin(files, keep=options.keep) if all(files) else torch.zeros(len(files), 0, dtype=torch.long)
    made = painter.paint(begun, samples=options.samples, **options.sampling)
    for file, own in zip(files, made, strict=True):
        yield {"input": file, "pictures": [data_url(to_image(pixels)) for pixels in own]}


ASK = Ask(paint_pictures, PaintOptions, gathers=lambda options: False, reads="pictures", makes=True)


def score_painter(painter: Painter, options: DataOptions) -> Iterator[Scored]:
    channels = painter.spec.preparation.channels
    tests = read_test_images(options.path, channels=channels, labelled=False)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, {**painter.measure(part.images), "pictures": len(part)}, examples=each_of(part.images))


def painter_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(PaintSpec, dict(saved.about))
    return {"task": "paint", "pictures": size_in_words(spec.preparation), "colours": len(spec.palette)}
