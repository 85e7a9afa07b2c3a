"""A picture as a row of vectors, one for each patch of its pixels, and where the patches lie.

B batch, H x W pixels of K channels, P patches, T tokens (those before the picture, then the patches), C model width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.embed import Table, sinusoidal_2d
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PatchesConfig:
    size: tuple[int, ...]  # rows and columns of pixels for which the model is made
    patch: int  # columns of pixels in one patch, and rows
    patch_rows: int | None = None  # rows of pixels in one patch, where they are not as many as columns
    channels: int = 3
    bias: bool = True
    position_embeddings: Literal["learned", "sinusoidal", "none"] = "learned"
    stem: tuple[int, ...] = ()  # widths of 3 x 3 convolutions before, which halve rows and columns as patches allow

    def __post_init__(self) -> None:
        if len(self.size) != 2 or not self.holds(self.size) or min(self.shape) < 1:
            what = f"pictures of {self.size} pixels in patches of {self.patch_in_words}"
            raise InputError(what, fix="give rows and columns, at least those of a patch")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pixels in one patch."""
        return self.patch if self.patch_rows is None else self.patch_rows, self.patch

    @property
    def patch_in_words(self) -> str:
        """ "4", or "24 x 4"."""
        return str(self.patch) if self.patch_rows is None else f"{self.patch_rows} x {self.patch}"

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches in a picture of `size`."""
        return self.grid_of(self.size)

    def grid_of(self, size: Sequence[int]) -> tuple[int, int]:
        """Rows and columns of patches in a picture of so many rows and columns of pixels."""
        (rows, columns), (H, W) = self.shape, size
        return H // rows, W // columns

    def holds(self, size: Sequence[int]) -> bool:
        """Whether there is a patch in a picture of so many rows and columns of pixels."""
        return all(edge >= patch for edge, patch in zip(size, self.shape, strict=True))


def group_norm(channels: int) -> nn.GroupNorm:
    """A norm of a map (B, C, h, w), in groups of about 16 channels (Wu and He 2018, section 4.1). With one channel per
    group the brightness and the colour of a picture would be lost."""
    return nn.GroupNorm(math.gcd(channels, max(1, channels // 16)), channels)


class Patches(nn.Module):
    """A picture as a row of vectors, one for each patch of pixels (Dosovitskiy et al. 2021, section 3.1), optionally
    after a few convolutions (Xiao et al. 2021, section 4). Pixels at the right and the lower edge that do not fill a
    patch are left out."""

    def __init__(self, d_model: int, config: PatchesConfig) -> None:
        super().__init__()
        self.config, inputs, n = config, config.channels, len(config.stem)
        # Of rows and of columns, the last so many convolutions halve them.
        down, across = (min(n, (edge & -edge).bit_length() - 1) for edge in config.shape)
        layers: list[nn.Module] = []
        for i, width in enumerate(config.stem):
            stride = (2 if i >= n - down else 1, 2 if i >= n - across else 1)
            layers += [nn.Conv2d(inputs, width, 3, stride=stride, padding=1, bias=False)]
            layers += [group_norm(width), nn.ReLU()]
            inputs = width
        self.stem = nn.Sequential(*layers)
        # One linear map of a patch's pixels; a convolution that steps by its own size is that.
        left = (config.shape[0] >> down, config.shape[1] >> across)
        self.map = nn.Conv2d(inputs, d_model, left, stride=left, bias=config.bias)

    def forward(self, pixels: Float[Tensor, "B K H W"]) -> tuple[Float[Tensor, "B P C"], tuple[int, int]]:
        """The vectors row by row, and how many rows and columns of them there are."""
        (H, W), (rows, columns) = pixels.shape[2:], self.config.shape
        if not self.config.holds((H, W)):
            what = f"a picture of {H} x {W} pixels has no patch of {self.config.patch_in_words}"
            raise InputError(what, fix="make the picture larger")
        x = self.map(self.stem(pixels[:, :, : H - H % rows, : W - W % columns]))
        return x.flatten(2).mT, (x.shape[2], x.shape[3])


class GridPositionEmbeddings(nn.Module):
    """The positions of the patches of a grid, row by row, after `first` tokens that come before the picture.

    For a grid of another size the positions lie in between: learned vectors are interpolated, sines taken at fractions.
    With "none", nothing is added.
    """

    def __init__(self, d_model: int, config: PatchesConfig, *, first: int) -> None:
        super().__init__()
        self.grid, self.first, self.kind = config.grid, first, config.position_embeddings
        rows, columns = config.grid
        self.table = Table(first + rows * columns, d_model) if config.position_embeddings == "learned" else None

    @torch.no_grad()
    def begin_as_sines(self) -> None:
        """Learned vectors of patches begin as the sines of their rows and columns, which tell them apart from the
        first step; those of the tokens before stay as they are."""
        if self.table is not None:
            table = self.table.weight
            axes = (torch.arange(edge, device=table.device, dtype=torch.float32) for edge in self.grid)
            rows, columns = torch.meshgrid(*axes, indexing="ij")
            table[self.first :] = sinusoidal_2d(rows.flatten(), columns.flatten(), table.shape[1])

    def forward(self, x: Float[Tensor, "B T C"], grid: tuple[int, int]) -> Float[Tensor, "B T C"]:
        """`x` with the vectors of its positions added; `grid` says how many rows and columns of patches it has."""
        if self.kind == "none":
            return x
        if self.table is None:
            axes = (_centres(own, other, x.device) for own, other in zip(self.grid, grid, strict=True))
            rows, columns = torch.meshgrid(*axes, indexing="ij")
            vectors = sinusoidal_2d(rows.flatten(), columns.flatten(), x.shape[-1])
            return x + F.pad(vectors, (0, 0, self.first, 0)).to(x.dtype)
        return x + interpolated_positions(self.table.weight, self.grid, grid, first=self.first)


def interpolated_positions(
    table: Float[Tensor, "T C"], own: tuple[int, int], grid: tuple[int, int], *, first: int
) -> Float[Tensor, "U C"]:
    """Turns a table of positions for `first` tokens and an `own` grid, row by row, into one for another grid, by
    bicubic interpolation (Dosovitskiy et al. 2021, section 3.2)."""
    if grid == own:
        return table
    picture = F.interpolate(table[first:].mT.unflatten(1, own)[None], size=grid, mode="bicubic")[0]
    return torch.cat([table[:first], picture.flatten(1).mT])


def _centres(own: int, other: int, device: torch.device) -> Float[Tensor, "T"]:
    """Where the centres of `other` patches lie along an edge that was made for `own`."""
    return (torch.arange(other, device=device) + 0.5) * (own / other) - 0.5
