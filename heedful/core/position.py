"""Where a token stands, told to attention.

Position can enter attention at three doors, and every published scheme uses one of them:

    enter   added to what queries and keys are projected from     DETR
    rotate  turns queries and keys after projection               rotary
    bias    added to the scores                                   T5, ALiBi, Shaw

Absolute positions are not told to attention at all: they are embeddings (`heedful.core.embed`).

B batch, T queries, S keys, H heads, D head width, C model width.
"""

import math
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.config import check_words
from heedful.core.embed import Table
from heedful.core.rotary import RotaryScaling, frequencies
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PositionConfig:
    kind: Literal["none", "added", "rotary", "alibi", "buckets", "shaw"] = "none"
    theta: float = 10_000.0  # rotary: the longest wavelength is about 2 pi theta
    scaling: RotaryScaling | None = None  # rotary: for texts longer than those that were learnt
    buckets: int = 32  # buckets: how many
    furthest: int = 128  # buckets, shaw: distances beyond share one entry
    two_sided: bool = True  # buckets: tell the future from the past; False where attention is causal

    def __post_init__(self) -> None:
        check_words(self)

    def make(self, *, n_heads: int, head_dim: int, scale: float) -> "Position":
        """The scheme of one attention, whose scores are multiplied by `scale`. A scheme of one's own is a subclass that
        makes another `Position`."""
        match self.kind:
            case "none":
                return Position()
            case "added":
                return Added()
            case "rotary":
                return Rotary(head_dim, self.theta, self.scaling)
            case "alibi":
                return Alibi(n_heads)
            case "buckets":
                return RelativeBuckets(n_heads, self)
            case "shaw":
                return Shaw(head_dim, self.furthest, scale)


class Position(nn.Module):
    """Attention that is not told: each scheme below overrides the one door that it uses."""

    def enter(self, x: Float[Tensor, "B T C"], embeddings: Float[Tensor, "#B T C"] | None) -> Float[Tensor, "B T C"]:
        return x

    def rotate(
        self, heads: Float[Tensor, "B H T D"], positions: Int[Tensor, "#B T"] | None
    ) -> Float[Tensor, "B H T D"]:
        return heads

    def bias(
        self,
        query: Float[Tensor, "B H T D"] | None,
        query_positions: Int[Tensor, "#B T"] | None,
        key_positions: Int[Tensor, "#B S"] | None,
    ) -> Float[Tensor, "#B H T S"] | None:
        return None


class Added(Position):
    """Position embeddings are added to what makes queries and keys, and not to what makes values (Carion et al. 2020,
    DETR, appendix A)."""

    def enter(self, x: Float[Tensor, "B T C"], embeddings: Float[Tensor, "#B T C"] | None) -> Float[Tensor, "B T C"]:
        return x if embeddings is None else x + embeddings


class Rotary(Position):
    """Turns each pair of features by an angle that grows with the position, so that the product of a query and a key
    depends on their distance alone (Su et al. 2021, section 3.2.2). Pairs are (i, i + D/2), as in LLaMA."""

    def __init__(self, head_dim: int, theta: float, scaling: RotaryScaling | None = None) -> None:
        super().__init__()
        if head_dim % 2:
            what = f"rotary positions turn features in pairs, and a head has {head_dim}"
            raise InputError(what, fix="choose d_model and n_heads for heads of an even width")
        self.head_dim, self.theta, self.scaling = head_dim, theta, scaling

    def rotate(
        self, heads: Float[Tensor, "B H T D"], positions: Int[Tensor, "#B T"] | None
    ) -> Float[Tensor, "B H T D"]:
        if positions is None:
            raise InputError("rotary attention without positions", fix="give Context(positions=...)")
        cos, sin = _turns(positions, self.head_dim, self.theta, self.scaling, heads.dtype)
        first, second = heads.chunk(2, dim=-1)
        return torch.addcmul(heads * cos, torch.cat([second, first], dim=-1), sin)


Turns = tuple[Float[Tensor, "#B 1 T D"], Float[Tensor, "#B 1 T D"]]
_newest = threading.local()  # the positions that a thread asked for last, and their turns


def _turns(
    positions: Int[Tensor, "#B T"], head_dim: int, theta: float, scaling: RotaryScaling | None, dtype: torch.dtype
) -> Turns:
    """What features, and the other ones of their pairs, are multiplied by. All blocks of a pass ask for the same: on a
    CPU they are computed once."""
    if positions.device.type != "cpu" or torch.compiler.is_compiling():  # a graph must have its own
        return _turned(positions, head_dim, theta, scaling, dtype)
    if getattr(_newest, "positions", None) is not positions:
        _newest.positions, _newest.turns = positions, {}
    key = (head_dim, theta, scaling, dtype, torch.is_inference_mode_enabled())
    turns: dict[tuple[object, ...], Turns] = _newest.turns
    if key not in turns:
        turns[key] = _turned(positions, head_dim, theta, scaling, dtype)
    return turns[key]


def _turned(
    positions: Int[Tensor, "#B T"], head_dim: int, theta: float, scaling: RotaryScaling | None, dtype: torch.dtype
) -> Turns:
    angle = positions[:, None, :, None] * frequencies(head_dim, theta, scaling, positions.device)  # float32
    cos, sin = angle.cos(), angle.sin()
    if scaling is not None:
        cos, sin = cos * scaling.magnitude, sin * scaling.magnitude
    return torch.cat([cos, cos], dim=-1).to(dtype), torch.cat([-sin, sin], dim=-1).to(dtype)


class Alibi(Position):
    """A penalty that grows with distance, at a fixed slope for each head (Press et al. 2022, section 3). For a head
    count that is no power of two, the slopes between are taken from the next power, as the authors do."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        power = 2 ** math.floor(math.log2(n_heads))
        slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
        slopes += [2.0 ** (-4 * (2 * i + 1) / power) for i in range(n_heads - power)]
        self.register_buffer("slopes", torch.tensor(slopes)[:, None, None], persistent=False)
        self.slopes: Tensor

    def bias(
        self,
        query: Float[Tensor, "B H T D"] | None,
        query_positions: Int[Tensor, "#B T"] | None,
        key_positions: Int[Tensor, "#B S"] | None,
    ) -> Float[Tensor, "#B H T S"]:
        return -self.slopes * _offset(query_positions, key_positions).abs()[:, None]


class RelativeBuckets(Position):
    """One learned number for each head and bucket of distance (Raffel et al. 2020, section 2.1): half of the buckets
    hold one distance each, the others grow logarithmically up to `furthest`, which must be more than those."""

    def __init__(self, n_heads: int, config: PositionConfig) -> None:
        super().__init__()
        exact = config.buckets // (4 if config.two_sided else 2)
        if not 0 < exact < config.furthest:
            raise InputError(f"{config.buckets} buckets for distances up to {config.furthest}", fix="fewer, or further")
        self.table = Table(config.buckets, n_heads)
        self.config = config

    def bias(
        self,
        query: Float[Tensor, "B H T D"] | None,
        query_positions: Int[Tensor, "#B T"] | None,
        key_positions: Int[Tensor, "#B S"] | None,
    ) -> Float[Tensor, "#B H T S"]:
        return self.table(self.bucket(_offset(query_positions, key_positions))).permute(0, 3, 1, 2)

    def bucket(self, offset: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """The bucket of each offset (the key's position minus the query's)."""
        buckets, after = self.config.buckets, torch.zeros_like(offset)
        if self.config.two_sided:
            buckets //= 2
            after = (offset > 0) * buckets
            distance = offset.abs()
        else:
            distance = (-offset).clamp(min=0)
        furthest = self.config.furthest
        return after + _buckets(buckets, furthest, offset.device)[distance.clamp(max=furthest)]


class Shaw(Position):
    """A learned key for each distance, clipped at `furthest` (Shaw et al. 2018, equation 4): the score of a query and
    a key gains the query's product with the key of their distance. The paper's second table, on the values
    (equation 3), is left out: its own ablation (section 4.3) found the keys' table enough."""

    def __init__(self, head_dim: int, furthest: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Embedding(2 * furthest + 1, head_dim)
        self.furthest, self.scale = furthest, scale

    def bias(
        self,
        query: Float[Tensor, "B H T D"] | None,
        query_positions: Int[Tensor, "#B T"] | None,
        key_positions: Int[Tensor, "#B S"] | None,
    ) -> Float[Tensor, "#B H T S"]:
        if query is None:
            raise InputError("Shaw's bias depends on the query, so blocks cannot share it", fix="give it to each block")
        furthest = self.furthest
        entries = _offset(query_positions, key_positions).clamp(-furthest, furthest) + furthest  # (#B, T, S)
        products = query @ self.table.weight.T * self.scale  # (B, H, T, 2 furthest + 1)
        return products.gather(-1, entries[:, None].expand(*products.shape[:3], -1))


@lru_cache(maxsize=16)
@torch.inference_mode(mode=False)
def _buckets(buckets: int, furthest: int, device: torch.device) -> Int[Tensor, "D"]:
    """Of the distances 0 to `furthest`, told apart in float32 on the CPU for every device: some lie between two
    buckets, where the logarithm of another device may fall on the other side."""
    distance = torch.arange(furthest + 1)
    exact = buckets // 2
    ratio = torch.log(distance.clamp(min=1) / exact) / math.log(furthest / exact)
    far = (exact + (ratio * (buckets - exact)).long()).clamp(max=buckets - 1)
    return torch.where(distance < exact, distance, far).to(device)


def _offset(queries: Tensor | None, keys: Tensor | None) -> Int[Tensor, "#B T S"]:
    if queries is None or keys is None:
        raise InputError("relative positions need those of queries and keys", fix="give Context(positions=...)")
    return keys[:, None, :] - queries[:, :, None]
