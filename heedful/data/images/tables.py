"""Tables of pictures: the columns of each row, and the files that they name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import isfile  # unlike Path's, False for a name that is too long
from pathlib import Path

from heedful.data.images.files import ImageFile, members
from heedful.data.lines import json_lines, named_cells
from heedful.data.parts import entries, kind_of
from heedful.data.tables import table_cells
from heedful.errors import InputError, MissingError


@dataclass(frozen=True)
class PictureColumns:
    """The columns that a table of pictures needs: a check of the names, and texts for error messages."""

    enough: Callable[[Sequence[str]], bool]
    expected: str
    line: str  # an example of a table's first line
    row: str  # an example of an object in a .jsonl file

    def are_named(self, cells: Sequence[str]) -> bool:
        """Whether these cells are the header of such a table."""
        return self.enough(plain(cells))


def plain(cells: Sequence[str]) -> list[str]:
    """Returns the names of columns in lower case."""
    return [cell.strip().lower() for cell in cells]


def picture_rows(path: Path, lines: list[str], columns: PictureColumns) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yields the position of each row of a table, and its cells by the names of the columns, or its keys in a .jsonl
    file. Raises InputError."""
    if kind_of(path) == ".jsonl":
        for where, record in json_lines(path, lines):
            if not isinstance(record, dict):
                raise InputError("not an object", where=where, fix=f"write {columns.row}")
            yield where, record
        return
    rows = ((number, row) for number, row in table_cells(path, lines, columns.are_named)[1] if row)
    number, first = next(rows, (1, []))
    header = plain(first)
    if not columns.enough(header):
        what = f"columns {', '.join(header)[:80] or 'that have no name'}, expected {columns.expected}"
        raise InputError(what, where=f"{path}:{number}", fix=f"name the columns in the first line: {columns.line}")
    yield from named_cells(path, rows, header)


class Finder:
    """Finds the files that a table in `folder` names: relative to it, in a folder or zip file there, or by an absolute
    path. Other names are searched in all folders there, and in those inside zip files."""

    def __init__(self, folder: Path, *, noun: str = "picture") -> None:
        self.folder, self.noun = folder, noun
        inside = entries(folder)
        packed = [file for path in inside if kind_of(path) == ".zip" for file in members(path)]
        self.zipped = {file.member: file for file in packed}
        self.inside: dict[str, list[ImageFile]] = {}  # by their names without folders
        for file in packed:
            self.inside.setdefault(file.member.rpartition("/")[2], []).append(file)
        self.folders = [path for path in inside if path.is_dir()]

    def __call__(self, name: str, *, where: str) -> ImageFile:
        """Returns the file. Raises MissingError, or InputError if several pictures have this name."""
        if name in self.zipped:
            return self.zipped[name]
        if name and isfile(self.folder / name):
            return ImageFile(self.folder / name)
        found = [ImageFile(path / name) for path in self.folders if name and isfile(path / name)]
        found += self.inside.get(name, [])
        if len(found) > 1:
            fix = "write the name of the folder before it"
            raise InputError(f"there are {len(found)} {self.noun}s called {name!r}", where=where, fix=fix)
        if not found and (other := name.strip().replace("\\", "/")) != name:  # names written by hand, or by Windows
            return self(other, where=where)
        if not found:
            raise MissingError(f"there is no {self.noun} {name!r}", where=where, fix=f"names count from {self.folder}")
        return found[0]
