"""Rows of tables and JSON objects that hold parallel texts, and their directions."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from heedful.data.lines import json_items, json_line, read_beginning
from heedful.data.parts import kind_of
from heedful.data.tables import table_cells
from heedful.data.text.columns import SOURCE, TARGET, Columns, Rows
from heedful.data.text.directions import SIDES, Direction, EachDirection, in_words
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.formats import format_of, reader_of
from heedful.data.text.headers import is_header
from heedful.data.text.object_rows import BLANK, object_rows
from heedful.data.text.table_rows import table_rows
from heedful.errors import InputError

TEXT_TABLES = ("tsv", "csv", "jsonl", "json", "txt")
TABLES = (*TEXT_TABLES, "tmx", "xlf", "xliff", "sdlxliff", "mqxliff", "mxliff", "po", "pot", "xlsx", "parquet")
Row = tuple[int, tuple[str, ...]]  # the number of a row, and its texts
MOST_DIRECTIONS = 1000
LOOKED_AT = 1 << 16  # bytes; their first line shows whether the rows name their languages


def read_rows(
    path: Path, source: str, target: str, *, named: bool = False, each: EachDirection | None = None
) -> tuple[Rows, Columns]:
    """Reads the rows of a file, each a source and its references (some may be empty), and the columns that were taken.
    The format is recognised by the contents, or for lines of text by the name. `named`: the two names are columns or
    keys, even if rows name their languages; `each`: rows of all directions are read. Raises InputError or
    MissingError."""
    if found := format_of(path):
        return reader_of(found)(path, source, target)
    kind = kind_of(path).removeprefix(".")
    if kind in ("yaml", "yml"):
        fix = "give a table, in each line a text, a TAB and its translation; docs/migration.md has other programs' keys"
        raise InputError("YAML, which holds no table of texts", where=str(path), fix=fix)
    if kind == "json":
        return object_rows(json_items(path), source, target, named=named, each=each)
    lines, encoding = read_encoded_lines(path)
    if kind == "jsonl" or (kind not in TABLES and _is_object(lines)):
        rows, taken = object_rows(_parsed(path, lines), source, target, named=named, each=each)
    else:
        between, cells = table_cells(path, lines, is_header)
        described = f"separated by {between}"
        rows, taken = table_rows(path, cells, source, target, described, between, named=named, each=each)
    return rows, taken._replace(layout=f"{taken.layout}, in {encoding}") if encoding else taken


def _is_object(lines: Iterable[str]) -> bool:
    first = next(line.strip() for line in lines if line.strip())
    return first.startswith("{") and first.endswith("}")


def rows_by_direction(path: Path) -> tuple[dict[Direction, list[Row]], Columns]:
    """Returns the rows of a table or of JSON objects by the directions that they name, in order; none for other files.
    Raises InputError or MissingError."""
    kind, groups = kind_of(path).removeprefix("."), dict[Direction, list[Row]]()
    nothing = groups, Columns(0, 1, SOURCE, TARGET, False)
    if kind not in TEXT_TABLES or not path.is_file() or format_of(path):
        return nothing
    begin = read_beginning(path, LOOKED_AT).replace(b"\0", b"").lower()
    first = begin if kind == "json" else begin.partition(b"\n")[0]
    if not any(word.encode() in first for words in SIDES for word in words):
        return nothing
    rows, taken = read_rows(path, SOURCE, TARGET, each=(each := EachDirection()))
    if not each.there:
        return nothing
    for row in rows:
        if each.last:  # a blank row belongs to the one above it
            groups.setdefault(each.last, []).append(row)
        if len(groups) > MOST_DIRECTIONS:
            what = f"more than {MOST_DIRECTIONS:,} directions, such as {in_words(islice(groups, 3))}"
            raise InputError(what, where=str(path), fix="write language codes into the columns of the languages")
    return groups, taken


def _parsed(path: Path, lines: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Yields the position and value of each line of a .jsonl file; BLANK for a blank line."""
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        yield where, json_line(line, where=where) if line.strip() else BLANK
