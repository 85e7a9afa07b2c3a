"""What a drawing of a model says, in the manner of figure 1 of Vaswani et al. 2017: columns that are read from the
bottom up, boxes in them, and where what one of them made goes into another.

`architecture_layout` makes a picture of it and `architecture_text` lines for a terminal. Who knows the models describes
them in these words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["embed", "attention", "mlp", "norm", "linear", "recurrent", "convolution", "softmax"]


@dataclass(frozen=True, kw_only=True)
class Box:
    """One step. `name` is for links and for machines; `notes` are short lines below the label."""

    label: str
    kind: Kind
    notes: tuple[str, ...] = ()
    parameters: int = 0
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Add:
    """A vector of its own that is added to what passes, such as those of positions."""

    label: str
    notes: tuple[str, ...] = ()
    parameters: int = 0


@dataclass(frozen=True, kw_only=True)
class DrawnResidual:
    """What passes goes around the branch too, and both are added; `norm` is of the sum (post-norm)."""

    branch: tuple[Box, ...]
    norm: Box | None = None


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Boxes that all read what comes from below."""

    boxes: tuple[Box, ...]


Part = Box | Add | DrawnResidual | Beside


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """The same several times; `parameters` are of what the layers share, beside their own."""

    times: int
    parts: tuple[Part, ...]
    note: str = ""
    parameters: int = 0
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    title: str
    reads: str  # what comes in at its bottom
    parts: tuple[Part | Repeat, ...]
    gives: str = ""  # what comes out at its top; "": what a link takes from there


class Link(NamedTuple):
    """From the top of a column, or the side of a named part, to a named box of another column."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    title: str
    parameters: int
    columns: tuple[Column, ...]
    links: tuple[Link, ...] = ()
    joined: Box | None = None  # what reads all columns' outputs
    gives: str = ""  # and what comes out of that
    notes: tuple[str, ...] = ()  # what is shared, and such


class Row(NamedTuple):
    """One box of a drawing: which column it is in, how often it is there, and its parameters each time."""

    column: str
    times: int
    box: Box | Add


def rows(drawn: Architecture) -> Iterator[Row]:
    """All boxes, from the bottom up: their parameters, times how often each is there, are the model's."""
    for column in drawn.columns:
        for part in column.parts:
            if isinstance(part, Repeat):
                if part.parameters:
                    yield Row(column.title, 1, Add(label=part.note, parameters=part.parameters))
                for inner in part.parts:
                    yield from (Row(column.title, part.times, box) for box in boxes_of(inner))
            else:
                yield from (Row(column.title, 1, box) for box in boxes_of(part))
    if drawn.joined is not None:
        yield Row("", 1, drawn.joined)


def boxes_of(part: Part) -> tuple[Box | Add, ...]:
    """In the order in which they compute."""
    if isinstance(part, DrawnResidual):
        return part.branch if part.norm is None else (*part.branch, part.norm)
    if isinstance(part, Beside):
        return part.boxes
    return (part,)


def parameters_of(part: Part) -> int:
    return sum(box.parameters for box in boxes_of(part))
