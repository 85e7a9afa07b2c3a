"""What readers of folders share: what is in one, and what is held out of it."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from heedful.data.text import unreadable
from heedful.errors import InputError

SHARE = 10  # where nothing is given to validate on, one picture in so many is held out
Row = TypeVar("Row")


def entries(folder: Path) -> list[Path]:
    """What is in a folder, by name, without what is hidden. Raises MissingError or InputError."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise unreadable(folder, error) from None


def held_out(rows: Sequence[Row], name: Callable[[Row], str], *, where: Path) -> tuple[list[Row], list[Row], str]:
    """What stays, what is held out, and a note that says so: the smallest hashes of names, so that each machine chooses
    the same. Raises InputError for a single row."""
    if len(rows) < 2:
        what = "one picture alone, expected at least two, as some are held out"
        raise InputError(what, where=str(where), fix="give more, or a part to validate on")
    names = sorted({name(row) for row in rows}, key=lambda one: blake2b(one.encode(), digest_size=8).digest())
    held = set(names[: max(1, len(names) // SHARE)])
    kept, out = [row for row in rows if name(row) not in held], [row for row in rows if name(row) in held]
    return kept, out, f"{where}: {len(out):,} pictures held out for validation"
