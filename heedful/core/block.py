"""One block, and a stack of them. There is no encoder class and no decoder class: an encoder is a stack with a
padding mask, a language model a stack with a causal mask, a decoder a causal stack that also looks at a memory.

B batch, T tokens, K tokens to look at, S memory tokens, C model width.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.attention import KV, Attention, AttentionConfig
from heedful.core.cache import BlockCache, Past
from heedful.core.compress import Compress, Groups, groups_after, groups_in
from heedful.core.config import check_words, unknown_key
from heedful.core.dropout import Dropout
from heedful.core.experts import Experts, ExpertsConfig
from heedful.core.mask import Mask
from heedful.core.norm import Norm, make_norm
from heedful.core.position import PositionConfig
from heedful.core.sparsity import Sparsity
from heedful.errors import InputError

MOST_LAYERS = 1000  # a config from elsewhere may say anything


def gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def quick_gelu(x: Tensor) -> Tensor:
    """An approximation that CLIP was trained with (Hendrycks and Gimpel 2016, section 2)."""
    return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "silu": F.silu,
}


@dataclass(frozen=True, kw_only=True)
class BlockConfig(Sparsity):
    kind: str = "transformer"  # which block it is: a key of BLOCKS, or of what its model adds to them
    attention: AttentionConfig
    compress: int | None = None  # keys and values of so many tokens become one (`heedful.core.compress`)
    d_ff: int  # width inside the MLP
    cross: AttentionConfig | None = None  # also look at a memory
    order: Literal["post", "pre", "sandwich"] = "post"  # where the norms of a residual stand
    norm: Norm = "layer"
    norm_eps: float = 1e-5
    activation: Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu"] = "relu"
    gated: bool = False  # activation(gate(x)) * up(x) inside the MLP (Shazeer 2020)
    bias: bool = True  # in the MLP
    mlp_dropout: float = 0.0  # between the maps of the MLP
    experts: ExpertsConfig | None = None  # so many MLPs in place of one, of which a token uses a few
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_words(self)
        if self.compress is not None:
            if self.compress < 2:
                raise InputError(f"{self.compress} tokens become one key", fix="give a compress of 2 or more")
            if self.is_sparse or self.attention.position.kind == "rotary":
                what = "compressed keys in a window or a block, or with rotary positions"
                raise InputError(what, fix="let layers take turns, and give another position")


@dataclass(frozen=True)
class Memory:
    """What cross-attention attends to. `x` is None where caches have its keys and values."""

    x: Float[Tensor, "M S C"] | None
    mask: Mask | Tensor  # which of it each query sees, as in Context
    positions: Int[Tensor, "#M S"] | None = None
    position_embeddings: Float[Tensor, "#M S C"] | None = None  # for the scheme "added"


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a stack needs besides its input: masks, positions and memory. It is passed on as a whole."""

    mask: Mask | Tensor  # a bool tensor, True where a query may attend: (T, S), (B, T, S) or (B, H, T, S)
    memory: Memory | None = None
    positions: Int[Tensor, "#B T"] | None = None
    position_embeddings: Float[Tensor, "#B T C"] | None = None  # for the scheme "added"
    bias: Float[Tensor, "#B #H T K"] | None = None  # a position bias that all blocks share
    groups: Groups | None = None  # the tokens whose keys are compressed
    grid: tuple[int, int] | None = None  # rows and columns, where the tokens are the patches of a picture
    losses: list[Tensor] | None = None  # auxiliary losses that blocks append; None: they are dropped


class MLP(nn.Module):
    """Two linear maps with an activation between, at each position alone (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, config.d_ff, bias=config.bias)
        self.gate = nn.Linear(d_model, config.d_ff, bias=config.bias) if config.gated else None
        self.down = nn.Linear(config.d_ff, d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.mlp_dropout)

    def forward(self, x: Float[Tensor, "B T C"]) -> Float[Tensor, "B T C"]:
        if self.gate is None:
            return self.down(self.dropout(self.activation(self.up(x))))
        return self.down(self.dropout(self.activation(self.gate(x)) * self.up(x)))


class Residual(nn.Module):
    """Adds what a branch found to what came in. The order of the norms is which of the three exist: post-norm
    (Vaswani et al. 2017) the outer one, pre-norm (Xiong et al. 2020) the inner one, sandwich (Ding et al. 2021)
    both sides of the branch."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()

        def norm(*orders: str) -> nn.Module:
            return make_norm(config.norm, d_model, config.norm_eps) if config.order in orders else nn.Identity()

        self.in_norm = norm("pre", "sandwich")
        self.branch_norm = norm("sandwich")
        self.out_norm = norm("post")
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B T C"], branch: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T C"]:
        return self.out_norm(x + self.dropout(self.branch_norm(branch(self.in_norm(x)))))


class Block(nn.Module):
    """Self-attention, then cross-attention where there is a memory, then an MLP or experts, each inside a residual."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()
        self.self_attention = Attention(d_model, config.attention)
        self.self_residual = Residual(d_model, config)
        self.cross_attention = Attention(d_model, config.cross) if config.cross is not None else None
        self.cross_residual = Residual(d_model, config) if config.cross is not None else None
        width = self.self_attention.key.out_features
        self.compress = None if config.compress is None else Compress(width, config.compress)
        make = partial(MLP, d_model, config)
        self.mlp: MLP | Experts = make() if config.experts is None else Experts(d_model, config.experts, make)
        self.mlp_residual = Residual(d_model, config)

    def forward(
        self, x: Float[Tensor, "B T C"], context: Context, cache: BlockCache | None = None
    ) -> tuple[Float[Tensor, "B T C"], BlockCache | None]:
        """The block's output, and the cache with these tokens in it where one was given. Raises InputError where a
        block that looks at a memory has none."""
        positions, embeddings, memory = context.positions, context.position_embeddings, context.memory

        def look_at_self(h: Tensor) -> Tensor:
            nonlocal cache
            out, cache = self.look_at_self(h, context, cache)
            return out

        def look_at_memory(h: Tensor) -> Tensor:
            kv = self.remember(memory) if cache is None else cache.memory
            assert self.cross_attention is not None
            if kv is None or memory is None:
                raise InputError("cross-attention without a memory", fix="give Context(memory=Memory(x, mask))")
            queries = self.cross_attention.queries(h, positions, embeddings)
            return self.cross_attention(queries, kv, mask=memory.mask)

        def feed_forward(h: Tensor) -> Tensor:
            if not isinstance(self.mlp, Experts):
                return self.mlp(h)
            valid = None if context.losses is None else Mask.of(context.mask).valid_queries
            return self.mlp(h, context.losses, valid)

        x = self.self_residual(x, look_at_self)
        if self.cross_residual is not None:
            x = self.cross_residual(x, look_at_memory)
        return self.mlp_residual(x, feed_forward), cache

    def look_at_self(
        self, h: Float[Tensor, "B T C"], context: Context, cache: BlockCache | None
    ) -> tuple[Float[Tensor, "B T C"], BlockCache | None]:
        """Self-attention alone, and the cache with these tokens in it."""
        positions, embeddings = context.positions, context.position_embeddings
        queries = self.self_attention.queries(h, positions, embeddings)
        kv = self.self_attention.keys_values(h, positions, embeddings)
        if cache is not None:
            cache = cache.append(kv)
            kv = cache.past.kv()
        if self.compress is not None:
            assert context.groups is not None
            kv = self.compress(kv, context.groups.tokens)
            if cache is not None:
                cache = cache.compress(kv, context.groups.counts)
                kv = cache.compressed.kv()
        return self.self_attention(queries, kv, mask=context.mask, bias=context.bias), cache

    def remember(self, memory: Memory | None) -> KV | None:
        """The memory's keys and values, projected once for all steps of a decoding; None without a memory."""
        if self.cross_attention is None or memory is None or memory.x is None:
            return None
        return self.cross_attention.keys_values(memory.x, memory.positions, memory.position_embeddings)


# By the kind that a configuration names. A model may add blocks of its own, which are called as this one is.
Blocks = Mapping[str, Callable[[int, BlockConfig], nn.Module]]
BLOCKS: Blocks = {"transformer": Block}


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    n_layers: int
    block: BlockConfig
    pattern: tuple[BlockConfig, ...] = ()  # in place of `block`, by turns: layer i is pattern[i % len(pattern)]
    final_norm: bool = False  # pre-norm stacks end in one, post-norm stacks have it already
    shared_position: PositionConfig = PositionConfig()  # one bias for all blocks (T5)
    dropout: float = 0.0  # of what comes out at the end

    def __post_init__(self) -> None:
        if self.n_layers > MOST_LAYERS:
            raise InputError(f"{self.n_layers} layers are more than {MOST_LAYERS}", fix="give fewer n_layers")

    @property
    def layers(self) -> list[BlockConfig]:
        """The block of each layer."""
        pattern = self.pattern or (self.block,)
        return [pattern[i % len(pattern)] for i in range(self.n_layers)]


class Stack(nn.Module):
    """Raises InputError for a kind of block that is not one of `blocks`."""

    def __init__(self, d_model: int, config: StackConfig, blocks: Blocks = BLOCKS) -> None:
        super().__init__()
        block, attention = config.block, config.block.attention
        for layer in config.layers:
            if layer.kind not in blocks:
                raise unknown_key(layer.kind, [*blocks], where="block.kind")
        self.blocks = nn.ModuleList(blocks[layer.kind](d_model, layer) for layer in config.layers)
        self.reaches = [(layer.sparsity, layer.compress) for layer in config.layers]
        self.by_nearness = any(sparsity.is_sparse or compress is not None for sparsity, compress in self.reaches)
        self.norm = make_norm(block.norm, d_model, block.norm_eps) if config.final_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        head_dim = attention.head_dim or d_model // attention.n_heads
        shared = config.shared_position.kind
        if shared not in ("none", "alibi", "buckets"):
            raise InputError(f"blocks cannot share the position scheme {shared!r}", fix="give it to their attention")
        self.shares_position = shared != "none"
        self.position = config.shared_position.make(n_heads=attention.n_heads, head_dim=head_dim, scale=head_dim**-0.5)

    def forward(self, x: Float[Tensor, "B T C"], context: Context) -> Float[Tensor, "B T C"]:
        """The stack's output for whole texts."""
        for block, given in self._with_contexts(context, x, None):
            x, _ = block(x, given)
        return self._out(x)

    def step(
        self, x: Float[Tensor, "B T C"], context: Context, caches: tuple[BlockCache, ...]
    ) -> tuple[Float[Tensor, "B T C"], tuple[BlockCache, ...]]:
        """The stack's output for the newest tokens, and the blocks' caches (`start`) with these tokens in them."""
        newer = []
        for (block, given), cache in zip(self._with_contexts(context, x, caches), caches, strict=True):
            x, cache = block(x, given, cache)
            newer.append(cache)
        return self._out(x), tuple(newer)

    def each(self, x: Float[Tensor, "B T C"], context: Context) -> Iterator[Float[Tensor, "B T C"]]:
        """The stack's output if it ended at each of its layers in turn."""
        for block, own in self._with_contexts(context, x, None):
            x, _ = block(x, own)
            yield self._out(x)

    def start(self, memory: Memory | None = None, size: int | None = None) -> tuple[BlockCache, ...]:
        """Empty caches, with the keys and values of the memory, and room for `size` tokens a row (None: any number)."""
        past = Past(size)
        memories = zip(self.remembered(memory), self.reaches, strict=True)
        return tuple(BlockCache(past, kv, size=compress) for kv, (_, compress) in memories)

    def remembered(self, memory: Memory | None) -> list[KV | None]:
        """The keys and values of the memory in each block."""
        blocks: Iterable[Any] = self.blocks
        return [block.remember(memory) for block in blocks]

    def _with_contexts(
        self, context: Context, x: Float[Tensor, "B T C"], cache: tuple[BlockCache, ...] | None
    ) -> list[tuple[nn.Module, Context]]:
        """Each block with its context: with the bias that all blocks share, and the mask of what the block sees."""
        if not self.by_nearness and not self.shares_position:
            return [(block, context) for block in self.blocks]
        past, keys = Past() if cache is None else cache[0].past, context.positions
        if cache is not None and keys is not None:
            keys = past.positions_with(keys)
        contexts: dict[tuple[Sparsity, int | None], Context] = {}
        for sparsity, compress in dict.fromkeys(self.reaches):
            mask, groups, at = context.mask, None, keys
            if sparsity.is_sparse:
                mask = Mask.of(mask).within(sparsity, context.positions, keys)
            if compress is not None:
                T = x.shape[1]
                if cache is None and keys is not None:
                    groups = groups_in(keys, compress)
                else:
                    groups = groups_after(past, T, compress, x.device)
                mask = Mask.of(mask).at(groups.ends, groups.valid, T, past.length + T)
                at = None if keys is None else torch.take_along_dim(keys, groups.ends, dim=1)
            bias = self.position.bias(None, context.positions, at) if self.shares_position else context.bias
            contexts[sparsity, compress] = replace(context, mask=mask, groups=groups, bias=bias)
        return [(block, contexts[reach]) for block, reach in zip(self.blocks, self.reaches, strict=True)]

    def _out(self, x: Tensor) -> Tensor:
        return self.dropout(self.norm(x))
