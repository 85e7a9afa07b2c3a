"""Attention in windows (Liu et al. 2021, Swin Transformer, section 3.2): a patch attends only to its own
square. The attention is the same as elsewhere: windows become rows of the batch for it. `Merge` is between its stages.

B batch, h x w patches of a grid, P of them in a row, Q merged ones, W windows of T patches, C model width, D twice
that, H heads.
"""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.core.attention import Attention
from heedful.core.block import MLP, BlockConfig, Context, Residual
from heedful.core.embed import Table
from heedful.core.mask import EVERYONE, Mask
from heedful.errors import InputError

Grid = tuple[int, int]


def fold(x: Shaped[Tensor, "B h w C"], side: int) -> Shaped[Tensor, "BW T C"]:
    """Makes each square of `side` rows and columns a row of the batch."""
    B, h, w, C = x.shape
    return x.reshape(B, h // side, side, w // side, side, C).transpose(2, 3).reshape(-1, side * side, C)


def unfold(x: Float[Tensor, "BW T C"], side: int, grid: Grid) -> Float[Tensor, "B h w C"]:
    """The inverse of `fold`."""
    h, w = grid
    return x.reshape(-1, h // side, w // side, side, side, x.shape[-1]).transpose(2, 3).reshape(-1, h, w, x.shape[-1])


class Merge(nn.Module):
    """Makes one patch of twice the width of each square of four (section 3.1)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * d_model)
        self.map = nn.Linear(4 * d_model, 2 * d_model, bias=False)

    def forward(self, x: Float[Tensor, "B P C"], grid: Grid) -> tuple[Float[Tensor, "B Q D"], Grid]:
        """The merged patches and their grid. Raises InputError for a grid with an odd side."""
        if grid[0] % 2 or grid[1] % 2:
            raise InputError(f"{grid[0]} x {grid[1]} patches, to be merged by 2 x 2", fix="choose other pictures")
        rows, columns = grid[0] // 2, grid[1] // 2
        squares = x.reshape(len(x), rows, 2, columns, 2, -1).permute(0, 1, 3, 4, 2, 5)  # column by column
        return self.map(self.norm(squares.flatten(3).flatten(1, 2))), (rows, columns)


class WindowBlock(nn.Module):
    """A block whose attention stays in windows of config.window rows and columns, with a learned number for each head
    and offset inside one (equation 4).

    With the kind "shifted_windows" they are shifted by half a window, so that alternating blocks connect what the
    windows of the previous block separated. Parts cut off at opposite edges share a window, but they do not see each
    other. Raises InputError without a window.
    """

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()
        if config.window is None:
            raise InputError(f"a block of {config.kind} without its size", fix="give window")
        self.side = config.window
        self.shift = self.side // 2 if config.kind == "shifted_windows" else 0
        self.self_attention = Attention(d_model, config.attention)
        self.self_residual = Residual(d_model, config)
        self.mlp = MLP(d_model, config)
        self.mlp_residual = Residual(d_model, config)
        self.offsets = Table((2 * self.side - 1) ** 2, config.attention.n_heads)

    def forward(self, x: Float[Tensor, "B P C"], context: Context, cache: None = None) -> tuple[Tensor, None]:
        """Raises InputError for a grid that is not a multiple of the window."""
        grid = context.grid
        if grid is None:
            raise InputError("windows of an unknown grid", fix="give Context(grid=(rows, columns))")
        if grid[0] % self.side or grid[1] % self.side:
            what = f"{grid[0]} x {grid[1]} patches in windows of {self.side}"
            raise InputError(what, fix="choose a window that divides both, or other pictures")
        back = (self.shift, self.shift)

        def look(h: Tensor) -> Tensor:
            windows = fold(h.unflatten(1, grid).roll((-self.shift, -self.shift), (1, 2)), self.side)
            kv = self.self_attention.keys_values(windows)
            queries = self.self_attention.queries(windows)
            windows = self.self_attention(queries, kv, mask=self._mask(grid, len(x), x.device), bias=self._bias())
            return unfold(windows, self.side, grid).roll(back, (1, 2)).flatten(1, 2)

        x = self.self_residual(x, look)
        return self.mlp_residual(x, self.mlp), None

    def over_picture(self, weights: Float[Tensor, "W H T T"], grid: Grid) -> Float[Tensor, "H P P"]:
        """The weights in the windows of one picture as weights over all its patches: zero in other windows."""
        patches = torch.arange(grid[0] * grid[1], device=weights.device).view(1, *grid, 1)
        numbers = fold(patches.roll((-self.shift, -self.shift), (1, 2)), self.side)[..., 0]
        whole = weights.new_zeros(weights.shape[1], patches.numel(), patches.numel())
        for own, window in zip(numbers, weights, strict=True):
            whole[:, own[:, None], own] = window
        return whole

    def _bias(self) -> Float[Tensor, "1 H T T"]:
        at = torch.arange(self.side, device=self.offsets.weight.device)
        apart = at[:, None] - at + self.side - 1  # of a query's row and a key's, from 0
        rows, columns = apart[:, None, :, None], apart[None, :, None, :]
        number: Int[Tensor, "T T"] = (rows * (2 * self.side - 1) + columns).flatten(2).flatten(0, 1)
        return self.offsets(number).permute(2, 0, 1)[None]

    def _mask(self, grid: Grid, B: int, device: torch.device) -> Mask:
        if not self.shift:
            return EVERYONE
        rows, columns = (torch.arange(n, device=device) >= n - self.shift for n in grid)  # from over the edge
        piece = (2.0 * rows[:, None] + columns)[None, :, :, None]
        own = fold(piece, self.side)[..., 0]
        same: Bool[Tensor, "W T T"] = own[:, :, None] == own[:, None, :]
        return Mask(allowed=same.repeat(B, 1, 1))


WINDOWS: dict[str, type[WindowBlock]] = {"windows": WindowBlock, "shifted_windows": WindowBlock}
