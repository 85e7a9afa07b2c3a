"""A language model: one causal stack between an embedding and its output (Radford et al. 2018, figure 1).

B batch, T tokens, V vocabulary, C model width, R rows of a running generation, K of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.attention import soft_capped
from heedful.core.block import BLOCKS, Blocks, Context, Stack, StackConfig
from heedful.core.cache import BlockCache
from heedful.core.embed import Embed, EmbedConfig, positions_of
from heedful.core.init import gpt2, xavier
from heedful.core.mask import EVERYONE, Mask


@dataclass(frozen=True, kw_only=True)
class LMConfig:
    d_model: int
    embed: EmbedConfig
    stack: StackConfig
    tied: bool = True  # the output matrix is the embedding's
    output_bias: bool = False
    softcap: float | None = None  # the bound of the logits; None: none (`heedful.core.attention.soft_capped`)


@dataclass(frozen=True)
class LMState:
    """A running generation: the cache of each block, and the number of tokens of each row, the position of its next."""

    caches: tuple[BlockCache, ...]
    lengths: Int[Tensor, "R"]

    def pick(self, rows: Int[Tensor, "K"]) -> "LMState":
        return _state([cache.pick(rows, None) for cache in self.caches], self.lengths[rows])

    def put(self, rows: Int[Tensor, "K"], newer: "LMState") -> "LMState":
        """Replaces these rows by those of another generation by the same model. Raises InputError where no row of this
        generation has read a token."""
        pairs = zip(self.caches, newer.caches, strict=True)
        caches = [cache.put(rows, other) for cache, other in pairs]
        return _state(caches, self.lengths.index_copy(0, rows, newer.lengths))

    def keep(self, length: int) -> "LMState":
        """The first so many tokens of each row; those behind them are forgotten."""
        return _state(self.caches, self.lengths.clamp(max=length))


def _state(caches: Iterable[BlockCache], lengths: Int[Tensor, "R"]) -> LMState:
    most = int(lengths.max()) if len(lengths) else 0
    each = None if bool((lengths == most).all()) else lengths
    return LMState(tuple(cache.keep(most, each) for cache in caches), lengths)


class LM(nn.Module):
    packs = True  # several documents may share a row: segments keep them apart

    def __init__(
        self, config: LMConfig, init: Callable[[nn.Module], None] | None = None, *, blocks: Blocks = BLOCKS
    ) -> None:
        """Initializes the weights with `init`; without it, like GPT-2, or where token vectors are scaled, like the
        Transformer. `blocks`: what a block's `kind` in the configuration may name."""
        super().__init__()
        self.config = config
        self.embed = Embed(config.d_model, config.embed)
        self.stack = Stack(config.d_model, config.stack, blocks)
        self.head = nn.Linear(config.d_model, config.embed.vocab_size, bias=config.output_bias)
        if init is not None:
            init(self)
        elif config.embed.scaled:
            xavier(self)
        else:
            gpt2(self, n_layers=config.stack.n_layers)
        if config.tied:
            self.head.weight = self.embed.tokens.weight

    @property
    def vocab_size(self) -> int:
        """The size of the vocabulary."""
        return self.config.embed.vocab_size

    def forward(self, tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each token.

        Segments: 0 is padding, the documents of a row are numbered from 1 and do not see each other; None where each
        row is one whole.
        """
        return self.logits(self.hidden(tokens, segments))

    def logits(self, hidden: Float[Tensor, "*B C"]) -> Float[Tensor, "*B V"]:
        """The logits of the following token, from the output of `hidden`."""
        found = self.head(hidden)
        return found if self.config.softcap is None else soft_capped(found, self.config.softcap)

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        prefix: int = 0,
        losses: list[Tensor] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The hidden states that `logits` turns into logits. A loss that never builds all logits starts here.

        The first `prefix` tokens of a row are visible to all tokens of their document, also to earlier ones. Blocks
        that have losses of their own leave them in `losses`.
        """
        first = torch.full((len(tokens),), prefix, device=tokens.device) if prefix else None
        positions = positions_of(tokens, segments)
        mask = Mask(causal=True, prefix=first, segments=None if segments is None else (segments, segments))
        context = Context(mask=mask, positions=positions, losses=losses)
        return self.stack(self.embed(tokens, positions), context)

    def start(
        self,
        source: Int[Tensor, "B S"],
        segments: Int[Tensor, "B S"] | None = None,
        size: int | None = None,
        *,
        causal: bool = True,
    ) -> LMState:
        """Reads what comes before the first token of `step`. Rows of unequal length are padded at their end, where
        `segments` is 0. With `size`, room for that many tokens per row is allocated at once; without, whenever it is
        used up. If it is not read causally it is a prefix, as in `hidden`."""
        B, S = source.shape
        caches = self.stack.start(size=size)
        if S:
            positions = torch.arange(S, device=source.device).expand(B, S)
            # In causal reading, padding comes after all tokens that matter.
            mask = Mask(causal=True) if causal else Mask(valid=None if segments is None else segments > 0)
            context = Context(mask=mask, positions=positions)
            _, caches = self.stack.step(self.embed(source, positions), context, caches)
        lengths = torch.full((B,), S, device=source.device) if segments is None else (segments > 0).sum(1)
        return _state(caches, lengths)

    def step(self, tokens: Int[Tensor, "R"], state: LMState) -> tuple[Float[Tensor, "R V"], LMState]:
        """The logits of what follows `tokens`, the newest of each row."""
        valid, positions = state.caches[0].past.valid(1), state.lengths[:, None]
        mask = EVERYONE if valid is None else Mask(valid=valid)
        context = Context(mask=mask, positions=positions)
        x, caches = self.stack.step(self.embed(tokens[:, None], positions), context, state.caches)
        return self.logits(x[:, 0]), LMState(caches, state.lengths + 1)

    def steps(self, tokens: Int[Tensor, "R T"], state: LMState) -> tuple[Float[Tensor, "R T V"], LMState]:
        """The logits of what follows each of `tokens`, the newest of rows of equal length: T steps at once."""
        positions = state.lengths[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        context = Context(mask=Mask(causal=True), positions=positions)
        x, caches = self.stack.step(self.embed(tokens, positions), context, state.caches)
        return self.logits(x), LMState(caches, state.lengths + tokens.shape[1])
