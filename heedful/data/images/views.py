"""Which part of a picture is seen, and which way round: a change of the pixels that what is said of them, boxes and
masks, follows.

What is drawn depends on the picture's own random numbers alone (`heedful.data.images.augment.draws`).
"""

import math
import random
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from heedful.data.images.augment import RATIO, Augment
from heedful.data.images.files import Resample, resize

# By the recipe's `images.augment`. What is cut out, flipped and changed in its colours keeps its boxes and masks.
VIEWS: dict[str, Augment] = {
    "none": Augment(),
    "light": Augment(area=0.7, flip=True),
    "strong": Augment(area=0.3, flip=True, jitter=0.3),
}


@dataclass(frozen=True)
class View:
    left: float  # edges of what is seen, in pixels of the picture
    upper: float
    right: float
    lower: float
    flip: bool = False  # left for right

    def pixels(
        self, pixels: UInt8[Tensor, "N H W"], size: tuple[int, int], *, resample: Resample = "bilinear"
    ) -> UInt8[Tensor, "N h w"]:
        """What is seen in `size` rows and columns; of a mask by "nearest", so that its numbers stay."""
        box = (self.left, self.upper, self.right, self.lower)
        whole = box == (0, 0, pixels.shape[2], pixels.shape[1])
        seen = resize(pixels, size, resample=resample, box=None if whole else box)
        return seen.flip(-1) if self.flip else seen

    def boxes(self, boxes: Float[Tensor, "n 4"]) -> tuple[Float[Tensor, "n 4"], Bool[Tensor, "n"]]:
        """Boxes in pixels (left, upper, right and lower edge) as shares of what is seen, clipped to it; and whether the
        centre of each was inside."""
        start = torch.tensor([self.left, self.upper] * 2)
        extent = torch.tensor([self.right - self.left, self.lower - self.upper] * 2)
        seen = (boxes - start) / extent
        centre = (seen[:, :2] + seen[:, 2:]) / 2
        inside = ((centre > 0) & (centre < 1)).all(1)
        seen = seen.clamp(0, 1)
        if self.flip:
            seen = torch.stack([1 - seen[:, 2], seen[:, 1], 1 - seen[:, 0], seen[:, 3]], 1)
        return seen, inside


def whole(size: tuple[int, int]) -> View:
    """All of a picture of so many rows and columns."""
    return View(0.0, 0.0, float(size[1]), float(size[0]))


def drawn(draw: random.Random, size: tuple[int, int], augment: Augment) -> View:
    """A part of at least the share `augment.area` of a picture, of about its shape, and every second time flipped
    (Szegedy et al. 2015, section 6)."""
    H, W = size
    share, ratio = draw.uniform(augment.area, 1.0), math.exp(draw.uniform(-1, 1) * math.log(RATIO))
    height, width = min(float(H), H * math.sqrt(share / ratio)), min(float(W), W * math.sqrt(share * ratio))
    if augment.area >= 1:
        height, width = float(H), float(W)
    upper, left = draw.uniform(0, H - height), draw.uniform(0, W - width)
    flip = augment.flip and draw.random() < 0.5
    return View(left, upper, left + width, upper + height, flip)
