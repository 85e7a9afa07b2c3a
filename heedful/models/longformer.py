"""Longformer's block: tokens that attend to everything do so by maps of their own (Beltagy et al. 2020, section 3.1).

B batch, T tokens, C model width, G global tokens.
"""

from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.attention import Attention
from heedful.core.block import Block, BlockConfig, Context
from heedful.core.cache import BlockCache
from heedful.core.embed import positions_of
from heedful.core.mask import Mask
from heedful.errors import InputError


class LongformerBlock(Block):
    """The first `global_tokens` of each text are seen by all tokens, and see all: by `global_attention`, which shares
    the output map with the local one. Without any, those maps are kept, and not used."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        if not config.is_sparse:
            raise InputError("a block of longformer that sees all", fix="give window")
        super().__init__(d_model, config)
        self.global_tokens = config.global_tokens
        self.global_attention = Attention(d_model, config.attention)
        self.global_attention.out = self.self_attention.out

    def look_at_self(
        self, h: Float[Tensor, "B T C"], context: Context, cache: BlockCache | None
    ) -> tuple[Float[Tensor, "B T C"], BlockCache | None]:
        out, cache = super().look_at_self(h, context, cache)
        if not self.global_tokens:
            return out, cache
        positions = positions_of(h[..., 0], None) if context.positions is None else context.positions
        is_global = (positions < self.global_tokens).expand(len(h), -1)
        columns: Int[Tensor, G] = is_global.any(dim=0).nonzero()[:, 0]
        mask, attention = Mask.of(context.mask), self.global_attention
        segments = None if mask.segments is None else (mask.segments[0][:, columns], mask.segments[1])
        queries, kv = attention.queries(h[:, columns], positions[:, columns]), attention.keys_values(h, positions)
        seen_all = attention(queries, kv, mask=Mask(valid=mask.valid, segments=segments))
        seen_all = seen_all.where(is_global[:, columns, None], out[:, columns])
        return out.index_copy(1, columns, seen_all), cache


LONGFORMER = "longformer"  # its `kind` in a configuration
