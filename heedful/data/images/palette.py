"""Converts pictures to palette indices, one for each pixel, and back (Chen et al. 2020, section 3.2).

B pictures of N channels and H x W pixels.
"""

from dataclasses import dataclass

import numpy
import torch
from jaxtyping import Float, Int, UInt8
from scipy.cluster.vq import kmeans, vq
from torch import Tensor

from heedful.core.seeds import shuffled
from heedful.data.images.files import Images, Preparation, where_of
from heedful.errors import InputError

PICTURES, PIXELS = 1024, 1 << 16  # the most pictures and pixels that a palette is learnt from
ENOUGH = 1e-4  # k-means ends when the mean distance to the nearest colour falls by less; black 0, white 1


@dataclass(frozen=True)
class Palette:
    colours: tuple[tuple[int, ...], ...]  # from 0 (black) to 255, a number per channel; no duplicates

    def __post_init__(self) -> None:
        channels = {len(colour) for colour in self.colours}
        if channels not in ({1}, {3}) or max(map(max, self.colours)) > 255 or len(set(self.colours)) < len(self):
            raise InputError("a palette is different colours of 1 or 3 numbers from 0 to 255")

    def __len__(self) -> int:
        return len(self.colours)

    def numbers(self, pixels: Float[Tensor, "B N H W"]) -> Int[Tensor, "B H W"]:
        """Returns the index of the nearest colour of each pixel; pixels are from 0 (black) to 1 (white)."""
        B, N, H, W = pixels.shape
        flat = pixels.movedim(1, 3).reshape(-1, N).double().numpy()
        return torch.from_numpy(vq(flat, numpy.array(self.colours) / 255)[0]).long().view(B, H, W)

    def paint(self, numbers: Int[Tensor, "B H W"]) -> UInt8[Tensor, "B N H W"]:
        """The inverse of `numbers`, for colours of the palette."""
        return torch.tensor(self.colours, dtype=torch.uint8)[numbers].movedim(3, 1)


def grey_palette(levels: int) -> Palette:
    """Returns greys from black to white in equal steps. Raises InputError for more than 256."""
    if levels > 256:
        raise InputError(f"{levels} greys, and a pixel has one of 256", fix="--set images.colours=256, or fewer")
    return Palette(tuple((round(255 * i / (levels - 1)),) for i in range(levels)))


def learn_palette(images: Images, preparation: Preparation, *, colours: int, seed: int) -> Palette:
    """Learns at most `colours` colours that are nearest to the pixels of pictures, by k-means; if there are no more
    different colours, returns all of them. The same seed gives the same palette."""
    draw = numpy.random.default_rng(seed)
    some = shuffled(len(images), seed, 0)[:PICTURES]
    chosen = [preparation.fitted(images[i], where=where_of(images, i)).flatten(1).T for i in some]
    pixels = draw.permutation(torch.cat(chosen).numpy())[:PIXELS]
    found = numpy.unique(pixels, axis=0)
    if len(found) > colours:
        begin = draw.choice(found, colours, replace=False)
        centres, _ = kmeans(pixels / 255, begin / 255, thresh=ENOUGH)
        found = numpy.unique((255 * centres).round().astype(int), axis=0)
    return Palette(tuple(tuple(colour) for colour in found.tolist()))
