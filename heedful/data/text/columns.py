"""Which two columns, keys or languages of a file are taken, and what its rows are."""

from collections.abc import Iterator
from typing import NamedTuple

SOURCE, TARGET = "source", "target"  # what is looked for where nothing else is said

Rows = Iterator[tuple[int, tuple[str, ...]]]  # a number (of the line, or of the unit), the source and its references


class WantedColumns(NamedTuple):
    """Which two languages, columns or keys are asked for; None: where there is no choice."""

    source: str | None = None
    target: str | None = None

    @property
    def names(self) -> tuple[str, str]:
        """What columns or keys are looked for by."""
        return self.source or SOURCE, self.target or TARGET


class Columns(NamedTuple):
    """Which two columns, from 0, or keys of a table are read, what they are called, and whether its first line says
    so."""

    left: int
    right: int
    source: str
    target: str
    header: bool
    layout: str = ""  # what was found, for who trains on it
    turned: str | None = None  # the options that ask for the other direction, where that is not by these names

    @property
    def other_way(self) -> str:
        """The options that ask for the other direction."""
        return f"--source {self.target} --target {self.source}" if self.turned is None else self.turned
