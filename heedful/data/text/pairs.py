"""Parallel text: pairs that know their positions in the files that they come from.

Texts are kept as they are in the file: only line ends (LF or CRLF), a UTF-8 byte order mark, and pairs with an empty
side are removed.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.large import FileTexts
from heedful.data.parts import kind_of
from heedful.data.text.directions import Direction
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.formats import refuse_other_formats
from heedful.errors import InputError

HELD = 1 << 22  # characters of texts that are held in memory; of more, all are kept in files
# What is counted instead of lines, by the kind of the file.
NUMBERED = {
    **dict.fromkeys((".tmx", ".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), "unit"),
    **dict.fromkeys((".xlsx", ".parquet"), "row"),
    ".json": "item",
}


class Place(NamedTuple):
    """The position of a pair: the number of its file, and its line or unit there."""

    file: int
    line: int


class Origin(NamedTuple):
    """The origin of a pair: its file, and its direction if there are several."""

    file: str
    direction: Direction | None = None


@dataclass(frozen=True)
class Pairs:
    """Sentence i of `source` translates to sentence i of `target`. `others` are the further references of each pair, if
    any has some."""

    source: list[str] | FileTexts
    target: list[str] | FileTexts
    name: str
    others: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = field(default=(), compare=False)  # the files of the pairs
    file_numbers: Sequence[int] = field(default=(), compare=False)  # the index in `files` of each pair
    lines: Sequence[int] = field(default=(), compare=False)  # its line or unit there
    empty: Sequence[tuple[Place, str, str]] = field(default=(), compare=False)  # left out: the position, and both sides
    ways: Sequence[int] = ()  # the index in `directions` of each pair, if there are several
    directions: tuple[Direction, ...] = ()
    encoded: str = field(default="", compare=False)  # the encodings of two files, if not UTF-8
    tags: Sequence[str] = ()  # of each pair, "" without one; empty if no pair has one

    def __len__(self) -> int:
        return len(self.source)

    @property
    def dropped(self) -> int:
        """The number of pairs with an empty side."""
        return len(self.empty)

    def where(self, i: int) -> str:
        """Returns the position of pair i: "train.tsv:1042", "memory.tmx: unit 3"; only the name if the pairs do not
        come from files."""
        return self.line_of(self.place_of(i)) if self.lines else self.name

    def place_of(self, i: int) -> Place:
        """Returns the position of pair i, if the pairs come from files."""
        return Place(self.file_numbers[i], self.lines[i])

    def line_of(self, place: Place) -> str:
        """Formats a position: the file, and the line or unit."""
        file = self.files[place.file]
        unit = NUMBERED.get(kind_of(Path(file)))
        return f"{file}: {unit} {place.line}" if unit else f"{file}:{place.line}"

    def in_place(self, texts: Sequence[str]) -> list[str]:
        """Returns a text for each pair, with "" inserted for each pair that was dropped."""
        if not self.empty:
            return [*texts]
        where = map(self.place_of, range(len(self)))
        both = [*zip(where, texts, strict=True), *((place, "") for place, *_ in self.empty)]
        return [text for _, text in sorted(both, key=lambda row: row[0])]

    def file_of(self, i: int) -> str:
        """Returns the file of pair i."""
        return self.files[self.file_numbers[i]] if self.file_numbers else self.name

    def direction_of(self, i: int) -> Direction | None:
        """Returns the direction of pair i, or None if there is only one."""
        return self.directions[self.ways[i]] if self.ways else None

    def origin_of(self, i: int) -> Origin:
        return Origin(self.file_of(i), self.direction_of(i))

    @property
    def references(self) -> list[list[str]]:
        """All references of each source."""
        others = self.others or ((),) * len(self)
        return [[target, *more] for target, more in zip(self.target, others, strict=True)]

    def apart(self) -> "Pairs":
        """Returns a pair for each reference."""
        each = [(i, target) for i, own in enumerate(self.references) for target in own]
        return replace(self.rows(i for i, _ in each), target=[target for _, target in each], others=())

    def rows(self, indices: Iterable[int]) -> "Pairs":
        """Returns the pairs with these indices, in this order."""
        chosen = list(indices)
        return Pairs(
            [self.source[i] for i in chosen],
            [self.target[i] for i in chosen],
            self.name,
            others=tuple(self.others[i] for i in chosen) if self.others else (),
            files=self.files,
            file_numbers=array("i", (self.file_numbers[i] for i in chosen)) if self.file_numbers else (),
            lines=array("i", (self.lines[i] for i in chosen)) if self.lines else (),
            ways=array("h", (self.ways[i] for i in chosen)) if self.ways else (),
            directions=self.directions,
            tags=[self.tags[i] for i in chosen] if self.tags else (),
        )

    def numbered(self) -> "Pairs":
        """Returns pairs that do not come from files as if they came from one."""
        return replace(self, files=(self.name,), file_numbers=[0] * len(self), lines=range(1, len(self) + 1))

    def by_direction(self) -> dict[Direction, list[int]]:
        """Returns the indices of the pairs of each direction; empty if there is only one."""
        found: dict[Direction, list[int]] = {direction: [] for direction in self.directions}
        for i, way in enumerate(self.ways):
            found[self.directions[way]].append(i)
        return {direction: own for direction, own in found.items() if own}

    def by_kind(self) -> dict[tuple[Direction, str], list[int]]:
        """Returns the indices of the pairs of each direction and tag; the direction is ("", "") if there is only one.
        Empty if there are neither directions nor tags."""
        found: dict[tuple[Direction, str], list[int]] = {}
        for i in range(len(self) if self.ways or self.tags else 0):
            kind = self.direction_of(i) or ("", ""), self.tags[i] if self.tags else ""
            found.setdefault(kind, []).append(i)
        return found


def pairs_of(name: str, rows: Iterable[tuple[int, tuple[str, ...]]]) -> Pairs:
    """Makes pairs of numbered rows (a source and its references), stripped of outer white space. Rows with an empty
    side go to `empty`. Many texts are kept in files. Raises InputError if none is left."""
    source: list[str] | FileTexts = []
    target: list[str] | FileTexts = []
    size = 0
    others, lines, empty = dict[int, tuple[str, ...]](), array("i"), list[tuple[Place, str, str]]()
    for number, row in rows:
        left, right, *more = map(str.strip, row)
        if not (left and right):
            empty.append((Place(0, number), row[0], row[1]))
            continue
        if more:
            others[len(lines)] = tuple(more)
        source.append(left)
        target.append(right)
        lines.append(number)
        size += len(left) + len(right)
        if size > HELD and isinstance(source, list):
            source, target = FileTexts(source), FileTexts(target)
    if not lines and not empty:
        raise InputError("a header and no pair", where=name, fix="give lines below it")
    if not lines:
        raise InputError("every pair has an empty side", where=name, fix="give text on both sides")
    references = tuple(others.get(i, ()) for i in range(len(lines))) if others else ()
    return Pairs(source, target, name, references, (name,), array("i", [0]) * len(lines), lines, empty)


def told_apart(pairs: Pairs) -> Iterator[str]:
    """Yields a string for each pair that identifies it."""
    return map(repr, zip(pairs.source, pairs.target, strict=True))


def joined(parts: Sequence[Pairs], where: str | Path) -> Pairs:
    """Joins the pairs of several parts."""
    if len(parts) == 1:
        return parts[0]
    source, target = (_all([getattr(part, side) for part in parts]) for side in ("source", "target"))
    others = tuple(own for part in parts for own in part.others or ((),) * len(part))
    files = {file: i for i, file in enumerate(dict.fromkeys(file for part in parts for file in part.files))}
    file_numbers, lines, ways, empty = array("i"), array("i"), array("h"), list[tuple[Place, str, str]]()
    for part in parts:
        numbers = [files[file] for file in part.files]
        file_numbers.extend(numbers[place] for place in part.file_numbers)
        lines.extend(part.lines)
        ways.extend(part.ways)
        empty += [(Place(numbers[place], line), one, other) for (place, line), one, other in part.empty]
    tags = [tag for part in parts for tag in part.tags or [""] * len(part)]
    return Pairs(
        source,
        target,
        str(where),
        others=others if any(others) else (),
        files=tuple(files),
        file_numbers=file_numbers,
        lines=lines,
        empty=empty,
        ways=ways or (),
        directions=parts[0].directions,
        tags=tags if any(tags) else (),
    )


def _all(sides: Sequence[list[str] | FileTexts]) -> list[str] | FileTexts:
    """The texts of all of these, one after the other; in a file where some are."""
    texts = (text for side in sides for text in side)
    return FileTexts(texts) if any(isinstance(side, FileTexts) for side in sides) else [*texts]


def read_pairs(source_file: str | Path, target_file: str | Path, most: int | None = None) -> Pairs:
    """Reads two files whose lines i translate each other, at most `most` of them. Raises InputError if their numbers of
    lines differ, or if a file is of a format whose lines are not sentences."""
    (source, one), (target, other) = _sides(source_file, target_file)
    pairs = pairs_of(str(source_file), islice(enumerate(zip(source, target, strict=True), 1), most))
    told = [f"{name} in {own}" for name, own in (("source", one), ("target", other)) if own]
    return replace(pairs, encoded=", ".join(told)) if told else pairs


def side_rows(source_file: Path, target_file: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yields the numbers of the lines of two such files, and their texts. Raises InputError as `read_pairs`."""
    (source, _), (target, _) = _sides(source_file, target_file)
    return enumerate(zip(source, target, strict=True), 1)


def _sides(source_file: str | Path, target_file: str | Path) -> list[tuple[Sequence[str], str]]:
    """The lines and the encoding of each file."""
    sides = [read_encoded_lines(Path(file)) for file in (source_file, target_file)]
    for file, (lines, _) in zip((source_file, target_file), sides, strict=True):
        refuse_other_formats(Path(file), lines, columns=True)
    counts = (len(lines) for lines, _ in sides)
    (n, short), (m, long) = sorted(zip(counts, map(str, (source_file, target_file)), strict=True))
    if n != m:
        raise InputError(
            f"the last line, but {long} has {m:,} lines, expected as many",
            where=f"{short}:{n}",
            fix="line i of both files must be the same sentence; where one is missing, leave its line empty",
        )
    return sides
