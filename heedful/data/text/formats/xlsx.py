"""Excel workbooks: reads the first sheet with a header of languages, or else with two columns. The table begins with
the first row that has two cells, as there may be a title above."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, time
from pathlib import Path
from typing import Any

from heedful.data.lines import read_bytes
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.headers import is_header
from heedful.data.text.table_rows import table_rows
from heedful.errors import InputError, counted

CONTROL = re.compile("_x(00[01][0-9A-Fa-f])_")  # how the format writes control characters
# What the library raises for a damaged zip file, or damaged XML in it.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, KeyError, ValueError, TypeError, AttributeError, IndexError,
    RuntimeError,
)  # fmt: skip


def read_xlsx(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the rows of two columns, as from any table. Raises InputError or MissingError."""
    described, rows = sheet_rows(path)
    return table_rows(path, rows, source, target, described)


def sheet_rows(path: Path) -> tuple[str, Iterator[tuple[int, list[str]]]]:
    """Returns the sheet that is read, in words, and its rows by their numbers: all as wide as the widest, and blank
    ones empty. Raises InputError or MissingError."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(io.BytesIO(read_bytes(path)), read_only=True, data_only=True)
        sheets = [(sheet.title, cells) for sheet in book.worksheets if (cells := _cells(sheet))]
    except (InvalidFileException, *DAMAGED) as error:
        what = f"not a workbook that can be read: {' '.join(str(error).split()) or type(error).__name__}"
        raise InputError(what, where=str(path), fix="save it again as .xlsx, or as .csv") from None
    if not sheets:
        raise InputError("no sheet with anything on it", where=str(path), fix="give a table of two columns")
    tables = [sheet for sheet in sheets if _first(sheet[1]) is not None]
    named = (sheet for sheet in tables if is_header(sheet[1][_first(sheet[1]) or 0]))
    title, cells = next(named, (tables or sheets)[0])
    first = _first(cells) or 0
    described = f"a sheet {title!r}" + (f" ({counted(len(sheets) - 1, 'other sheet')} not read)" if sheets[1:] else "")
    described += f" from row {first + 1}" if any(map(any, cells[:first])) else ""
    widest = max(max((i for i, cell in enumerate(row, 1) if cell), default=0) for row in cells)
    return described, (
        (number, [*row, *[""] * widest][:widest] if any(row) else [])
        for number, row in enumerate(cells[first:], first + 1)
    )


def _cells(sheet: Any) -> list[list[str]]:
    """Returns the rows of a sheet; empty for a blank sheet. Cells with errors are empty."""
    rows = [["" if cell.data_type == "e" else _said(cell.value) for cell in row] for row in sheet.iter_rows()]
    return rows if any(map(any, rows)) else []


def _first(cells: list[list[str]]) -> int | None:
    """Returns the index of the first row with two cells that are not empty, or None."""
    return next((i for i, row in enumerate(cells) if sum(map(bool, row)) > 1), None)


def _said(value: object) -> str:
    if isinstance(value, datetime) and value.time() == time():  # a date alone, which a sheet stores as midnight
        value = value.date()
    return "" if value is None else CONTROL.sub(lambda found: chr(int(found[1], 16)), str(value))
