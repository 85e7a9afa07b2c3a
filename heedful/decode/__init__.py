"""From next-token logits to hypotheses: greedy search, beam search and sampling, and the rules they obey."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.decode.continuous import NextToken, Session
    from heedful.decode.contract import Hypothesis
    from heedful.decode.rules import Rule
    from heedful.decode.search import beam, greedy, sample
    from heedful.decode.settings import Decoding, Sampling

__all__ = [
    "Decoding",
    "Hypothesis",
    "NextToken",
    "Rule",
    "Sampling",
    "Session",
    "beam",
    "greedy",
    "sample",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # so that a misspelt name is told before it runs

    def __getattr__(name: str) -> object:
        """Each is imported when it is asked for: not all modules here need torch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heedful.decode import continuous, contract, rules, search, settings

        modules = (contract, rules, search, settings, continuous)
        return next(getattr(module, name) for module in modules if hasattr(module, name))
