"""Parallel text: pairs that know where they stand, made of the rows of files.

Texts are left as they stand in the file: only line ends (LF or CRLF), a UTF-8 byte order mark, and pairs with an empty
side go.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from heedful.data.parts import kind_of
from heedful.data.text.directions import Direction
from heedful.data.text.encodings import read_encoded_lines
from heedful.errors import InputError

# What is numbered in place of lines, by the kind of the file.
NUMBERED = {
    **dict.fromkeys((".tmx", ".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), "unit"),
    **dict.fromkeys((".xlsx", ".parquet"), "row"),
    ".json": "item",
}


class Place(NamedTuple):
    """Where a pair stands: in which of the files, and its line or unit there."""

    file: int
    line: int


class Origin(NamedTuple):
    """What a pair comes from: a file, and where there are several directions its own."""

    file: str
    direction: Direction | None = None


@dataclass(frozen=True)
class Pairs:
    """Sentence i of `source` translates to sentence i of `target`. `others` are the further references of each, where
    any has some."""

    source: list[str]
    target: list[str]
    name: str
    others: tuple[tuple[str, ...], ...] = ()
    files: tuple[str, ...] = field(default=(), compare=False)  # that they were read from
    file_numbers: Sequence[int] = field(default=(), compare=False)  # which of `files` each pair stands in
    lines: Sequence[int] = field(default=(), compare=False)  # and its line or unit there
    empty: Sequence[tuple[Place, str, str]] = field(default=(), compare=False)  # left out: where, and both sides
    ways: Sequence[int] = ()  # which of `directions` each pair is, where there are several
    directions: tuple[Direction, ...] = ()
    encoded: str = field(default="", compare=False)  # what two files are in, where that is not UTF-8
    tags: Sequence[str] = ()  # of each pair, "" of one without, where any has one

    def __len__(self) -> int:
        return len(self.source)

    @property
    def dropped(self) -> int:
        """How many pairs had an empty side."""
        return len(self.empty)

    def where(self, i: int) -> str:
        """Where pair i stands: "train.tsv:1042", "memory.tmx: unit 3"; the name alone of pairs that were not read
        from files."""
        return self.line_of(self.place_of(i)) if self.lines else self.name

    def place_of(self, i: int) -> Place:
        """Where pair i stands, of those that were read from files."""
        return Place(self.file_numbers[i], self.lines[i])

    def line_of(self, place: Place) -> str:
        """A place in words: the file and the line, or the unit."""
        file = self.files[place.file]
        unit = NUMBERED.get(kind_of(Path(file)))
        return f"{file}: {unit} {place.line}" if unit else f"{file}:{place.line}"

    def in_place(self, texts: Sequence[str]) -> list[str]:
        """A text for each pair, and an empty one in the place of each that was dropped."""
        if not self.empty:
            return [*texts]
        where = map(self.place_of, range(len(self)))
        both = [*zip(where, texts, strict=True), *((place, "") for place, *_ in self.empty)]
        return [text for _, text in sorted(both, key=lambda row: row[0])]

    def file_of(self, i: int) -> str:
        """The file that pair i was read from."""
        return self.files[self.file_numbers[i]] if self.file_numbers else self.name

    def direction_of(self, i: int) -> Direction | None:
        """That of pair i, where there are several."""
        return self.directions[self.ways[i]] if self.ways else None

    def origin_of(self, i: int) -> Origin:
        return Origin(self.file_of(i), self.direction_of(i))

    @property
    def references(self) -> list[list[str]]:
        """All that each source may be translated to."""
        others = self.others or ((),) * len(self)
        return [[target, *more] for target, more in zip(self.target, others, strict=True)]

    def apart(self) -> "Pairs":
        """A pair for each reference."""
        each = [(i, target) for i, own in enumerate(self.references) for target in own]
        return replace(self.rows(i for i, _ in each), target=[target for _, target in each], others=())

    def rows(self, indices: Iterable[int]) -> "Pairs":
        """The chosen pairs, in the given order."""
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
        """The same, of pairs that were not read from files, as if they had been."""
        return replace(self, files=(self.name,), file_numbers=[0] * len(self), lines=range(1, len(self) + 1))

    def by_direction(self) -> dict[Direction, list[int]]:
        """The numbers of the pairs of each direction; none where there is one alone."""
        found: dict[Direction, list[int]] = {direction: [] for direction in self.directions}
        for i, way in enumerate(self.ways):
            found[self.directions[way]].append(i)
        return {direction: own for direction, own in found.items() if own}

    def by_kind(self) -> dict[tuple[Direction, str], list[int]]:
        """The numbers of the pairs of each direction and tag; a direction is ("", "") where there is one alone. None
        where there is one kind alone, without a tag."""
        found: dict[tuple[Direction, str], list[int]] = {}
        for i in range(len(self) if self.ways or self.tags else 0):
            kind = self.direction_of(i) or ("", ""), self.tags[i] if self.tags else ""
            found.setdefault(kind, []).append(i)
        return found


def pairs_of(name: str, rows: Iterable[tuple[int, tuple[str, ...]]]) -> Pairs:
    """Keep the numbered rows, a source and its references, with text on both sides, and the others apart. White space
    around a text is none of it."""
    kept, empty = list[tuple[int, tuple[str, ...]]](), list[tuple[Place, str, str]]()
    for number, row in rows:
        if row[0].strip() and row[1].strip():
            kept.append((number, tuple(map(str.strip, row))))
        else:
            empty.append((Place(0, number), row[0], row[1]))
    if not kept and not empty:
        raise InputError("a header and no pair", where=name, fix="give lines below it")
    if not kept:
        raise InputError("every pair has an empty side", where=name, fix="give text on both sides")
    others = tuple(row[2:] for _, row in kept)
    file_numbers, lines = array("i", [0]) * len(kept), array("i", (number for number, _ in kept))
    source, target = [row[0] for _, row in kept], [row[1] for _, row in kept]
    return Pairs(source, target, name, others if any(others) else (), (name,), file_numbers, lines, empty)


def told_apart(pairs: Pairs) -> Iterator[str]:
    """Each pair, in words of which no other has the same."""
    return map(repr, zip(pairs.source, pairs.target, strict=True))


def joined(parts: Sequence[Pairs], where: str | Path) -> Pairs:
    """The pairs of several parts as one."""
    if len(parts) == 1:
        return parts[0]
    source, target = [text for part in parts for text in part.source], [text for part in parts for text in part.target]
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


def read_pairs(source_file: str | Path, target_file: str | Path) -> Pairs:
    """Two files whose lines i translate each other. Raises InputError where one of them ends early."""
    (source, one), (target, other) = (read_encoded_lines(Path(file)) for file in (source_file, target_file))
    if len(source) != len(target):
        (n, short), (m, long) = sorted([(len(source), str(source_file)), (len(target), str(target_file))])
        raise InputError(
            f"the last line, but {long} has {m:,} lines, expected as many",
            where=f"{short}:{n}",
            fix="line i of both files must be the same sentence; where one is missing, leave its line empty",
        )
    pairs = pairs_of(str(source_file), enumerate(zip(source, target, strict=True), 1))
    told = [f"{name} in {own}" for name, own in (("source", one), ("target", other)) if own]
    return replace(pairs, encoded=", ".join(told)) if told else pairs
