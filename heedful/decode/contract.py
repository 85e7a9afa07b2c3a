"""What a search needs of a model, its options, and its results.

Sizes: B sentences, S source length, R rows (running sentences times beams or samples), V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Required, TypedDict, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.rules import Rule

Own = TypeVar("Own", bound="State")
ATTENDED = 512  # tokens that take as long to attend to as all else that is done for a token, about


@runtime_checkable
class State(Protocol):
    """A model's state between steps."""

    def pick(self: Own, rows: Int[Tensor, "R"]) -> Own:
        """A state whose row i is the old row `rows[i]`: reorders, repeats and drops rows."""


StateType = TypeVar("StateType", bound=State)


@runtime_checkable
class Generator(Protocol[StateType]):
    """A model that reads a source once and then gives the logits of one token after another."""

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> StateType:
        """Read the source; `segments` is 0 where it is padding."""

    def step(self, tokens: Int[Tensor, "R"], state: StateType) -> tuple[Float[Tensor, "R V"], StateType]:
        """Logits of the next token, given the last `tokens`; the search may overwrite them."""


class SearchOptions(TypedDict, total=False):
    """The options of every search, as keyword arguments. Those without a default are required.

    `bos` is the input of the first step, for all sentences or for each: a language model continues with the last token
    of its prompt, after `start` has read the others. `eos` is the end token, or all end tokens. `longest` limits the
    new tokens, including the end token, for all sentences or for each; `shortest` (0) is the fewest tokens before the
    end token; `forbidden` tokens never come; `rules` are applied before these two. `prefix` has the first tokens of
    each sentence, which are forced whatever the rules say, and scored like others. With `renormalise`, the
    probabilities that the rules and `forbidden` leave sum to 1. Hypotheses are ranked by their sum of log-probabilities
    / length ** `length_penalty` (1). Where all rows together have more than `at_once` tokens (None: any number), the
    search raises TooMuchError.
    """

    bos: Required[int | Int[Tensor, "B"]]
    eos: Required[int | Sequence[int]]
    longest: Required[int | Sequence[int] | Int[Tensor, "B"]]
    shortest: int
    forbidden: tuple[int, ...]
    rules: Sequence[Rule]
    prefix: Sequence[Sequence[int]] | None
    length_penalty: float
    renormalise: bool
    at_once: int | None


@runtime_checkable
class Budget(Protocol):
    """What one request may cost. `at_once`: tokens, times beams, that may be kept at the same time (None: any
    number)."""

    @property
    def at_once(self) -> int | None: ...

    def spend(self, tokens: int, at_once: int) -> None:
        """Before a model makes so many tokens, times beams, of which so many are kept at the same time. Raises
        TooMuchError where it may not."""


def with_attention(tokens: int) -> int:
    """As how many tokens a text of so many counts: one that attends to 512 others costs about twice as much."""
    return tokens + tokens * tokens // ATTENDED


@dataclass(frozen=True)
class Hypothesis:
    """One result: `tokens` without begin and end; `finished` if it has its end token.

    `token_log_probabilities` has one entry a token, and one more for the end token if finished (none where another
    library searched and did not tell); `log_probability` is their sum, and `score` that sum / length ** length_penalty.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]
    finished: bool
