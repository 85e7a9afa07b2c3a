"""SegFormer (Xie et al. 2021, figure 2): a pyramid of stages, each with fewer positions and more features than the
one before, and a head that predicts the class of every position from all stages.

B batch, H x W pixels of N channels, h x w positions of a map, P of them in a row, C width of a stage, K classes.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.attention import Attention, AttentionConfig
from heedful.core.block import ACTIVATIONS, BlockConfig, Residual
from heedful.core.dropout import Dropout, dropout
from heedful.core.init import he, normal
from heedful.core.mask import EVERYONE
from heedful.errors import InputError
from heedful.models.resnet import make_map_norm

Grid = tuple[int, int]  # rows and columns of positions


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    patch: int = 3  # rows, and columns, of what a position is made from
    stride: int = 2  # how far patches lie apart: they overlap
    shorten: int = 1  # keys and values are made from squares of so many rows and columns (R in the paper is its square)


@dataclass(frozen=True, kw_only=True)
class PyramidConfig:
    stages: tuple[StageConfig, ...]
    d_head: int
    n_classes: int
    channels: int = 3
    activation: Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu"] = "gelu"
    head_norm: Literal["batch", "group"] = "group"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    head_dropout: float = 0.0
    drop_path: float = 0.0  # the chance to leave out a branch of the last block; it grows from 0 at the first


def as_map(x: Float[Tensor, "B P C"], grid: Grid) -> Float[Tensor, "B C h w"]:
    return x.mT.unflatten(2, grid)


def as_row(x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B P C"]:
    return x.flatten(2).mT


class Shorten(nn.Module):
    """One position for each square of positions, which makes attention cheaper by their number (section 3.1, equation
    2)."""

    def __init__(self, d_model: int, ratio: int) -> None:
        super().__init__()
        self.ratio = ratio
        self.map = nn.Conv2d(d_model, d_model, ratio, stride=ratio)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Float[Tensor, "B P C"], grid: Grid) -> Float[Tensor, "B S C"]:
        if min(grid) < self.ratio:
            raise InputError(
                f"{grid[0]} x {grid[1]} positions in squares of {self.ratio}", fix="make the picture larger"
            )
        return self.norm(as_row(self.map(as_map(x, grid))))


class MixMLP(nn.Module):
    """An MLP that also sees the neighbouring positions, and zeros beyond the edge: only these tell a position where it
    is (section 3.1, equation 3)."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, config.d_ff)
        self.neighbours = nn.Conv2d(config.d_ff, config.d_ff, 3, padding=1, groups=config.d_ff)
        self.down = nn.Linear(config.d_ff, d_model)
        self.activation, self.dropout = ACTIVATIONS[config.activation], Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B P C"], grid: Grid) -> Float[Tensor, "B P C"]:
        x = as_row(self.neighbours(as_map(self.up(x), grid)))
        return self.down(self.dropout(self.activation(x)))


class DropPath(nn.Module):
    """Leaves a branch out for some rows of the batch, and scales it for the others (Huang et al. 2016)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "B P C"]) -> Float[Tensor, "B P C"]:
        return x * dropout(x.new_ones(len(x), 1, 1), self.p) if self.training and self.p else x


class MixBlock(nn.Module):
    def __init__(self, d_model: int, config: BlockConfig, *, shorten: int, drop_path: float) -> None:
        super().__init__()
        self.self_attention = Attention(d_model, config.attention)
        self.shorten = Shorten(d_model, shorten) if shorten > 1 else None
        self.self_residual = Residual(d_model, config)
        self.mlp = MixMLP(d_model, config)
        self.mlp_residual = Residual(d_model, config)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Float[Tensor, "B P C"], grid: Grid) -> Float[Tensor, "B P C"]:
        def look(h: Tensor) -> Tensor:
            kv = self.self_attention.keys_values(h if self.shorten is None else self.shorten(h, grid))
            return self.drop_path(self.self_attention(self.self_attention.queries(h), kv, mask=EVERYONE))

        x = self.self_residual(x, look)
        return self.mlp_residual(x, lambda h: self.drop_path(self.mlp(h, grid)))


class Stage(nn.Module):
    def __init__(self, inputs: int, config: StageConfig, block: BlockConfig, drop_paths: list[float]) -> None:
        super().__init__()
        C = config.d_model
        self.patches = nn.Conv2d(inputs, C, config.patch, stride=config.stride, padding=config.patch // 2)
        self.patches_norm = nn.LayerNorm(C)
        self.blocks = nn.ModuleList(MixBlock(C, block, shorten=config.shorten, drop_path=p) for p in drop_paths)
        self.norm = nn.LayerNorm(C)

    def forward(self, x: Float[Tensor, "B D H W"]) -> Float[Tensor, "B C h w"]:
        x = self.patches(x)
        grid = (x.shape[2], x.shape[3])
        x = self.patches_norm(as_row(x))
        for block in self.blocks:
            x = block(x, grid)
        return as_map(self.norm(x), grid)


class MLPHead(nn.Module):
    """All stages brought to one width and to the size of the first, concatenated from last to first (equation 4)."""

    def __init__(self, config: PyramidConfig) -> None:
        super().__init__()
        D = config.d_head
        self.stages = nn.ModuleList(nn.Linear(stage.d_model, D) for stage in config.stages)
        self.fuse = nn.Conv2d(len(config.stages) * D, D, 1, bias=False)
        self.norm = make_map_norm("affine" if config.head_norm == "batch" else "group", D)
        self.dropout = Dropout(config.head_dropout)
        self.out = nn.Conv2d(D, config.n_classes, 1)

    def forward(self, features: tuple[Float[Tensor, "B _ _ _"], ...]) -> Float[Tensor, "B K h w"]:
        size = features[0].shape[2:]
        maps = [as_map(one(as_row(x)), (x.shape[2], x.shape[3])) for one, x in zip(self.stages, features, strict=True)]
        maps = [F.interpolate(x, size=size, mode="bilinear") for x in maps]
        x = F.relu(self.norm(self.fuse(torch.cat(maps[::-1], dim=1))))
        return self.out(self.dropout(x))


class Pyramid(nn.Module):
    def __init__(self, config: PyramidConfig) -> None:
        super().__init__()
        self.config = config
        n_layers = sum(stage.n_layers for stage in config.stages)
        drop_paths = [config.drop_path * i / max(1, n_layers - 1) for i in range(n_layers)]
        self.stages, inputs = nn.ModuleList(), config.channels
        for stage in config.stages:
            block = BlockConfig(
                attention=AttentionConfig(n_heads=stage.n_heads, dropout=config.attention_dropout),
                d_ff=stage.d_ff,
                order="pre",
                activation=config.activation,
                dropout=config.dropout,
            )
            own, drop_paths = drop_paths[: stage.n_layers], drop_paths[stage.n_layers :]
            self.stages.append(Stage(inputs, stage, block, own))
            inputs = stage.d_model
        self.head = MLPHead(config)
        normal(self)
        he(self)

    def forward(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B K h w"]:
        """The logits of each class at each position of the first stage's map: at a quarter of the resolution with the
        published sizes; the caller upsamples."""
        return self.head(self.features(pixels))

    def features(self, pixels: Float[Tensor, "B N H W"]) -> tuple[Float[Tensor, "B _ _ _"], ...]:
        """The map of each stage. Raises InputError for a picture too small for them."""
        maps, x = [], pixels
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return tuple(maps)
