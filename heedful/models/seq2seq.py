"""The Transformer of Vaswani et al. 2017, figure 1: an encoder stack, and a decoder stack that looks at it.

B batch, S source tokens, T target tokens, V target vocabulary, C model width.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import BLOCKS, Blocks, Context, Memory, Stack, StackConfig
from heedful.core.cache import BlockCache
from heedful.core.embed import Embed, EmbedConfig, positions_of
from heedful.core.init import normal, t5, xavier
from heedful.core.mask import EVERYONE, Mask
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    d_model: int
    source: EmbedConfig
    target: EmbedConfig
    encoder: StackConfig
    decoder: StackConfig
    # Which of the three matrices are one: source, target and output; target and output; source and target.
    tied: Literal["all", "output", "inputs", "none"] = "all"
    output_bias: bool = False
    scaled_output: bool = False  # multiply by d_model^-0.5 what goes into the output matrix (Raffel et al. 2020)
    init: Literal["xavier", "normal", "t5"] = "xavier"  # how weights begin


@dataclass(frozen=True)
class Seq2SeqState:
    """A running decoding: the cache of each block, the mask of the memory, and the position of the next token.

    The rows of a beam share one memory: it is stored once for `shared` adjacent rows.
    """

    caches: tuple[BlockCache, ...]
    memory_mask: Mask
    position: int
    shared: int = 1

    def pick(self, rows: Int[Tensor, "R"]) -> "Seq2SeqState":
        owners = (rows // self.shared).tolist()
        shared = max(1, next((i for i, owner in enumerate(owners) if owner != owners[0]), len(owners)))
        kept = owners[::shared]
        if owners != [owner for owner in kept for _ in range(shared)]:
            shared, kept = 1, owners
        memory = self.caches[0].memory
        memories, mask = None, self.memory_mask
        if memory is not None and kept != [*range(len(memory.key))]:
            memories = torch.tensor(kept, dtype=torch.int64, device=rows.device)
            mask = mask if mask.valid is None else Mask(valid=mask.valid[memories])
        return Seq2SeqState(tuple(cache.pick(rows, memories) for cache in self.caches), mask, self.position, shared)


class Seq2Seq(nn.Module):
    packs = True  # several sentences may share a row: segments keep them apart

    def __init__(self, config: Seq2SeqConfig, *, blocks: Blocks = BLOCKS) -> None:
        """`blocks`: what a block's `kind` in the configuration may name."""
        super().__init__()
        joint = config.tied in ("all", "inputs")
        if joint and config.source.vocab_size != config.target.vocab_size:
            sizes = f"{config.source.vocab_size} and {config.target.vocab_size} tokens"
            raise InputError(f"vocabularies of {sizes} cannot share a matrix", fix='tied = "output"')
        self.config = config
        self.source = Embed(config.d_model, config.source)
        self.target = Embed(config.d_model, config.target, self.source.tokens if joint else None)
        self.encoder = Stack(config.d_model, config.encoder, blocks)
        self.decoder = Stack(config.d_model, config.decoder, blocks)
        self.head = nn.Linear(config.d_model, config.target.vocab_size, bias=config.output_bias)
        self.scale = config.d_model**-0.5 if config.scaled_output else 1.0
        match config.init:
            case "xavier":
                xavier(self)
            case "normal":
                normal(self)
            case "t5":
                t5(self, d_model=config.d_model)
        if config.tied in ("all", "output"):
            self.head.weight = self.target.tokens.weight

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each target token.

        Segments: 0 is padding, the sentences of a row are numbered from 1; None where each row is one whole sentence.
        """
        return self.head(self.hidden(source, target, source_segments, target_segments))

    def hidden(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The hidden states that `head` turns into logits. A loss that never builds all logits starts here."""
        seen = Mask(segments=_both(target_segments, source_segments))
        memory = Memory(self.encode(source, source_segments), seen, positions_of(source, source_segments))
        positions = positions_of(target, target_segments)
        mask = Mask(causal=True, segments=_both(target_segments, target_segments))
        context = Context(mask=mask, memory=memory, positions=positions)
        return self.decoder(self.target(target, positions), context) * self.scale

    def encode(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None) -> Float[Tensor, "B S C"]:
        positions = positions_of(source, segments)
        context = Context(mask=Mask(segments=_both(segments, segments)), positions=positions)
        return self.encoder(self.source(source, positions), context)

    def start(
        self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None, size: int | None = None
    ) -> Seq2SeqState:
        """Encodes once, and projects the memory once for every block. With `size`, room for that many tokens is
        allocated at the first step; without, whenever it is used up."""
        memory_mask = EVERYONE if segments is None else Mask(valid=segments > 0)
        memory = Memory(self.encode(source, segments), memory_mask, positions_of(source, segments))
        return Seq2SeqState(self.decoder.start(memory, size), memory_mask, 0)

    def step(self, tokens: Int[Tensor, "B"], state: Seq2SeqState) -> tuple[Float[Tensor, "B V"], Seq2SeqState]:
        """The logits of what follows `tokens`, the newest of each row."""
        x, state = next_hidden(self.target, self.decoder, tokens, state)
        return self.head(x * self.scale), state


def next_hidden(
    embed: Embed, decoder: Stack, tokens: Int[Tensor, "B"], state: Seq2SeqState
) -> tuple[Float[Tensor, "B C"], Seq2SeqState]:
    """The hidden states of `tokens`, the newest of each row, in a decoder that attends to a memory."""
    position = torch.full((1, 1), state.position, device=tokens.device)
    context = Context(mask=EVERYONE, memory=Memory(None, state.memory_mask), positions=position)
    x, caches = decoder.step(embed(tokens[:, None], position), context, state.caches)
    return x[:, 0], replace(state, caches=caches, position=state.position + 1)


def _both(queries: Tensor | None, keys: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """The segments of a mask; None where each row is one whole sentence. Raises InputError if one side has none."""
    if queries is None and keys is None:
        return None
    if queries is None or keys is None:
        raise InputError("segments of one side alone", fix="give them for source and target, or for neither")
    return queries, keys
