"""Exhibits: a deck's claims, each with the value that is computed here and a verdict, and perhaps a picture.

An exhibit is a function of the deck's claims, with its settings as keyword arguments:

    def five_queries(says: Says, *, scale: float = 0.7) -> Shown

It uses the project's public functions, and `beside` judges its numbers. For what is true or false and not a number (a
law, a claim in words), it makes a `Claim` itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from heedful.errors import InputError
from heedful.lab.paper import drawn, value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.look.architecture import Architecture

# agrees: to the digits that the deck prints; rounded: truncated instead of rounded there; open: the deck gives no
# answer, or an experiment's shorter form does not; quoted: a fact about the world, which cannot be computed here.
Verdict = Literal["agrees", "rounded", "wrong", "open", "quoted"]
WORST = ("wrong", "rounded", "agrees", "open", "quoted")  # an exhibit's verdict: the first of these among its lines
Leaf = float | int | str | bool | None
Value = Leaf | Sequence[Any]  # numbers, and tables of them

# Types of settings, limited to what is computed and drawn within seconds, or learnt within minutes.
Few = Annotated[int, Field(le=8)]  # pictures, or bits, each of which doubles the numbers
Side = Annotated[int, Field(le=32)]  # of a square in which every cell attends to every other
Rows = Annotated[int, Field(le=256)]  # of a table, or words of a sentence: each is drawn
Width = Annotated[int, Field(le=4096)]  # of vectors
Draws = Annotated[int, Field(le=4096)]  # examples that are generated or sampled
Steps = Annotated[int, Field(le=5000)]  # of a training


@dataclass(frozen=True)
class Says:
    """A deck's claims for one exhibit: values by claim, and the reasons why some are wrong."""

    values: Mapping[str, Value]
    why: Mapping[str, str]

    def __getitem__(self, claim: str) -> Value:
        return self.values[claim]

    def but(self, *claims: str) -> "Says":
        """The claims without these."""
        return Says({claim: value for claim, value in self.values.items() if claim not in claims}, self.why)


NOTHING_SAID = Says({}, {})


@dataclass(frozen=True)
class Claim:
    """One claim: the deck's value, the computed value, the verdict and, if they differ, the reason."""

    claim: str
    deck: Value
    computed: Value
    verdict: Verdict
    why: str = ""

    @property
    def reason(self) -> str:
        """Why the deck is wrong; empty if it agrees."""
        return self.why if self.verdict != "agrees" else ""


@dataclass(frozen=True)
class Shown:
    """The result of an exhibit. `draw` makes its picture, and is only called when one is needed; `text` is shown above
    the lines in a terminal."""

    lines: Sequence[Claim]
    draw: "Callable[[], Figure | Architecture] | None" = None
    text: str = ""

    @property
    def verdict(self) -> Verdict:
        found = {line.verdict for line in self.lines}
        return next((verdict for verdict in WORST if verdict in found), "open")

    def picture(self, kind: Literal["svg", "png"], *, dark: bool = False) -> bytes:
        """The picture as the content of a file. Raises InputError if there is none."""
        if self.draw is None:
            raise InputError("this exhibit has no picture", fix="print its lines")
        return drawn(self.draw, kind, dark=dark)

    def _repr_html_(self) -> str:
        """For a notebook: the lines as a table, and the picture."""

        def row(cells: Sequence[str], tag: str = "td") -> str:
            each = (f"<{tag} style='text-align: left'>{escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{''.join(each)}</tr>"

        rows = [
            row((line.claim, value(line.deck), value(line.computed), line.verdict, line.reason)) for line in self.lines
        ]
        parts = [f"<pre>{escape(self.text)}</pre>"] if self.text else []
        parts += ["<table>", row(("", "the deck", "here", "verdict", ""), "th"), *rows, "</table>"]
        if self.draw is not None:
            parts.append(self.picture("svg").decode())
        return "\n".join(parts)


Exhibit = Callable[..., Shown]


def beside(says: Says, computed: Mapping[str, object]) -> list[Claim]:
    """A line for each computed value, judged against the deck's value for that claim. Raises KeyError if nothing was
    computed for one of the deck's claims: an exhibit must show all of them."""
    missing = says.values.keys() - computed.keys()
    if missing:
        raise KeyError(f"nothing was computed for {', '.join(sorted(missing))}")
    lines = []
    for claim, result in computed.items():
        plain: Any = result.tolist() if isinstance(result, Tensor) else result  # numbers, strings, or lists of them
        deck = says.values.get(claim)
        lines.append(Claim(claim, deck, plain, judge(deck, plain), says.why.get(claim, "")))
    return lines


def unsaid(computed: Mapping[str, object]) -> list[Claim]:
    """A line for each computed value, where the deck makes no claim."""
    return beside(NOTHING_SAID, computed)


def holds(says: Says, claim: str, computed: Value, *, right: bool | None = None) -> Claim:
    """A line for a claim in words. It agrees if it is `right`; by default, if the computed value is true."""
    agrees = bool(computed) if right is None else right
    return Claim(claim, says.values.get(claim), computed, "agrees" if agrees else "wrong", says.why.get(claim, ""))


def near(says: Says, claim: str, computed: float | int, *, share: float = 0.05) -> Claim:
    """A line for a size in round numbers: "rounded" if it differs by at most this share."""
    said = says.values.get(claim)
    verdict = judge(said, computed)
    if verdict == "wrong" and isinstance(said, float | int) and abs(computed / said - 1) <= share:
        verdict = "rounded"
    return Claim(claim, said, computed, verdict, says.why.get(claim, ""))


def judge(deck: Value, computed: Value) -> Verdict:
    """The verdict on a printed value, to the largest number of decimals of any of its numbers; to one decimal if all
    are whole.

    `agrees`: each number is within half a unit of the last decimal; `rounded`: some are truncated there.
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
    """All numbers and strings of a table, row by row."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def _decimals(value: float) -> int:
    text = repr(value)
    return len(text.partition(".")[2]) if "e" not in text else 1


def table(rows: Sequence[Sequence[float | int]]) -> Tensor:
    """Numbers of a deck as a tensor in float64: exhibits compute in double precision."""
    return torch.tensor(rows, dtype=torch.float64)
