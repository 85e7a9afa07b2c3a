"""The lines of large files, and many texts, which are not held in memory."""

import codecs
import io
import mmap
import os
import re
import tempfile
import weakref
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from operator import eq
from pathlib import Path
from typing import TypeVar, overload

from heedful.data.lines import LONGEST_LINE, OTHERS, READ_AT_ONCE, opened, packed_size
from heedful.errors import StorageError

LARGE = 1 << 25  # bytes of a large file
PACKS = 4  # a packed file unpacks to about so many times its size
BLOCK = 256  # texts that are read together

Row = TypeVar("Row")


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


class Rows(Sequence[Row], ABC):
    """Rows that are made when they are asked for."""

    @abstractmethod
    def row(self, number: int) -> Row: ...

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        rows = range(len(self))[at]
        return self.row(rows) if isinstance(rows, int) else [*map(self.row, rows)]


class FileTexts(Rows[str]):
    """Texts in a file without a name, in the folder for temporary files. Those that are asked for are read; of many
    in a row, some together. Raises StorageError where they cannot be written."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is closed with the texts
        weakref.finalize(self, self._file.close)
        self._ends = array("q", [0])
        self._new: list[bytes] = []  # of the last block, which is not full
        self._read: tuple[int, list[str]] = (-1, [])  # the number of a block, and its texts
        self.extend(texts)

    def append(self, text: str) -> None:
        self._new.append(text.encode("utf-8", "surrogatepass"))
        self._ends.append(self._ends[-1] + len(self._new[-1]))
        if len(self._new) == BLOCK:
            self._write(b"".join(self._new))
            self._new = []

    def extend(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.append(text)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            fix = "free some space there, or let TMPDIR name another folder"
            raise StorageError(error.strerror or str(error), where=tempfile.gettempdir(), fix=fix) from None

    def joined(self) -> list[bytes | memoryview]:
        """All texts, without anything between them, in UTF-8: some are mapped."""
        last = b"".join(self._new)
        if self._ends[-1] == len(last):
            return [last]
        return [memoryview(mmap.mmap(self._file.fileno(), self._ends[-1] - len(last), access=mmap.ACCESS_READ)), last]

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __eq__(self, other: object) -> bool:
        """Whether these are the texts of a list, or of another file."""
        if not isinstance(other, list | FileTexts) or len(self) != len(other):
            return False
        return all(map(eq, self, other))

    def row(self, number: int) -> str:
        block, place = divmod(number, BLOCK)
        if (block + 1) * BLOCK > len(self):
            return self._new[place].decode("utf-8", "surrogatepass")
        known, texts = self._read
        if known == block:
            return texts[place]
        last = number + 1 if place else number + BLOCK  # all of a block where its first is asked for
        first, ends = self._ends[number], self._ends[number : last + 1]
        data = os.pread(self._file.fileno(), ends[-1] - first, first)
        spans = pairwise(end - first for end in ends)
        texts = [data[begin:end].decode("utf-8", "surrogatepass") for begin, end in spans]
        if not place:
            self._read = block, texts
        return texts[0]


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
