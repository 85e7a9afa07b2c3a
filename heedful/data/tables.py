"""Tables of text: finds the character that separates the cells by the first lines, and reads the cells."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from heedful.data.lines import LONGEST_LINE, csv_cells, tsv_cells
from heedful.data.parts import kind_of
from heedful.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "TAB", "|": "|"}
SAID = re.compile(r"sep=([,;\t|])", re.IGNORECASE)  # how Excel declares it, in the first line
IMAGE_COLUMNS = ("image", "file", "path")  # name the file of a picture
FILE_COLUMNS = (*IMAGE_COLUMNS, "file_name", "filename", "image_name", "image_path")  # the same, in tables of captions
LOOKED_AT = 100  # rows, to find the separator
LINES_AT_ONCE = 10_000  # of which the quotes are looked at together
QUOTED = r'"(?:[^"]|"")*+"(?=[\t\n]|\Z)'
QUOTED_CELLS = re.compile(rf'(?:(?:{QUOTED}|[^"\t\n]*+)(?:[\t\n]|\Z))*+')
ALL_QUOTED = re.compile(rf"(?:{QUOTED}(?:[\t\n]+|\Z))*+")
DOUBLED = re.compile(r'(?<![^\t\n])"[^"]*""')

Rows = Iterator[tuple[int, list[str]]]  # line numbers and cells; a blank line has no cells


def table_cells(path: Path, lines: Sequence[str], is_header: Callable[[Sequence[str]], bool]) -> tuple[str, Rows]:
    """Returns the name of the separator of a table, and the rows. Quotes are those of CSV, except in a .tsv or .txt
    file with TABs, see `tab_cells`. Iterating raises InputError at a row whose quote is not closed."""
    said = SAID.fullmatch(lines[0])
    lines = ["", *lines[1:]] if said else lines
    separator = said[1] if said else separator_of(path, lines, is_header)
    return SEPARATORS[separator], _cells(path, lines, separator)


def tab_cells(path: Path, lines: Sequence[str]) -> Rows:
    """Yields the rows of a table with TABs. Quotes are text, unless all of them follow the rules of CSV, as pandas and
    Excel write them: then a cell may contain a TAB or a line end."""
    return csv_cells(path, lines, "\t") if _quoted(lines) else tsv_cells(lines)


def separator_of(path: Path, lines: Sequence[str], is_header: Callable[[Sequence[str]], bool]) -> str:
    """Returns the separator with which the first row is a header; or else the one with which all of the first rows have
    two cells, or the same larger number; or else the usual one: a comma in .csv, a TAB otherwise. A comma is common in
    text, so it only counts in .csv or with a header."""
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


def _first_rows(path: Path, lines: Sequence[str], separator: str) -> list[list[str]]:
    """Returns an empty list if quotes are not closed."""
    try:
        return [cells for _, cells in islice(_cells(path, lines, separator), LOOKED_AT) if cells]
    except InputError:
        return []


def _quoted(lines: Sequence[str]) -> bool:
    """Whether all cells that contain quotes are quoted, with the inner quotes doubled; or all cells are quoted."""
    if not any(line.startswith('"') or '\t"' in line for line in lines):
        return False
    doubled, each = False, iter(lines)
    rest = {QUOTED_CELLS: "", ALL_QUOTED: ""}  # what does not match yet, if cells may be so
    while QUOTED_CELLS in rest and (some := [*islice(each, LINES_AT_ONCE)]):
        for pattern in [*rest]:
            text = rest.pop(pattern) + "\n".join([*some, ""])
            doubled = doubled or (pattern is QUOTED_CELLS and DOUBLED.search(text) is not None)
            match = pattern.match(text)
            left = text[match.end() :] if match else text
            if len(left) <= LONGEST_LINE:
                rest[pattern] = left
    return rest.get(QUOTED_CELLS) == "" and (doubled or rest.get(ALL_QUOTED) == "")


def _cells(path: Path, lines: Sequence[str], separator: str) -> Rows:
    if separator == "\t" and kind_of(path) != ".csv":
        return tab_cells(path, lines)
    rows = csv_cells(path, lines, separator)
    return ((number, [cell.strip() for cell in cells]) for number, cells in rows) if separator == "|" else rows
