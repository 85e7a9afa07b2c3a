"""Attention: each query gathers values from the keys that it may see.

Two functions hold the mathematics and one module holds the weights. The module knows nothing of self or cross,
of training or decoding: it is given keys and values, and where they come from is its caller's business.

    queries = attention.queries(x, positions)
    kv = attention.keys_values(memory, positions)
    out = attention(queries, kv, mask=mask)

B batch, T queries, S keys, H query heads, G key heads (G divides H), D head width, C model width, M memory width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core import kernels
from heedful.core.config import check_words
from heedful.core.dropout import dropout as drop
from heedful.core.mask import EVERYONE, AdditiveMask, Mask, TiledMask
from heedful.core.norm import Norm, make_norm
from heedful.core.position import PositionConfig
from heedful.errors import InputError


def attention_weights(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B G S D"],
    *,
    mask: Mask | Tensor,
    bias: Float[Tensor, "#B #H T S"] | None = None,
    scale: float,
    softcap: float | None = None,
) -> Float[Tensor, "B H T S"]:
    """softmax(scale * q k' + bias), over the keys that the mask allows (Vaswani et al. 2017, equation 1). A mask may be
    a bool tensor, True where a query may attend: (T, S), (B, T, S) or (B, H, T, S).

    A query without any visible key gets zeros. The bias is added after scaling, whatever its size. With a `softcap`,
    scaled products stay between -softcap and softcap (`soft_capped`).
    """
    mask, S = Mask.of(mask), k.shape[2]
    B, H, T, _ = q.shape
    mask.refuse_other_sizes(B, H, T, S)
    scores = (q * scale) @ _for_each_query_head(k, H).mT
    if softcap is not None:
        scores = soft_capped(scores, softcap)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    return masked_softmax(scores, mask.dense(T, S, q.device), mask.additive(T, S, q.device, scores.dtype))


def soft_capped(x: Float[Tensor, "*shape"], cap: float) -> Float[Tensor, "*shape"]:
    """cap * tanh(x / cap), which is x where x is small (Gemma Team 2024, section 2)."""
    return cap * torch.tanh(x / cap)


def masked_softmax(
    scores: Float[Tensor, "*B T S"], visible: Tensor | None, additive: AdditiveMask | None = None
) -> Float[Tensor, "*B T S"]:
    """The project's one softmax of scores: over the last axis, where `visible` (bool, broadcasting); zeros where no key
    is. torch computes it in float32 whatever the dtype of the scores. `additive` is the same mask in its other form.
    """
    if visible is None:
        return scores.softmax(dim=-1)
    if additive is not None:
        weights = (scores + additive.bias).softmax(dim=-1)
        return weights if additive.has_key is None else weights * additive.has_key
    no_key = ~visible.any(dim=-1, keepdim=True)
    return scores.masked_fill(~visible, -torch.inf).softmax(dim=-1).masked_fill(no_key, 0.0)


def attend(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B G S D"],
    v: Float[Tensor, "B G S E"],
    *,
    mask: Mask | Tensor,
    bias: Float[Tensor, "#B #H T S"] | None = None,
    scale: float,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "B H T E"]:
    """`attention_weights(q, k, ...) @ v`, in value and in gradient, by the fastest way that the device has. Without a
    bias, the cost of a sparse mask is that of the pairs that it allows."""
    mask, S = Mask.of(mask), k.shape[2]
    B, H, T, _ = q.shape
    tiled = None if bias is not None else mask.tiled(T, S, q.device)
    if tiled is not None:
        mask.refuse_other_sizes(B, H, T, S)
        return _attend_in_tiles(q, k, v, tiled, scale=scale, softcap=softcap, dropout=dropout)
    plain = bias is None and not dropout and k.shape[3] == v.shape[3]
    if softcap is not None or kernels.explicit_attention(q, plain=plain):  # torch's fused kernel knows no caps
        weights = attention_weights(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
        return drop(weights, dropout) @ _for_each_query_head(v, H)
    mask.refuse_other_sizes(B, H, T, S)
    if not torch.compiler.is_exporting() and v.shape[2] != S:  # torch's fused kernel would read beyond them
        raise InputError(f"{S} keys and {v.shape[2]} values", fix="give as many values as keys")
    grouped = k.shape[1] != H
    if bias is None and mask.is_plain_causal(T, S):
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=scale, dropout_p=dropout, enable_gqa=grouped
        )
    opened = mask.opened(T, S, q.device)
    visible = mask.dense(T, S, q.device) if opened is None else opened.visible
    if bias is not None:
        bias = bias.to(q.dtype)
        visible = bias if visible is None else bias.masked_fill(~visible, -torch.inf)
    found = F.scaled_dot_product_attention(q, k, v, visible, dropout, scale=scale, enable_gqa=grouped)
    return found if opened is None else found.masked_fill(opened.blind, 0.0)


def _attend_in_tiles(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B G S D"],
    v: Float[Tensor, "B G S E"],
    tiled: TiledMask,
    *,
    scale: float,
    softcap: float | None,
    dropout: float,
) -> Float[Tensor, "B H T E"]:
    """Gathers once for all tiles, so that the gradients are gathered once too."""
    queries = q.index_select(2, tiled.queries).split(tiled.query_counts, dim=2)
    keys, values = (part.index_select(2, tiled.keys).split(tiled.key_counts, dim=2) for part in (k, v))
    tiles = zip(queries, keys, values, tiled.masks, strict=True)
    outputs = [attend(*qkv, mask=mask, scale=scale, softcap=softcap, dropout=dropout) for *qkv, mask in tiles]
    return torch.cat(outputs, dim=2).index_select(2, tiled.queries.argsort())


def _for_each_query_head(kv: Float[Tensor, "B G S D"], n_heads: int) -> Float[Tensor, "B H S D"]:
    groups = n_heads // kv.shape[1]
    return kv if groups == 1 else kv.repeat_interleave(groups, dim=1)


class Queries(NamedTuple):
    """Queries and their positions (None: not needed). `gate` multiplies each channel of the result (None: no gate).
    `x` is what they were projected from."""

    query: Float[Tensor, "R H T D"]
    positions: Int[Tensor, "r T"] | None = None
    gate: Float[Tensor, "R T HE"] | None = None
    x: Float[Tensor, "R T C"] | None = None

    def shared(self, rows: int) -> "Queries":
        """Adjacent rows as more queries of one row, so that there are `rows`."""
        query, positions, gate, x = self
        if positions is not None:
            positions = positions.expand(len(query), -1).reshape(rows, -1)
        if gate is not None:
            gate = gate.reshape(rows, -1, gate.shape[2])
        return Queries(query.unflatten(0, (rows, -1)).transpose(1, 2).flatten(2, 3), positions, gate, x)


class KV(NamedTuple):
    """Keys and values, and the positions of the keys (None: not needed)."""

    key: Float[Tensor, "B G S D"]
    value: Float[Tensor, "B G S E"]
    positions: Int[Tensor, "b S"] | None = None

    def pick(self, rows: Int[Tensor, "R"]) -> "KV":
        """These rows of the batch; positions that all rows share (b = 1) stay shared."""
        positions = self.positions
        if positions is not None and len(positions) == len(self.key):
            positions = positions.index_select(0, rows)
        return KV(self.key.index_select(0, rows), self.value.index_select(0, rows), positions)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    n_heads: int
    kv_heads: int | None = None  # None: as many as heads; 1: multi-query (Shazeer 2019); between: grouped
    head_dim: int | None = None  # None: d_model / n_heads
    d_memory: int | None = None  # the width of what keys and values are projected from; None: d_model
    scale: float | None = None  # None: 1 / sqrt(head_dim)
    bias: bool = True  # in the four projections
    out_bias: bool | None = None  # in the last of them; None: as in the others
    key_bias: bool | None = None  # in that of keys, where softmax takes it away again; None: as in the others
    norm: Norm | None = None  # of each head's queries and keys, before rotation; None: none (Henry et al. 2020)
    norm_eps: float = 1e-6  # of that norm
    softcap: float | None = None  # what bounds the scaled products; None: nothing
    gate: bool = False  # multiply the heads by a sigmoid of the input (Jumper et al. 2021, algorithm 7)
    dropout: float = 0.0  # of the weights
    position: PositionConfig = PositionConfig()

    def __post_init__(self) -> None:
        check_words(self)
        for name in ("n_heads", "kv_heads", "head_dim", "d_memory"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise InputError(f"{name} is {size}", fix="give 1 or more")


class Heads(nn.Module):
    """The heads' attention, without a weight of its own: the one place to watch (`heedful.look.record`)."""

    def __init__(self, scale: float, dropout: float, softcap: float | None = None) -> None:
        super().__init__()
        self.scale, self.dropout, self.softcap = scale, dropout, softcap

    def forward(
        self, q: Float[Tensor, "B H T D"], kv: KV, mask: Mask, bias: Float[Tensor, "#B #H T S"] | None
    ) -> Float[Tensor, "B H T E"]:
        dropout = self.dropout if self.training else 0.0
        return attend(
            q, kv.key, kv.value, mask=mask, bias=bias, scale=self.scale, softcap=self.softcap, dropout=dropout
        )

    def asks(self, q: Float[Tensor, "B H T D"], *others: object) -> tuple[int, int]:
        """How many heads and queries a call with these arguments has."""
        return q.shape[1], q.shape[2]

    def weights(
        self,
        q: Float[Tensor, "B H T D"],
        kv: KV,
        mask: Mask,
        bias: Float[Tensor, "#B #H T S"] | None,
        *,
        heads: Sequence[int] | None = None,
        queries: Sequence[int] | None = None,
    ) -> Float[Tensor, "B h t S"]:
        """What `forward` weighs values by, before dropout: of some heads and queries alone where they are given. A
        compressed key's weight is shared equally by the tokens that it stands for, if each row is one text."""
        k, indices, tokens = kv.key, mask.indices, q.shape[2] + (mask.start or 0)
        if heads is not None:
            shared = q.shape[1] // k.shape[1]  # query heads for each key head
            q, k = q[:, list(heads)], k[:, [head // shared for head in heads]]
            bias = bias if bias is None or bias.shape[1] == 1 else bias[:, list(heads)]
        visible = mask.dense(q.shape[2], k.shape[2], q.device)
        if heads is not None and visible is not None and visible.shape[1] > 1:
            visible = visible[:, list(heads)]
            mask = Mask(allowed=visible)
        if queries is not None:
            rows = list(queries)
            mask = EVERYONE if visible is None else Mask(allowed=visible[:, :, rows])
            q, bias = q[:, :, rows], bias if bias is None else bias[:, :, rows]
        weights = attention_weights(q, k, mask=mask, bias=bias, scale=self.scale, softcap=self.softcap)
        return weights if indices is None else _shared_by_tokens(weights, indices, tokens)


def _shared_by_tokens(weights: Float[Tensor, "B H T M"], ends: Int[Tensor, "#B M"], S: int) -> Float[Tensor, "B H T S"]:
    shared = weights.new_zeros(*weights.shape[:3], S)
    size = int(ends[0, 0]) + 1 if ends.numel() else 1
    for back in range(size):
        shared.scatter_(3, (ends - back)[:, None, None].expand_as(weights), weights / size)
    return shared


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2). Raises InputError for widths that do not divide.

    Positions are where tokens stand, (1 or B, T) whole numbers; position embeddings (1 or B, T, C) are for the scheme
    "added" alone.
    """

    def __init__(self, d_model: int, config: AttentionConfig) -> None:
        super().__init__()
        head_dim = d_model // config.n_heads if config.head_dim is None else config.head_dim
        kv_heads = config.n_heads if config.kv_heads is None else config.kv_heads
        if config.head_dim is None and d_model % config.n_heads:
            what = f"d_model {d_model} is no multiple of n_heads {config.n_heads}"
            raise InputError(what, fix="choose another n_heads, or give head_dim")
        if config.n_heads % kv_heads:
            raise InputError(f"n_heads {config.n_heads} is no multiple of kv_heads {kv_heads}")
        if head_dim < 1:
            raise InputError(f"d_model is {d_model}", fix="give 1 or more")
        scale = head_dim**-0.5 if config.scale is None else config.scale
        inner = config.n_heads * head_dim
        self.head_dim = head_dim
        self.query = nn.Linear(d_model, inner, bias=config.bias)
        d_memory = d_model if config.d_memory is None else config.d_memory
        key_bias = config.bias if config.key_bias is None else config.key_bias
        self.key = nn.Linear(d_memory, kv_heads * head_dim, bias=key_bias)
        self.value = nn.Linear(d_memory, kv_heads * head_dim, bias=config.bias)
        self.out = nn.Linear(inner, d_model, bias=config.bias if config.out_bias is None else config.out_bias)
        self.gate = nn.Linear(d_model, inner) if config.gate else None
        self.query_norm, self.key_norm = (
            nn.Identity() if config.norm is None else make_norm(config.norm, head_dim, config.norm_eps)
            for _ in range(2)
        )
        self.heads = Heads(scale, config.dropout, config.softcap)
        self.position = config.position.make(n_heads=config.n_heads, head_dim=head_dim, scale=scale)

    def queries(
        self,
        x: Float[Tensor, "R T C"],
        positions: Int[Tensor, "#R T"] | None = None,
        position_embeddings: Float[Tensor, "#R T C"] | None = None,
    ) -> Queries:
        """Projects the input of the queries."""
        query = self.query_norm(self._split(self.query(self.position.enter(x, position_embeddings))))
        gate = None if self.gate is None else self.gate(x).sigmoid()
        return Queries(self.position.rotate(query, positions), positions, gate, x)

    def keys_values(
        self,
        memory: Float[Tensor, "B S M"],
        positions: Int[Tensor, "#B S"] | None = None,
        position_embeddings: Float[Tensor, "#B S M"] | None = None,
    ) -> KV:
        """Projects keys and values: once for a memory, and once for each token of a cached sequence."""
        key = self.key_norm(self._split(self.key(self.position.enter(memory, position_embeddings))))
        return KV(self.position.rotate(key, positions), self._split(self.value(memory)), positions)

    def forward(
        self, queries: Queries, kv: KV, *, mask: Mask | Tensor, bias: Float[Tensor, "#B #H T S"] | None = None
    ) -> Float[Tensor, "R T C"]:
        """The attention's output for each query.

        Adjacent rows of queries may share a row of `kv`, equally many each (R is a multiple of B), if the mask is the
        same for all queries of a row and there is no bias. Raises InputError otherwise.
        """
        R, _, T, _ = queries.query.shape
        mask = Mask.of(mask)
        rows = kv.key.shape[0]  # len() would fix it in a graph that is exported
        if rows != R:
            if rows == 0 or R % rows:
                raise InputError(f"{R} rows of queries cannot share {rows} rows of keys", fix="equally many to each")
            if bias is not None or mask.tells_queries:
                what = "rows of queries that share keys, with a bias or a mask that tells one query from another"
                raise InputError(what, fix="give each its own row of keys")
            queries = queries.shared(rows)
        own = self.position.bias(queries.query, queries.positions, kv.positions)
        if own is not None:
            bias = own if bias is None else bias + own
        found = self.heads(queries.query, kv, mask, bias).transpose(1, 2).flatten(2)  # (B, T, H*E)
        if queries.gate is not None:
            found = found * queries.gate
        out = self.out(found)
        return out.view(R, T, out.shape[-1])

    def _split(self, x: Float[Tensor, "B T HD"]) -> Float[Tensor, "B H T D"]:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
