"""Tables of pictures: what each row says by the names of its columns, and the files that it names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import isfile  # unlike Path's, False for what is too long for a name
from pathlib import Path

from heedful.data.images.files import ImageFile, members
from heedful.data.lines import json_lines, named_cells
from heedful.data.parts import entries, kind_of
from heedful.data.tables import table_cells
from heedful.errors import InputError, MissingError


@dataclass(frozen=True)
class PictureColumns:
    """What a table has to say of each picture: whether columns of these names do, and how that is told."""

    enough: Callable[[Sequence[str]], bool]
    expected: str
    line: str  # the first of a table, for example
    row: str  # an object of a .jsonl file, for example

    def are_named(self, cells: Sequence[str]) -> bool:
        """Whether these cells are the first line of such a table."""
        return self.enough(plain(cells))


def plain(cells: Sequence[str]) -> list[str]:
    """Names of columns, whatever their case."""
    return [cell.strip().lower() for cell in cells]


def picture_rows(path: Path, lines: list[str], columns: PictureColumns) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Where each row of a table is, and what it says by the names of columns, or by its keys in a .jsonl file. Raises
    InputError."""
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
    """Files that a table in `folder` names: beside it, in a folder or in a zip file that is there, or anywhere by their
    whole path. A name that is none of these is looked for in all folders there, and in those inside zip files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        inside = entries(folder)
        packed = [file for path in inside if kind_of(path) == ".zip" for file in members(path)]
        self.zipped = {file.member: file for file in packed}
        self.inside: dict[str, list[ImageFile]] = {}  # by their last names
        for file in packed:
            self.inside.setdefault(file.member.rpartition("/")[2], []).append(file)
        self.folders = [path for path in inside if path.is_dir()]

    def __call__(self, name: str, *, where: str) -> ImageFile:
        """Raises MissingError, or InputError where several pictures are so called."""
        if name in self.zipped:
            return self.zipped[name]
        if name and isfile(self.folder / name):
            return ImageFile(self.folder / name)
        found = [ImageFile(path / name) for path in self.folders if name and isfile(path / name)]
        found += self.inside.get(name, [])
        if len(found) > 1:
            fix = "write the name of the folder before it"
            raise InputError(f"there are {len(found)} pictures called {name!r}", where=where, fix=fix)
        if not found and (other := name.strip().replace("\\", "/")) != name:  # by hand, or by Windows
            return self(other, where=where)
        if not found:
            raise MissingError(f"there is no picture {name!r}", where=where, fix=f"names count from {self.folder}")
        return found[0]
