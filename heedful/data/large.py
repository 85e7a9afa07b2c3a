"""The lines of large files, which are not held in memory."""

import codecs
import io
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import overload

from heedful.data.lines import LONGEST_LINE, OTHERS, READ_AT_ONCE, opened, packed_size

LARGE = 1 << 25  # bytes of a large file
PACKS = 4  # a packed file unpacks to about so many times its size


class FileLines(Sequence[str]):
    """The lines of a large file, read anew each time that they are iterated: those that `read_lines` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[str]:
        with opened(self.path) as (file, _), io.TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
            for line in text:
                yield line.removesuffix("\n").removesuffix("\r")

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [*islice(self, at.start, at.stop, at.step)]
        return next(islice(self, at, None))


def large_lines(path: Path) -> FileLines | None:
    """The lines of a file of `LARGE` bytes or more, if there is nothing in it that `read_lines` refuses or converts;
    None for any other file. Raises InputError or MissingError."""
    packed = path.suffix.lower() == ".gz" or not os.path.exists(path)
    try:
        if packed_size(path) * (PACKS if packed else 1) < LARGE:
            return None
    except (OSError, ValueError, KeyError):  # reading it says what is wrong
        return None
    decoder, rest, size, ends, words = codecs.getincrementaldecoder("utf-8")(), 0, 0, False, False
    with opened(path) as (file, most):
        while data := file.read(READ_AT_ONCE):
            if size == 0 and any(re.match(begin, data, re.DOTALL) for begin in OTHERS):
                return None
            size += len(data)
            lines = data.split(b"\n")
            longest = max(rest + len(lines[0]), *map(len, lines[1:])) if len(lines) > 1 else rest + len(data)
            rest = len(lines[-1]) + (0 if len(lines) > 1 else rest)
            ends = ends or len(lines) > 1
            try:
                words = bool(decoder.decode(data).strip()) or words
            except UnicodeDecodeError:
                return None
            if longest > LONGEST_LINE or b"\0" in data or (most is not None and size > most):
                return None
    return FileLines(path) if ends and words and not decoder.getstate()[0] else None
