"""Floor 1: attention, and what surrounds it in every transformer. It needs torch and nothing else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.core.attention import KV, Attention, AttentionConfig, Queries, attend, attention_weights
    from heedful.core.block import BLOCKS, MLP, Block, BlockConfig, Context, Memory, Residual, Stack, StackConfig
    from heedful.core.cache import BlockCache, Past
    from heedful.core.embed import Embed, EmbedConfig, positions_of, sinusoidal
    from heedful.core.experts import Experts, ExpertsConfig
    from heedful.core.mask import EVERYONE, Mask
    from heedful.core.norm import make_norm
    from heedful.core.position import Position, PositionConfig

__all__ = [
    "BLOCKS",
    "EVERYONE",
    "KV",
    "MLP",
    "Attention",
    "AttentionConfig",
    "Block",
    "BlockCache",
    "BlockConfig",
    "Context",
    "Embed",
    "EmbedConfig",
    "Experts",
    "ExpertsConfig",
    "Mask",
    "Memory",
    "Past",
    "Position",
    "PositionConfig",
    "Queries",
    "Residual",
    "Stack",
    "StackConfig",
    "attend",
    "attention_weights",
    "make_norm",
    "positions_of",
    "sinusoidal",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # so that a misspelt name is told before it runs

    def __getattr__(name: str) -> object:
        """Each is imported when it is asked for: not all modules here need torch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heedful.core import attention, block, cache, embed, experts, mask, norm, position

        return next(
            getattr(module, name)
            for module in (attention, block, cache, embed, experts, mask, norm, position)
            if hasattr(module, name)
        )
