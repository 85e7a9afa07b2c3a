"""Which two columns, keys or languages of a file are read, and the type of its rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SOURCE, TARGET = "source", "target"  # the default names

FUZZY = "fuzzy"  # the name of a column whose rows are unconfirmed translations where it says so, as in gettext
YES = ("1", "true", "yes", "x", FUZZY)

Rows = Iterator[tuple[int, tuple[str, ...]]]  # the number of the line or unit, and the source and its references


class WantedColumns(NamedTuple):
    """The two languages, columns or keys that are asked for; None: to be inferred. `most`: of each file of training
    pairs only the first so many are read. `given`: all paths that are given."""

    source: str | None = None
    target: str | None = None
    most: int | None = None
    given: frozenset[Path] = frozenset()

    @property
    def names(self) -> tuple[str, str]:
        """The names of the columns or keys to look for."""
        return self.source or SOURCE, self.target or TARGET


class Columns(NamedTuple):
    """The two columns (from 0) or keys of a table that are read, their names, and whether a header names them."""

    left: int
    right: int
    source: str
    target: str
    header: bool
    layout: str = ""  # what was found, for the user
    turned: str | None = None  # the options for the other direction, if not by these names
    fuzzy: Sequence[int] = ()  # the numbers of rows that are left out, complete when all rows have been taken

    @property
    def other_way(self) -> str:
        """The options for the other direction."""
        return f"--source {self.target} --target {self.source}" if self.turned is None else self.turned


def is_fuzzy(value: object) -> bool:
    """Whether the value of a column or key called `FUZZY` says yes."""
    return str(value).strip().lower() in YES
