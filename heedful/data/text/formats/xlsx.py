"""Excel workbooks (ECMA-376, part 1, section 18): reads the first sheet with a header of languages, or else with two
columns. The table begins with the first row that has two cells, as there may be a title above.

The size that a sheet says it has is not believed: its rows are those that are in it.
"""

import io
import posixpath
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time
from pathlib import Path
from xml.etree.ElementTree import Element

from heedful.data.lines import DAMAGED, NOT_READ, archive_in, most_unpacked, packed_size, read_bytes, read_in_parts
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.headers import is_header
from heedful.data.text.table_rows import table_rows
from heedful.data.xml import decoded_text, elements_of, name_of
from heedful.errors import InputError, counted

WORKBOOK = "xl/workbook.xml"
MOST_COLUMNS = 1024
FIX = "save it again as .xlsx, or as .csv"

Cells = dict[int, str]  # the texts of a row that are not empty, by the numbers of their columns, from 0


@dataclass
class Sheet:
    """The rows of a sheet that are not blank, by their numbers, and its formulas whose values are not in the file: the
    program that wrote it has not computed them."""

    title: str
    rows: dict[int, Cells] = field(default_factory=dict)
    not_computed: list[tuple[int, int]] = field(default_factory=list)  # the row and the column of each

    @property
    def first(self) -> int | None:
        """The number of the first row with two cells, or None."""
        return next((number for number, cells in self.rows.items() if len(cells) > 1), None)

    def listed(self, begin: int) -> Iterator[tuple[int, list[str]]]:
        """Yields the rows from this one on by their numbers, all as wide as the widest."""
        width = 1 + max(max(cells) for cells in self.rows.values())
        for number, cells in self.rows.items():
            if number >= begin:
                yield number, [cells.get(column, "") for column in range(width)]


def read_xlsx(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the rows of two columns, as from any table. Raises InputError or MissingError."""
    described, sheet, begin = chosen_sheet(path)
    rows, taken = table_rows(path, sheet.listed(begin), source, target, described)
    refuse_not_computed(path, sheet, (taken.left, taken.right))
    return rows, taken


def refuse_not_computed(path: Path, sheet: Sheet, columns: Container[int]) -> None:
    """Raises InputError for cells in these columns that are formulas without a value."""
    found = [row for row, column in sheet.not_computed if column in columns]
    if found:
        what = f"{counted(len(found), 'formula')} without a stored value, the first in row {found[0]}"
        raise InputError(what, where=str(path), fix="open it in Excel or LibreOffice, and save it")


def chosen_sheet(path: Path) -> tuple[str, Sheet, int]:
    """Returns the sheet that is read, in words and as it is, and the number of the row where its table begins. Raises
    InputError or MissingError."""
    data = read_bytes(path)
    try:
        sheets = [
            sheet
            for sheet in _Workbook(data, packed_size(path), str(path)).sheets()
            if sheet.rows or sheet.not_computed
        ]
    except (*DAMAGED, NOT_READ, KeyError, ValueError, IndexError, OverflowError) as error:
        what = f"not a workbook that can be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        raise InputError(what, where=str(path), fix=FIX) from None
    for sheet in sheets:
        if not sheet.rows:
            refuse_not_computed(path, sheet, range(MOST_COLUMNS))
    if not sheets:
        raise InputError("no sheet with anything on it", where=str(path), fix="give a table of two columns")
    tables = [(sheet, first) for sheet in sheets if (first := sheet.first) is not None]
    named = (table for table in tables if is_header([*table[0].rows[table[1]].values()]))
    sheet, begin = next(named, tables[0] if tables else (sheets[0], 1))
    described = f"a sheet {sheet.title!r}"
    described += f" ({counted(len(sheets) - 1, 'other sheet')} not read)" if sheets[1:] else ""
    described += f" from row {begin}" if min(sheet.rows) < begin else ""
    return described, sheet, begin


class _Workbook:
    """Reads the parts of a workbook."""

    def __init__(self, data: bytes, packed: int, where: str) -> None:
        self.archive, self.where = archive_in(io.BytesIO(data), packed, where), where
        self.characters = most_unpacked(packed)  # that may still be read: many cells may share a text
        self.parts: dict[str, tuple[str, str]] = {}  # the kind and the name of each part, by its relation
        for element in self._elements("xl/_rels/workbook.xml.rels", ("Relationship",)):
            name = posixpath.normpath(posixpath.join("/xl", element.get("Target", ""))).lstrip("/")
            self.parts[element.get("Id", "")] = element.get("Type", "").rpartition("/")[2], name
        named = dict(self.parts.values())
        self.texts = [_text(element) for element in self._elements(named.get("sharedStrings", ""), ("si",))]
        self.codes: dict[int, str] = {}  # number formats by their numbers
        self.styles: list[int] = []  # the number of each style's format
        for element in self._elements(named.get("styles", ""), ("numFmt", "cellXfs")):
            if name_of(element) == "numFmt":
                self.codes[int(element.get("numFmtId", -1))] = element.get("formatCode", "")
            else:
                self.styles = [int(style.get("numFmtId", 0)) for style in element]
        self.from_1904 = False

    def sheets(self) -> Iterator[Sheet]:
        known = set[str]()
        for element in self._elements(WORKBOOK, ("workbookPr", "sheet")):
            if name_of(element) == "workbookPr":
                self.from_1904 = element.get("date1904") in ("1", "true")
                continue
            kind, part = self.parts[next((own for name, own in element.attrib.items() if name.endswith("}id")), "")]
            if kind == "worksheet" and part not in known:
                known.add(part)
                yield self._sheet(element.get("name", ""), part)

    def _elements(self, part: str, names: Container[str]) -> Iterator[Element]:
        """Yields the elements of these names in a part; they are emptied afterwards."""
        if not part:
            return
        with self.archive.open(part) as file:
            data = read_in_parts(file.read, self.archive.getinfo(part).file_size)
        for event, element in elements_of(data, f"{self.where}/{part}"):
            if event == "end" and name_of(element) in names:
                yield element
                element.clear()

    def _sheet(self, title: str, part: str) -> Sheet:
        sheet, number = Sheet(title), 0
        for row in self._elements(part, ("row",)):
            number = int(row.get("r") or number + 1)
            column, cells = -1, Cells()
            for cell in (child for child in row if name_of(child) == "c"):
                column = _column(cell.get("r", "")) if cell.get("r") else column + 1
                if column >= MOST_COLUMNS:
                    what = f"more than {MOST_COLUMNS:,} columns, in row {number}"
                    raise InputError(what, where=self.where, fix="give a table of two columns")
                if text := self._cell(cell):
                    cells[column] = text
                elif cell.get("t") not in ("str", "e") and _child(cell, "f") is not None:
                    sheet.not_computed.append((number, column))
            if cells:
                sheet.rows.setdefault(number, cells)
        return sheet

    def _cell(self, cell: Element) -> str:
        """Returns the text of a cell; "" for an error."""
        kind, value = cell.get("t", "n"), _child(cell, "v")
        stored = "" if value is None else value.text or ""
        if kind == "inlineStr":
            stored = _text(_child(cell, "is"))
        elif not stored or kind == "e":
            stored = ""
        elif kind == "s":
            stored = self.texts[int(stored)]
        elif kind == "b":
            stored = str(bool(int(stored)))
        elif kind in ("n", "d"):
            stored = self._number(stored, int(cell.get("s", 0)))
        self.characters -= len(stored)
        if self.characters < 0:
            raise InputError("much more text in its cells than there are bytes", where=self.where, fix=FIX)
        return decoded_text(stored)

    def _number(self, stored: str, style: int) -> str:
        """Returns a number, or a date if its style is that of one; "" for a date that is out of range."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
        from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel, from_ISO8601

        if re.fullmatch(r"[-+\d.eE]+", stored) is None:
            value = from_ISO8601(stored)
        else:
            value = float(stored) if re.search("[.eE]", stored) else int(stored)
            number = self.styles[style] if style < len(self.styles) else 0
            code = self.codes.get(number, BUILTIN_FORMATS.get(number))
            if is_date_format(code):
                epoch = MAC_EPOCH if self.from_1904 else WINDOWS_EPOCH
                try:
                    value = from_excel(value, epoch, timedelta=is_timedelta_format(code))
                except (OverflowError, ValueError):
                    return ""
        if isinstance(value, datetime) and value.time() == time():  # a date alone, which is stored as midnight
            value = value.date()
        return str(value)


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element if name_of(child) == name), None)


def _text(element: Element | None) -> str:
    """Returns a text, which may be in several runs, without how it is read aloud."""
    texts = list[str]()
    for part in () if element is None else element:
        inside = [part] if name_of(part) == "t" else part if name_of(part) == "r" else ()
        texts += [own.text or "" for own in inside if name_of(own) == "t"]
    return "".join(texts)


def _column(cell: str) -> int:
    """Returns the number of a cell's column from 0: 27 for "AB7". Raises ValueError."""
    letters = cell.rstrip("0123456789")
    if not re.fullmatch("[A-Za-z]{1,3}", letters):
        raise ValueError(f"a cell {cell[:20]!r}")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1
