"""Training pictures in augmented views, and pictures prepared for use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.seeds import shuffled
from heedful.data.images.augment import Augment, augmented, draws
from heedful.data.images.files import Images, Preparation, where_of
from heedful.data.images.views import View, drawn


@runtime_checkable
class Prepared(Protocol):
    """Has a preparation of pictures."""

    @property
    def preparation(self) -> Preparation: ...


class PictureBatch(NamedTuple):
    """The numbers of some training pictures. `longest`: the tokens of the longest text about them, which is that of the
    whole batch where only some of its rows are computed, so that all draw the same dropout."""

    epoch: int
    pictures: list[int]
    longest: int | None = None


def picture_batches(
    count: int, size: int, *, seed: int, epoch: int, tokens: Sequence[int] | None = None
) -> list[PictureBatch]:
    """The batches of an epoch, in the epoch's random order; `tokens` are those of the text about each."""
    return in_batches(shuffled(count, seed, epoch), size, epoch=epoch, tokens=tokens)


def in_batches(
    order: Sequence[int], size: int, *, epoch: int, tokens: Sequence[int] | None = None
) -> list[PictureBatch]:
    """The batches of an epoch in this order."""
    groups = [[*order[i : i + size]] for i in range(0, len(order), size)]
    return [PictureBatch(epoch, group, None if tokens is None else max(tokens[i] for i in group)) for group in groups]


@dataclass(frozen=True)
class Viewer:
    """The training pictures as an epoch sees them: in batches, with a random view of each picture."""

    images: Images
    preparation: Preparation
    augment: Augment
    seed: int
    size: int  # of a batch

    def batches(self, epoch: int) -> list[PictureBatch]:
        return picture_batches(len(self.images), self.size, seed=self.seed, epoch=epoch)

    def look(self, batch: PictureBatch) -> tuple[Float[Tensor, "B N H W"], list[View]]:
        """The pixels for the model, and the part of each picture that they show."""
        own, seen, views = draws(batch.pictures, self.seed, batch.epoch), [], []
        for index, draw in zip(batch.pictures, own, strict=True):
            picture = self.images[index]
            views.append(drawn(draw, (picture.shape[1], picture.shape[2]), self.augment))
            seen.append(views[-1].pixels(picture, self.preparation.size, resample=self.preparation.resample))
        scaled = self.preparation.scaled(torch.stack(seen))
        return self.preparation.normalised(augmented(scaled, own, replace(self.augment, flip=False))), views


def prepared(
    images: Images, preparation: Preparation, *, most: int
) -> Iterator[tuple[Float[Tensor, "B N h w"], list[tuple[int, int]]]]:
    """Pictures prepared for use, in order, at most `most` together, with their original rows and columns. Pictures that
    come out in different sizes are prepared one by one: convolutions would see padding at their edges."""
    step = most if len(preparation.crop or preparation.resize) == 2 else 1
    for first in range(0, len(images), step):
        numbers = range(first, min(first + step, len(images)))
        pictures = [images[i] for i in numbers]
        seen = preparation(pictures, [where_of(images, i) for i in numbers])
        yield seen, [(one.shape[1], one.shape[2]) for one in pictures]
