"""Looking inside a model: recorded attention weights, labels for heads, pictures and a page."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.look.draw import curves, heatmap, overview, score_by_length, to_bytes
    from heedful.look.labels import summary
    from heedful.look.page import attention_view
    from heedful.look.record import Recording

# `record` and `page` are in modules of their names: `from heedful.look.record import record`.
__all__ = [
    "Recording",
    "attention_view",
    "curves",
    "heatmap",
    "overview",
    "score_by_length",
    "summary",
    "to_bytes",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # so that type checkers report a misspelt name

    def __getattr__(name: str) -> object:
        """Imports each name when it is first used: recording needs no matplotlib. Raises AttributeError."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heedful.look import draw, labels, page, record

        return next(getattr(module, name) for module in (record, labels, page, draw) if hasattr(module, name))
