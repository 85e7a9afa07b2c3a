"""Rows of tables and JSON objects that hold parallel texts, and their directions."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from heedful.data.lines import json_items, json_line, read_beginning
from heedful.data.parts import kind_of
from heedful.data.tables import table_cells
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.directions import SIDES, Direction, language_columns, said_languages
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.formats import format_of, reader_of
from heedful.data.text.headers import is_header
from heedful.data.text.object_rows import BLANK, object_rows
from heedful.data.text.table_rows import table_rows
from heedful.errors import InputError

TEXT_TABLES = ("tsv", "csv", "jsonl", "json", "txt")
TABLES = (*TEXT_TABLES, "tmx", "xlf", "xliff", "sdlxliff", "po", "pot", "xlsx", "parquet")
LOOKED_AT = 1 << 16  # bytes; their first line shows whether the rows name their languages


def read_rows(path: Path, source: str, target: str, *, named: bool = False) -> tuple[Rows, Columns]:
    """Reads the rows of a file, each a source and its references (some may be empty), and the columns that were taken.
    The format is recognised by the contents, or for lines of text by the name. `named`: the two names are columns or
    keys, even if rows name their languages. Raises InputError or MissingError."""
    if found := format_of(path):
        return reader_of(found)(path, source, target)
    kind = kind_of(path).removeprefix(".")
    if kind in ("yaml", "yml"):
        fix = "give a table, in each line a text, a TAB and its translation; docs/migration.md has other programs' keys"
        raise InputError("YAML, which holds no table of texts", where=str(path), fix=fix)
    if kind == "json":
        return object_rows(json_items(path), source, target, named=named)
    lines, encoding = read_encoded_lines(path)
    if kind == "jsonl" or (kind not in TABLES and _is_object(lines)):
        rows, taken = object_rows(_parsed(path, lines), source, target, named=named)
    else:
        between, cells = table_cells(path, lines, is_header)
        described = f"separated by {between}"
        rows, taken = table_rows(path, cells, source, target, described, between, named=named)
    return rows, taken._replace(layout=f"{taken.layout}, in {encoding}") if encoding else taken


def _is_object(lines: list[str]) -> bool:
    first = next(line.strip() for line in lines if line.strip())
    return first.startswith("{") and first.endswith("}")


def directions_in(path: Path) -> list[Direction]:
    """Returns the directions that the rows of a table or JSON objects name, in order; empty for other files. Raises
    InputError or MissingError."""
    kind = kind_of(path).removeprefix(".")
    if kind not in TEXT_TABLES or not path.is_file() or format_of(path):
        return []
    begin = read_beginning(path, LOOKED_AT).replace(b"\0", b"").lower()
    first = begin if kind == "json" else begin.partition(b"\n")[0]
    if not any(word.encode() in first for words in SIDES for word in words):
        return []
    if kind == "json":
        return _directions_of(json_items(path))
    lines, _ = read_encoded_lines(path)
    if kind == "jsonl":
        return _directions_of(_parsed(path, lines))
    rows = ((number, cells) for number, cells in table_cells(path, lines, is_header)[1] if cells)
    told = language_columns(next(rows, (0, []))[1])
    if told is None:
        return []
    languages = (
        said_languages((row[told.source_language], row[told.target_language]), f"{path}:{number}")
        for number, row in rows
        if len(row) > max(told) and any(row)
    )
    return [*dict.fromkeys(languages)]


def _directions_of(items: Iterable[tuple[str, object]]) -> list[Direction]:
    """Returns the directions that JSON objects name; empty if the first names none."""
    objects = [(where, row) for where, row in items if isinstance(row, dict) and row]
    names = [*objects[0][1]] if objects else []
    told = language_columns(names)
    if told is None:
        return []
    one, other = names[told.source_language], names[told.target_language]
    return [*dict.fromkeys(said_languages((row.get(one), row.get(other)), where) for where, row in objects)]


def _parsed(path: Path, lines: list[str]) -> Iterator[tuple[str, object]]:
    """Yields the position and value of each line of a .jsonl file; BLANK for a blank line."""
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        yield where, json_line(line, where=where) if line.strip() else BLANK
