"""Random crops and flips of a picture, applied to its boxes and masks too.

A view depends only on the picture's own random stream (`heedful.data.images.augment.draws`).
"""

import math
import random
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from heedful.data.images.augment import RATIO, Augment
from heedful.data.images.files import Resample, resize

# By the value of `images.augment` in the recipe: only crops, flips and changes of colour, which boxes and masks can
# follow.
VIEWS: dict[str, Augment] = {
    "none": Augment(),
    "light": Augment(area=0.7, flip=True),
    "strong": Augment(area=0.3, flip=True, jitter=0.3),
}


@dataclass(frozen=True)
class View:
    left: float  # edges of the crop, in pixels of the picture
    upper: float
    right: float
    lower: float
    flip: bool = False  # horizontally

    def pixels(
        self, pixels: UInt8[Tensor, "N H W"], size: tuple[int, int], *, resample: Resample = "bilinear"
    ) -> UInt8[Tensor, "N h w"]:
        """Returns the crop in `size` rows and columns; use "nearest" for a mask, so that its numbers stay."""
        box = (self.left, self.upper, self.right, self.lower)
        whole = box == (0, 0, pixels.shape[2], pixels.shape[1])
        seen = resize(pixels, size, resample=resample, box=None if whole else box)
        return seen.flip(-1) if self.flip else seen

    def boxes(self, boxes: Float[Tensor, "n 4"]) -> tuple[Float[Tensor, "n 4"], Bool[Tensor, "n"]]:
        """Returns boxes, given in pixels (left, upper, right and lower edge), as shares of the crop, clipped to it; and
        whether the centre of each was inside."""
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
    """Returns the view of a whole picture of `size` rows and columns."""
    return View(0.0, 0.0, float(size[1]), float(size[0]))


def drawn(draw: random.Random, size: tuple[int, int], augment: Augment) -> View:
    """Draws a view with at least the share `augment.area` of a picture, of about its aspect ratio, flipped with
    probability 1/2 if `augment.flip` (Szegedy et al. 2015, section 6)."""
    H, W = size
    share, ratio = draw.uniform(augment.area, 1.0), math.exp(draw.uniform(-1, 1) * math.log(RATIO))
    height, width = min(float(H), H * math.sqrt(share / ratio)), min(float(W), W * math.sqrt(share * ratio))
    if augment.area >= 1:
        height, width = float(H), float(W)
    upper, left = draw.uniform(0, H - height), draw.uniform(0, W - width)
    flip = augment.flip and draw.random() < 0.5
    return View(left, upper, left + width, upper + height, flip)
