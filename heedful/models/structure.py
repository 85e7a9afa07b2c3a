"""AlphaFold's structure module (Jumper et al. 2021, supplement, section 1.8): from vectors of residues and of their
pairs to a frame for each residue's backbone, and angles.

Left out: dropout, and the atoms of side chains, whose frames follow from the angles.

B batch, R residues, M width of a residue, C width of a pair, H heads, P points of a head.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from heedful.core.attention import KV, Heads
from heedful.core.mask import EVERYONE, Mask
from heedful.models.frames import Frames

HEAD_WEIGHT = 0.541324854612918  # whose softplus is 1


@dataclass(frozen=True, kw_only=True)
class StructureConfig:
    """The sizes are those of algorithms 20 and 22."""

    d_single: int
    n_heads: int = 12
    head_dim: int = 16
    query_points: int = 4
    value_points: int = 8
    n_layers: int = 8  # which share their weights
    d_angles: int = 128
    n_angles: int = 3  # of the backbone: omega, phi, psi
    unit: float = 10.0  # angstroms


class Structure(NamedTuple):
    """The frames after each layer, in angstroms; vectors (sine, cosine) of the angles, whose length is to become 1; and
    the residues' vectors."""

    frames: list[Frames]
    angles: Float[Tensor, "B R A 2"]
    single: Float[Tensor, "B R M"]


class WeightsOfHeads(Heads):
    """Attention's weights themselves, for values that differ from query to query."""

    def forward(
        self, q: Float[Tensor, "B H T D"], kv: KV, mask: Mask, bias: Float[Tensor, "#B #H T S"] | None
    ) -> Float[Tensor, "B H T S"]:
        return self.weights(q, kv, mask, bias)


class InvariantPointAttention(nn.Module):
    """Attention whose scores also fall with the distances of points that each residue puts in its frame, and whose
    values also are points, seen from the frame that asks, and the pairs (algorithm 22). Moving and turning all frames
    alike changes nothing."""

    def __init__(self, config: StructureConfig, d_pair: int) -> None:
        super().__init__()
        M, H = config.d_single, config.n_heads
        self.config = config
        self.query, self.key, self.value = (nn.Linear(M, H * config.head_dim) for _ in range(3))
        self.query_points, self.key_points = (nn.Linear(M, H * config.query_points * 3) for _ in range(2))
        self.value_points = nn.Linear(M, H * config.value_points * 3)
        self.pair_bias = nn.Linear(d_pair, H)
        self.head_weights = nn.Parameter(torch.full((H,), HEAD_WEIGHT))
        self.heads = WeightsOfHeads((3 * config.head_dim) ** -0.5, 0.0)
        self.out = nn.Linear(H * (config.head_dim + 4 * config.value_points + d_pair), M)

    def forward(
        self,
        single: Float[Tensor, "B R M"],
        pair: Float[Tensor, "B R R C"],
        frames: Frames,
        valid: Bool[Tensor, "B R"] | None = None,
    ) -> Float[Tensor, "B R M"]:
        H = self.config.n_heads
        q, k, v = (part(single).unflatten(-1, (H, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        asking, asked, seen = (
            frames.apply(points(single).unflatten(-1, (3, -1)).mT).unflatten(2, (H, -1))  # (B, R, H, P, 3)
            for points in (self.query_points, self.key_points, self.value_points)
        )
        apart = (asking[:, :, None] - asked[:, None]).square().sum((-1, -2))  # (B, R, R, H)
        strength = softplus(self.head_weights) * (3 * self.config.query_points * 9 / 2) ** -0.5
        bias = 3**-0.5 * self.pair_bias(pair) - 0.5 * strength * apart
        mask = EVERYONE if valid is None else Mask(valid=valid)
        weights = self.heads(q, KV(k, v), mask, bias.permute(0, 3, 1, 2))
        points = frames.inverse(torch.einsum("bhij,bjhpx->bihpx", weights, seen).flatten(2, 3))
        values = (
            torch.einsum("bhij,bhjd->bihd", weights, v).flatten(2),
            points.mT.flatten(2),
            (points.square().sum(-1) + 1e-8).sqrt(),
            torch.einsum("bhij,bijc->bihc", weights, pair).flatten(2),
        )
        return self.out(torch.cat(values, dim=-1))


class Angles(nn.Module):
    """A small residual network (algorithm 20, lines 11 to 14, with the activations of the authors' code)."""

    def __init__(self, config: StructureConfig) -> None:
        super().__init__()
        width = config.d_angles
        self.now, self.first = nn.Linear(config.d_single, width), nn.Linear(config.d_single, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(2)
        )
        self.out = nn.Linear(width, 2 * config.n_angles)

    def forward(self, single: Float[Tensor, "B R M"], first: Float[Tensor, "B R M"]) -> Float[Tensor, "B R A 2"]:
        x = self.now(single.relu()) + self.first(first.relu())
        for block in self.blocks:
            x = x + block(x)
        return self.out(x.relu()).unflatten(-1, (-1, 2))


class StructureModule(nn.Module):
    """Residues begin at one place; each layer, with the same weights, moves and turns every frame (algorithm 20)."""

    def __init__(self, config: StructureConfig, d_pair: int) -> None:
        super().__init__()
        M = config.d_single
        self.config = config
        self.single_norm, self.pair_norm = nn.LayerNorm(M), nn.LayerNorm(d_pair)
        self.first = nn.Linear(M, M)
        self.attention = InvariantPointAttention(config, d_pair)
        self.attention_norm, self.transition_norm = nn.LayerNorm(M), nn.LayerNorm(M)
        self.transition = nn.Sequential(nn.Linear(M, M), nn.ReLU(), nn.Linear(M, M), nn.ReLU(), nn.Linear(M, M))
        self.update = nn.Linear(M, 6)
        self.angles = Angles(config)

    def forward(
        self,
        single: Float[Tensor, "B R M"],
        pair: Float[Tensor, "B R R C"],
        valid: Bool[Tensor, "B R"] | None = None,
        frames: Frames | None = None,
    ) -> Structure:
        """`frames`, in angstroms, are where residues begin (None: all at the origin); `valid` is False for padding."""
        unit = self.config.unit
        begun, pair = self.single_norm(single), self.pair_norm(pair)
        single = self.first(begun)
        now = Frames.identity(single) if frames is None else frames.scaled(1 / unit)
        every = []
        for _ in range(self.config.n_layers):
            single = self.attention_norm(single + self.attention(single, pair, now, valid))
            single = self.transition_norm(single + self.transition(single))
            now = now.updated(self.update(single))
            every.append(now.scaled(unit))
            now = now.without_turning_gradient()
        return Structure(every, self.angles(single, begun), single)
