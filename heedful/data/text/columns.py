"""Which two columns, keys or languages of a file are taken, and what its rows are."""

from collections.abc import Iterator
from typing import NamedTuple

SOURCE, TARGET = "source", "target"  # what is looked for where nothing else is said

Rows = Iterator[tuple[int, tuple[str, ...]]]  # a number (of the line, or of the unit), the source and its references


class Columns(NamedTuple):
    """Which two columns, from 0, or keys of a table are read, what they are called, whether its first line says so, and
    how to ask for the other direction."""

    left: int
    right: int
    source: str
    target: str
    header: bool
    other_way: str
    layout: str = ""  # what was found, for who trains on it


def other_way(source: str, target: str) -> str:
    """The options that ask for the other direction."""
    return f"--source {target} --target {source}"
