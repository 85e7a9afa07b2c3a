"""Floor 1: attention, and what surrounds it in every transformer. It needs torch and nothing else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.core.attention import KV, Attention, AttentionConfig, Queries, attend, attention_weights
    from heedful.core.block import Block, BlockConfig, Context, Stack, StackConfig
    from heedful.core.cache import BlockCache, Past
    from heedful.core.embed import Embed, EmbedConfig, sinusoidal
    from heedful.core.mask import EVERYONE, Mask
    from heedful.core.position import PositionConfig

__all__ = [
    "EVERYONE",
    "KV",
    "Attention",
    "AttentionConfig",
    "Block",
    "BlockCache",
    "BlockConfig",
    "Context",
    "Embed",
    "EmbedConfig",
    "Mask",
    "Past",
    "PositionConfig",
    "Queries",
    "Stack",
    "StackConfig",
    "attend",
    "attention_weights",
    "sinusoidal",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # so that a misspelt name is told before it runs

    def __getattr__(name: str) -> object:
        """Each is imported when it is asked for: not all modules here need torch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heedful.core import attention, block, cache, embed, mask, position

        return next(
            getattr(module, name)
            for module in (attention, block, cache, embed, mask, position)
            if hasattr(module, name)
        )
