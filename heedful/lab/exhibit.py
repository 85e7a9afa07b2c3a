"""What an exhibit is: a deck's claims, each beside what comes out here, a verdict, and perhaps a picture.

An exhibit is a function of what the deck says, with its settings as keywords:

    def five_queries(says: Says, *, scale: float = 0.7) -> Shown

It computes by the public functions of the house, and `beside` judges numbers. What holds or fails without being a
number (a law, a claim in words) is a `Claim` of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.look.architecture import Architecture

# agrees: to the digits that the deck prints; rounded: cut off after them; open: the deck gives no
# answer; quoted: a fact of the world, which nothing here can compute.
Verdict = Literal["agrees", "rounded", "wrong", "open", "quoted"]
WORST = ("wrong", "rounded", "agrees", "open", "quoted")  # what an exhibit's lines come to, the first that any has
Leaf = float | int | str | bool | None
Value = Leaf | Sequence[Any]  # numbers, and tables of them

# Settings of exhibits, each at most as large as is computed and drawn within seconds, or learnt within minutes.
Few = Annotated[int, Field(le=8)]  # each of which is a picture, or twice as many numbers as the one before
Side = Annotated[int, Field(le=32)]  # of a square whose every cell looks at every other
Rows = Annotated[int, Field(le=256)]  # of a table, or words of a sentence: what is drawn one by one
Width = Annotated[int, Field(le=4096)]  # of vectors
Draws = Annotated[int, Field(le=4096)]  # examples that are made, or drawn at random
Steps = Annotated[int, Field(le=5000)]  # of a training


@dataclass(frozen=True)
class Says:
    """What a deck says of one exhibit: values by claim, and why those are wrong that are."""

    values: Mapping[str, Value]
    why: Mapping[str, str]

    def __getitem__(self, claim: str) -> Value:
        return self.values[claim]

    def but(self, *claims: str) -> "Says":
        """All but these claims."""
        return Says({claim: value for claim, value in self.values.items() if claim not in claims}, self.why)


NOTHING_SAID = Says({}, {})


@dataclass(frozen=True)
class Claim:
    """One claim: what the deck says, what comes out, the verdict and, where they differ, why."""

    claim: str
    deck: Value
    computed: Value
    verdict: Verdict
    why: str = ""

    @property
    def reason(self) -> str:
        """Why the deck is not right, where it is not."""
        return self.why if self.verdict != "agrees" else ""


@dataclass(frozen=True)
class Shown:
    """What an exhibit came to. `draw` makes its picture, and is not called before one is asked for; `text` is what a
    terminal shows above the lines."""

    lines: Sequence[Claim]
    draw: "Callable[[], Figure | Architecture] | None" = None
    text: str = ""

    @property
    def verdict(self) -> Verdict:
        found = {line.verdict for line in self.lines}
        return next((verdict for verdict in WORST if verdict in found), "open")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from heedful.lab.paper import as_html

        return as_html(self)


Exhibit = Callable[..., Shown]


def beside(says: Says, computed: Mapping[str, object]) -> list[Claim]:
    """A line for each computed value, judged against what the deck says of that claim. Raises KeyError where the deck
    makes a claim of which nothing was computed: an exhibit shows all of it."""
    missing = says.values.keys() - computed.keys()
    if missing:
        raise KeyError(f"nothing was computed for {', '.join(sorted(missing))}")
    lines = []
    for claim, value in computed.items():
        plain: Any = value.tolist() if isinstance(value, Tensor) else value  # numbers, words, or lists of them
        deck = says.values.get(claim)
        lines.append(Claim(claim, deck, plain, judge(deck, plain), says.why.get(claim, "")))
    return lines


def unsaid(computed: Mapping[str, object]) -> list[Claim]:
    """A line for each computed value that the deck makes no claim of."""
    return beside(NOTHING_SAID, computed)


def holds(says: Says, claim: str, computed: Value, *, right: bool | None = None) -> Claim:
    """A line for a claim in words, which came out `right` or wrong: by default, as it was found to be true or not."""
    agrees = bool(computed) if right is None else right
    return Claim(claim, says.values.get(claim), computed, "agrees" if agrees else "wrong", says.why.get(claim, ""))


def near(says: Says, claim: str, computed: float | int, *, share: float = 0.05) -> Claim:
    """A line for a size that is told in round numbers: "rounded" within this share of it."""
    said = says.values.get(claim)
    verdict = judge(said, computed)
    if verdict == "wrong" and isinstance(said, float | int) and abs(computed / said - 1) <= share:
        verdict = "rounded"
    return Claim(claim, said, computed, verdict, says.why.get(claim, ""))


def judge(deck: Value, computed: Value) -> Verdict:
    """How a printed value stands to the computed one, by the most decimals that any of its numbers has, and one
    where all are whole.

    `agrees`: each is within half a unit of the last decimal; `rounded`: it was cut off there.
    """
    if deck is None:
        return "open"
    said, found = leaves(deck), leaves(computed)
    if len(said) != len(found):
        return "wrong"
    unit = 10.0 ** -max((_decimals(value) for value in said if isinstance(value, float)), default=1)
    verdicts = {_judge(one, other, unit) for one, other in zip(said, found, strict=True)}
    return next(verdict for verdict in WORST if verdict in verdicts)


def _judge(said: Leaf, found: Leaf, unit: float) -> Verdict:
    if isinstance(said, str | bool | None) or isinstance(found, str | bool | None):
        return "agrees" if said == found else "wrong"
    if abs(said - found) <= (0.5 + 1e-6) * unit:
        return "agrees"
    return "rounded" if 0 <= abs(found) - abs(said) < unit and said * found >= 0 else "wrong"


def leaves(value: Value) -> list[Leaf]:
    """All numbers and words of a table, row after row."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def _decimals(value: float) -> int:
    text = repr(value)
    return len(text.partition(".")[2]) if "e" not in text else 1


def table(rows: Sequence[Sequence[float | int]]) -> Tensor:
    """Numbers of a deck as a tensor in float64, in which exhibits compute."""
    return torch.tensor(rows, dtype=torch.float64)
