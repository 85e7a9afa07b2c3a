"""The content of a drawing of a model, in the manner of figure 1 of Vaswani et al. 2017: columns that are read from the
bottom up, boxes in them, and links from one column to another.

`architecture_layout` makes a picture of it, and `architecture_text` lines for a terminal. `heedful.figures` makes it
from the configurations of models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["embed", "attention", "mlp", "norm", "linear", "recurrent", "convolution", "softmax"]


@dataclass(frozen=True, kw_only=True)
class Box:
    """One step. `name` is for links and for programs; `notes` are short lines below the label."""

    label: str
    kind: Kind
    notes: tuple[str, ...] = ()
    parameters: int = 0
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Add:
    """An embedding that is added to the input, such as that of positions."""

    label: str
    notes: tuple[str, ...] = ()
    parameters: int = 0


@dataclass(frozen=True, kw_only=True)
class DrawnResidual:
    """A residual connection: the input is added to the branch's output; `norm` is of the sum (post-norm)."""

    branch: tuple[Box, ...]
    norm: Box | None = None


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Boxes side by side, with the same input."""

    boxes: tuple[Box, ...]


Part = Box | Add | DrawnResidual | Beside


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A layer that is repeated; `parameters` are those that all layers share, besides their own."""

    times: int
    parts: tuple[Part, ...]
    note: str = ""
    parameters: int = 0
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    title: str
    reads: str  # its input, at the bottom
    parts: tuple[Part | Repeat, ...]
    gives: str = ""  # its output, at the top; "": only a link takes it


class Link(NamedTuple):
    """An arrow from the top of a column, or the side of a named part, to a named box of another column."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    title: str
    parameters: int
    columns: tuple[Column, ...]
    links: tuple[Link, ...] = ()
    joined: Box | None = None  # a box that reads the outputs of all columns
    gives: str = ""  # the output of `joined`
    notes: tuple[str, ...] = ()  # such as which matrices are tied


class Row(NamedTuple):
    """One box of a drawing: its column, how many times it occurs, and the box, with its parameters each time."""

    column: str
    times: int
    box: Box | Add


def rows(drawn: Architecture) -> Iterator[Row]:
    """All boxes, from the bottom up. The sum of their parameters times `times` is that of the model."""
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
    """The boxes of a part, in the order of computation."""
    if isinstance(part, DrawnResidual):
        return part.branch if part.norm is None else (*part.branch, part.norm)
    if isinstance(part, Beside):
        return part.boxes
    return (part,)


def parameters_of(part: Part) -> int:
    return sum(box.parameters for box in boxes_of(part))
