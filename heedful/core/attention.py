"""Attention: each query gathers values from the keys that it may see.

Two functions hold the mathematics and one module holds the weights. The module knows nothing of self or cross,
of training or decoding: it is given keys and values, and where they come from is its caller's business.

    kv  = attention.keys_values(memory, positions)
    out = attention(x, kv, mask=mask, positions=positions)

    q, kv = attention.of_itself(x, positions)
    out = attention.gather(x, q, kv, mask=mask, positions=positions)

B batch, T queries, S keys, H query heads, G key heads (G divides H), D head width, C model width.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.dropout import dropout as drop
from heedful.core.mask import Hiding, Mask
from heedful.core.position import PositionConfig, make_position
from heedful.errors import InputError


def attention_weights(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B G S D"],
    *,
    mask: Mask,
    bias: Float[Tensor, "#B #H T S"] | None = None,
    scale: float,
) -> Float[Tensor, "B H T S"]:
    """softmax(scale * q k' + bias), over the keys that the mask allows (Vaswani et al. 2017, equation 1).

    A query that may see nobody gets zeros. The bias is added after scaling, whatever its size.
    """
    scores = (q * scale) @ _for_each_query_head(k, q.shape[1]).mT
    if bias is not None:
        scores = scores + bias
    T, S = scores.shape[2:]
    return masked_softmax(scores, mask.dense(T, S, q.device), mask.hiding(T, S, q.device, scores.dtype))


def masked_softmax(
    scores: Float[Tensor, "*B T S"], seen: Tensor | None, hiding: Hiding | None = None
) -> Float[Tensor, "*B T S"]:
    """The project's one softmax of scores: over the last axis, where `seen` (bool, broadcasting); zeros where nobody
    is. torch computes it in float32 whatever the dtype of the scores.

    `hiding`: the same as `heedful.core.mask.hiding` has it. Adding spares passes over all weights that filling costs.
    """
    if seen is None:
        return scores.softmax(dim=-1)
    if hiding is not None:
        weights = (scores + hiding.added).softmax(dim=-1)
        return weights if hiding.sighted is None else weights * hiding.sighted
    blind = ~seen.any(dim=-1, keepdim=True)
    return scores.masked_fill(~seen, -torch.inf).softmax(dim=-1).masked_fill(blind, 0.0)


def attend(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B G S D"],
    v: Float[Tensor, "B G S E"],
    *,
    mask: Mask,
    bias: Float[Tensor, "#B #H T S"] | None = None,
    scale: float,
    dropout: float = 0.0,
) -> Float[Tensor, "B H T E"]:
    """`attention_weights(q, k, ...) @ v`, in value and in gradient, by the fastest way that the device has.

    Where gradients are wanted on a CPU that way is the explicit one: the backward pass of torch's fused kernel
    takes up to three times as long there.
    """
    T, S = q.shape[2], k.shape[2]
    if q.device.type == "cpu" and torch.is_grad_enabled():
        weights = attention_weights(q, k, mask=mask, bias=bias, scale=scale)
        return drop(weights, dropout) @ _for_each_query_head(v, q.shape[1])
    grouped = q.shape[1] != k.shape[1]
    if bias is None and mask.is_plain_causal(T, S):
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=scale, dropout_p=dropout, enable_gqa=grouped
        )
    seen = mask.dense(T, S, q.device)
    if bias is not None:
        bias = bias.to(q.dtype)
        seen = bias if seen is None else bias.masked_fill(~seen, -torch.inf)
    return F.scaled_dot_product_attention(q, k, v, seen, dropout, scale=scale, enable_gqa=grouped)


def _for_each_query_head(kv: Float[Tensor, "B G S D"], n_heads: int) -> Float[Tensor, "B H S D"]:
    groups = n_heads // kv.shape[1]
    return kv if groups == 1 else kv.repeat_interleave(groups, dim=1)


class KV(NamedTuple):
    """What queries can look at: keys and values, and where each key stands (None where nobody asks)."""

    key: Float[Tensor, "B G S D"]
    value: Float[Tensor, "B G S E"]
    positions: Int[Tensor, "b S"] | None = None

    def pick(self, rows: Int[Tensor, "R"]) -> "KV":
        """The same for these rows of the batch; positions that many rows share (b = 1) stay shared."""
        positions = self.positions
        if positions is not None and len(positions) == len(self.key):
            positions = positions.index_select(0, rows)
        return KV(self.key.index_select(0, rows), self.value.index_select(0, rows), positions)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    n_heads: int
    kv_heads: int | None = None  # None: as many as heads; 1: multi-query (Shazeer 2019); between: grouped
    head_dim: int | None = None  # None: d_model / n_heads
    scale: float | None = None  # None: 1 / sqrt(head_dim)
    bias: bool = True  # in the four projections
    gate: bool = False  # multiply the heads by a sigmoid of the input (Jumper et al. 2021, algorithm 7)
    dropout: float = 0.0  # of the weights
    position: PositionConfig = PositionConfig()


class Heads(nn.Module):
    """The heads' attention, without a weight of its own: the one place to watch (`heedful.look.record`)."""

    def __init__(self, scale: float, dropout: float) -> None:
        super().__init__()
        self.scale, self.dropout = scale, dropout

    def forward(
        self, q: Float[Tensor, "B H T D"], kv: KV, mask: Mask, bias: Float[Tensor, "#B #H T S"] | None
    ) -> Float[Tensor, "B H T E"]:
        dropout = self.dropout if self.training else 0.0
        return attend(q, kv.key, kv.value, mask=mask, bias=bias, scale=self.scale, dropout=dropout)


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2). Raises InputError for widths that do not divide."""

    def __init__(self, d_model: int, config: AttentionConfig) -> None:
        super().__init__()
        head_dim = config.head_dim or d_model // config.n_heads
        kv_heads = config.kv_heads or config.n_heads
        if config.head_dim is None and d_model % config.n_heads:
            raise InputError(f"d_model {d_model} is no multiple of n_heads {config.n_heads}", fix="or give head_dim")
        if config.n_heads % kv_heads:
            raise InputError(f"n_heads {config.n_heads} is no multiple of kv_heads {kv_heads}")
        scale = head_dim**-0.5 if config.scale is None else config.scale
        inner = config.n_heads * head_dim
        self.n_heads, self.kv_heads, self.head_dim = config.n_heads, kv_heads, head_dim
        self.query = nn.Linear(d_model, inner, bias=config.bias)
        self.key = nn.Linear(d_model, kv_heads * head_dim, bias=config.bias)
        self.value = nn.Linear(d_model, kv_heads * head_dim, bias=config.bias)
        self.out = nn.Linear(inner, d_model, bias=config.bias)
        self.joint: nn.Module | None = None  # query, key and value as one map, for inference
        self.gate = nn.Linear(d_model, inner) if config.gate else None
        self.heads = Heads(scale, config.dropout)
        self.position = make_position(config.position, n_heads=config.n_heads, head_dim=head_dim, scale=scale)

    def queries(self, x: Float[Tensor, "B T C"], positions: Tensor | None = None) -> Float[Tensor, "B H T D"]:
        return self.position.rotate(self._split(self.query(self.position.enter(x, positions))), _places(positions))

    def keys_values(self, memory: Float[Tensor, "B S C"], positions: Tensor | None = None) -> KV:
        """Projects what may be looked at. Done once for a memory, and once for each token of a cached sequence."""
        key, places = self._split(self.key(self.position.enter(memory, positions))), _places(positions)
        return KV(self.position.rotate(key, places), self._split(self.value(memory)), places)

    def of_itself(
        self, x: Float[Tensor, "B T C"], positions: Tensor | None = None
    ) -> tuple[Float[Tensor, "B H T D"], KV]:
        """Queries, keys and values of the same tokens: by one product, where the maps are joined."""
        if self.joint is None:
            return self.queries(x, positions), self.keys_values(x, positions)
        places = _places(positions)
        q, key, value = self._split(self.joint(x)).split((self.n_heads, self.kv_heads, self.kv_heads), dim=1)
        return self.position.rotate(q, places), KV(self.position.rotate(key, places), value, places)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        kv: KV,
        *,
        mask: Mask,
        positions: Tensor | None = None,
        bias: Float[Tensor, "#B #H T S"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """What the queries made from `x` gather from `kv`.

        `positions` are places (int, (1 or B, T)) or, for the scheme "added", embeddings (1 or B, T, C).
        """
        return self.gather(x, self.queries(x, positions), kv, mask=mask, positions=positions, bias=bias)

    def gather(
        self,
        x: Float[Tensor, "B T C"],
        q: Float[Tensor, "B H T D"],
        kv: KV,
        *,
        mask: Mask,
        positions: Tensor | None = None,
        bias: Float[Tensor, "#B #H T S"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The same once the queries are there."""
        own = self.position.bias(q, _places(positions), kv.positions)
        if own is not None:
            bias = own if bias is None else bias + own
        heads = self.heads(q, kv, mask, bias).transpose(1, 2).flatten(2)  # (B, T, H*D)
        if self.gate is not None:
            heads = heads * self.gate(x).sigmoid()
        return self.out(heads)

    def _split(self, x: Float[Tensor, "B T HD"]) -> Float[Tensor, "B H T D"]:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


def _places(positions: Tensor | None) -> Tensor | None:
    """Positions that are places, and no embeddings."""
    return None if positions is None or positions.is_floating_point() else positions
