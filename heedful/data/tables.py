"""Tables of text: which character separates their cells, as their first lines tell, and what the cells are."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from heedful.data.lines import csv_cells, tsv_cells
from heedful.data.parts import kind_of
from heedful.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "TAB", "|": "|"}
SAID = re.compile(r"sep=([,;\t|])", re.IGNORECASE)  # how Excel says it, in a line before all others
IMAGE_COLUMNS = ("image", "file", "path")  # that name the file of a picture
FILE_COLUMNS = (*IMAGE_COLUMNS, "file_name", "filename", "image_name", "image_path")  # the same, beside captions
LOOKED_AT = 100  # rows, to find out what separates cells
QUOTED = r'"(?:[^"]|"")*+"(?=[\t\n]|\Z)'
QUOTED_CELLS = re.compile(rf'(?:(?:{QUOTED}|[^"\t\n]*+)(?:[\t\n]|\Z))*+')
ALL_QUOTED = re.compile(rf"(?:{QUOTED}(?:[\t\n]+|\Z))*+")
DOUBLED = re.compile(r'(?<![^\t\n])"[^"]*""')

Rows = Iterator[tuple[int, list[str]]]  # numbers of lines, and cells; a blank line has none


def table_cells(path: Path, lines: list[str], is_header: Callable[[Sequence[str]], bool]) -> tuple[str, Rows]:
    """What separates the cells of a table, by its name, and the rows. Quotes are those of CSV, but in a .tsv or .txt
    file whose cells TABs separate, see `tab_cells`. Raises InputError where a quote is not closed, when that row is
    asked for."""
    said = SAID.fullmatch(lines[0])
    lines = ["", *lines[1:]] if said else lines
    separator = said[1] if said else separator_of(path, lines, is_header)
    return SEPARATORS[separator], _cells(path, lines, separator)


def tab_cells(path: Path, lines: list[str]) -> Rows:
    """The rows of a table with TABs. Quotes are text, but where all of them are those of CSV, as pandas and Excel write
    them: then a cell may have a TAB or a line end in it."""
    return csv_cells(path, lines, "\t") if _quoted(lines) else tsv_cells(lines)


def separator_of(path: Path, lines: list[str], is_header: Callable[[Sequence[str]], bool]) -> str:
    """The character by which the first row is a header; or else by which all of the first rows have two cells, or all
    have the same number of more; or the usual one: a comma in .csv, a TAB in any other. A comma is common in text, and
    separates cells in .csv or under a header alone."""
    usual = "," if kind_of(path) == ".csv" else "\t"

    def rank(separator: str) -> tuple[int, bool]:
        rows = _first_rows(path, lines, separator)
        widths = Counter(map(len, rows))
        if rows and is_header([cell.strip() for cell in rows[0]]):
            likely = 3
        elif len(widths) != 1 or 1 in widths or separator == "," != usual:
            likely = 0
        else:
            likely = 2 if 2 in widths else 1
        return likely, separator == usual

    return max(SEPARATORS, key=rank)


def _first_rows(path: Path, lines: list[str], separator: str) -> list[list[str]]:
    """None where quotes are not closed."""
    try:
        return [cells for _, cells in islice(_cells(path, lines, separator), LOOKED_AT) if cells]
    except InputError:
        return []


def _quoted(lines: list[str]) -> bool:
    """Whether cells that have quotes in them are in quotes themselves, and these are doubled; or all cells are."""
    text = "\n".join(lines) if any(line.startswith('"') or '\t"' in line for line in lines) else ""
    return bool(text) and (QUOTED_CELLS if DOUBLED.search(text) else ALL_QUOTED).fullmatch(text) is not None


def _cells(path: Path, lines: list[str], separator: str) -> Rows:
    if separator == "\t" and kind_of(path) != ".csv":
        return tab_cells(path, lines)
    rows = csv_cells(path, lines, separator)
    return ((number, [cell.strip() for cell in cells]) for number, cells in rows) if separator == "|" else rows
