"""Data augmentation of pictures.

The changes to a picture depend only on its key, (seed, epoch, picture), so that a training can be resumed, and run on
any number of ranks. B pictures of N channels and S x S pixels; values from 0 (black) to 1 (white).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from heedful.core.seeds import random_stream
from heedful.data.images.files import Images, Preparation, resize, where_of

RATIO = 4 / 3  # the largest aspect ratio of a random crop (Szegedy et al. 2015, section 6)
ERASED = (0.02, 1 / 3)  # the share of the pixels that are erased (Zhong et al. 2020, section 4.2)


@dataclass(frozen=True, kw_only=True)
class Augment:
    area: float = 1.0  # a crop has at least this share of the picture; 1: no crop
    shift: float = 0.0  # by up to this share of the edge each way, filled with black
    flip: bool = False  # horizontally, with probability 1/2
    jitter: float = 0.0  # brightness, contrast and saturation change by up to this share
    operations: int = 0  # the number of OPERATIONS that are applied in sequence (Cubuk et al. 2020)
    magnitude: float = 0.3  # the strength of each, as a share of the largest
    erase: float = 0.0  # the probability that a rectangle is erased


# By the value of `images.augment` in the recipe.
AUGMENTS: dict[str, Augment] = {
    "none": Augment(),
    "light": Augment(shift=1 / 14, flip=True),
    "strong": Augment(area=0.35, flip=True, jitter=0.3, operations=2, erase=0.25),
}


def draws(samples: Sequence[int], *key: object) -> list[random.Random]:
    """Returns a random stream for each sample."""
    return [random_stream(*key, sample) for sample in samples]


def chances(own: Sequence[random.Random], low: float = 0.0, high: float = 1.0) -> Float[Tensor, "B"]:
    """Returns the next number of each stream, from `low` to `high`."""
    return torch.tensor([draw.uniform(low, high) for draw in own])


def cut_out(
    pixels: UInt8[Tensor, "N H W"], draw: random.Random, preparation: Preparation, augment: Augment, where: str = ""
) -> UInt8[Tensor, "N S S"]:
    """Returns a picture in the size of the model's input: prepared as for use, or if `area` is less than 1, a random
    crop, resized (Szegedy et al. 2015, section 6). `where` is its file."""
    if augment.area >= 1:
        return preparation.fitted(pixels, where=where)
    H, W = pixels.shape[1:]
    share, ratio = draw.uniform(augment.area, 1.0), math.exp(draw.uniform(-1, 1) * math.log(RATIO))
    height, width = min(H, math.sqrt(share * H * W / ratio)), min(W, math.sqrt(share * H * W * ratio))
    top, left = draw.uniform(0, H - height), draw.uniform(0, W - width)
    box = (left, top, left + width, top + height)
    return resize(pixels, preparation.size, resample=preparation.resample, box=box)


def seen(
    images: Images, pictures: Sequence[int], preparation: Preparation, augment: Augment, *key: object
) -> Float[Tensor, "B N S1 S2"]:
    """Returns the pictures with these indices as training input, augmented with this key."""
    own = draws(pictures, *key)
    cut = [
        cut_out(images[i], draw, preparation, augment, where_of(images, i))
        for i, draw in zip(pictures, own, strict=True)
    ]
    return preparation.normalised(augmented(preparation.scaled(torch.stack(cut)), own, augment))


def augmented(
    pixels: Float[Tensor, "B N S1 S2"], own: Sequence[random.Random], augment: Augment
) -> Float[Tensor, "B N S1 S2"]:
    """Augments each picture with its own random stream."""
    if augment.shift:
        most = round(augment.shift * min(pixels.shape[2:]))
        pixels = shifted(pixels, *(torch.tensor([draw.randint(-most, most) for draw in own]) for _ in range(2)))
    if augment.flip:
        pixels = torch.where((chances(own) < 0.5)[:, None, None, None], pixels.flip(-1), pixels)
    if augment.jitter:
        for change in (_brightness, _contrast, _saturation):
            pixels = change(pixels, chances(own, 1 - augment.jitter, 1 + augment.jitter))
    for _ in range(augment.operations):
        pixels = _operated(pixels, own, augment.magnitude)
    if augment.erase:
        pixels = torch.where(_rectangles(pixels, own, augment.erase)[:, None], _mean(pixels), pixels)
    return pixels


def mixed(
    pixels: Float[Tensor, "B N S1 S2"], others: Float[Tensor, "B N S1 S2"], shares: Float[Tensor, "B"]
) -> Float[Tensor, "B N S1 S2"]:
    """Returns sums of two pictures each, weighted by the share of the first (Zhang et al. 2018, mixup)."""
    return torch.lerp(others, pixels, shares[:, None, None, None])


def shifted(pixels: Float[Tensor, "B N S1 S2"], down: Tensor, right: Tensor) -> Float[Tensor, "B N S1 S2"]:
    """Shifts each picture by whole pixels, filled with black."""
    H, W = pixels.shape[2:]
    rows, columns = torch.arange(H) - down[:, None], torch.arange(W) - right[:, None]
    there = ((rows >= 0) & (rows < H))[:, :, None] & ((columns >= 0) & (columns < W))[:, None, :]
    batch = torch.arange(len(pixels))[:, None, None]
    moved = pixels[batch, :, rows.clamp(0, H - 1)[:, :, None], columns.clamp(0, W - 1)[:, None, :]]
    return moved.permute(0, 3, 1, 2) * there[:, None]


# The operations, each with a strength per picture ----------------------------------------------------------------

Change = Callable[[Tensor, Tensor], Tensor]


def _mean(pixels: Tensor) -> Tensor:
    return pixels.mean(dim=(2, 3), keepdim=True)


def _blend(pixels: Tensor, ground: Tensor, share: Tensor) -> Tensor:
    """Interpolates: 1 keeps the pictures, 0 gives the ground, more than 1 moves away from the ground."""
    return torch.lerp(ground, pixels, share[:, None, None, None]).clamp(0, 1)


def _brightness(pixels: Tensor, share: Tensor) -> Tensor:
    return _blend(pixels, torch.zeros_like(pixels), share)


def _contrast(pixels: Tensor, share: Tensor) -> Tensor:
    return _blend(pixels, _mean(pixels).mean(dim=1, keepdim=True).expand_as(pixels), share)


def _saturation(pixels: Tensor, share: Tensor) -> Tensor:
    return _blend(pixels, pixels.mean(dim=1, keepdim=True).expand_as(pixels), share)


def _transformed(pixels: Tensor, theta: Float[Tensor, "B 2 3"]) -> Tensor:
    """Applies affine maps from output to input pixels, in coordinates from -1 to 1; black outside the picture."""
    size = list(pixels.shape)
    grid = torch.affine_grid_generator(theta, size, align_corners=False)
    return torch.grid_sampler(pixels, grid, 0, 0, False)  # bilinear, zeros outside


def _affine(rows: Sequence[Sequence[Tensor | float]], like: Tensor) -> Float[Tensor, "B 2 3"]:
    return torch.stack([torch.stack([torch.as_tensor(x).expand_as(like) for x in row], -1) for row in rows], 1)


def _rotate(pixels: Tensor, much: Tensor) -> Tensor:
    angle = much * math.pi / 6
    return _transformed(pixels, _affine([[angle.cos(), -angle.sin(), 0.0], [angle.sin(), angle.cos(), 0.0]], much))


def _shear(pixels: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
    return _transformed(pixels, _affine([[1.0, x, 0.0], [y, 1.0, 0.0]], pixels[:, 0, 0, 0]))


def _move(pixels: Tensor, right: Tensor | float, down: Tensor | float) -> Tensor:
    return _transformed(pixels, _affine([[1.0, 0.0, right], [0.0, 1.0, down]], pixels[:, 0, 0, 0]))


def _solarize(pixels: Tensor, much: Tensor) -> Tensor:
    return torch.where(pixels > (1 - much.abs())[:, None, None, None], 1 - pixels, pixels)


def _posterize(pixels: Tensor, much: Tensor) -> Tensor:
    levels = (2 ** (8 - (4 * much.abs()).round()))[:, None, None, None]
    return (pixels * (levels - 1)).round() / (levels - 1)


# The strength is from -1 to 1; its sign is the direction.
OPERATIONS: tuple[Change, ...] = (
    lambda pixels, much: pixels,
    _rotate,
    lambda pixels, much: _shear(pixels, 0.3 * much, 0.0),
    lambda pixels, much: _shear(pixels, 0.0, 0.3 * much),
    lambda pixels, much: _move(pixels, 0.9 * much, 0.0),
    lambda pixels, much: _move(pixels, 0.0, 0.9 * much),
    lambda pixels, much: _brightness(pixels, 1 + 0.9 * much),
    lambda pixels, much: _contrast(pixels, 1 + 0.9 * much),
    lambda pixels, much: _saturation(pixels, 1 + 0.9 * much),
    _solarize,
    _posterize,
)


def _operated(pixels: Tensor, own: Sequence[random.Random], magnitude: float) -> Tensor:
    """Applies a random operation to each picture (Cubuk et al. 2020, figure 2), with strength `magnitude` in a random
    direction."""
    chosen = torch.tensor([draw.randrange(len(OPERATIONS)) for draw in own])
    much = magnitude * torch.tensor([draw.choice((-1.0, 1.0)) for draw in own])
    made = pixels.clone()
    for number, change in enumerate(OPERATIONS):
        rows = (chosen == number).nonzero()[:, 0]
        if len(rows):
            made[rows] = change(pixels[rows], much[rows])
    return made


def _rectangles(pixels: Tensor, own: Sequence[random.Random], chance: float) -> Bool[Tensor, "B S1 S2"]:
    """Returns where each picture is to be erased (Zhong et al. 2020, algorithm 1)."""
    H, W = pixels.shape[2:]
    erased = torch.zeros(len(pixels), H, W, dtype=torch.bool)
    for row, draw in enumerate(own):
        if draw.random() < chance:
            share, ratio = draw.uniform(*ERASED), math.exp(draw.uniform(-1, 1) * math.log(1 / 0.3))
            height = min(H, max(1, round(math.sqrt(share * H * W * ratio))))
            width = min(W, max(1, round(math.sqrt(share * H * W / ratio))))
            top, left = draw.randint(0, H - height), draw.randint(0, W - width)
            erased[row, top : top + height, left : left + width] = True
    return erased
