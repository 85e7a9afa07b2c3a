"""Reads the rows of a table of texts, and finds its source and target columns."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import listed
from heedful.data.text.columns import FUZZY, SOURCE, TARGET, Columns, Rows, is_fuzzy
from heedful.data.text.directions import (
    EachDirection,
    LanguageColumns,
    OneDirection,
    chosen_direction,
    language_columns,
)
from heedful.data.text.headers import column_of, filled, is_header, meaning, two_of
from heedful.data.text.quality.languages import language
from heedful.errors import InputError, counted

LOOKED_INTO = 200  # rows, to identify the languages of the columns
MOST_TEXT = 4000  # characters of a column, to identify its language
TableRow = tuple[int, list[str]]  # the number of a row, and its cells; a blank row has none
QUOTE = "write texts that hold a {} in quotes, or put a TAB between the columns"
ATTRIBUTION = "CC-BY"  # the beginning of the third column in Tatoeba's pairs


def table_rows(
    path: Path,
    cells: Iterable[TableRow],
    source: str,
    target: str,
    described: str,
    between: str = "cell",
    *,
    named: bool = False,
    each: EachDirection | None = None,
) -> tuple[Rows, Columns]:
    """Returns the rows of a table's two columns, and which columns these are; if rows name their languages, those of
    one direction, or of `each`. Raises InputError."""
    cells = iter(cells)
    number, first = next((row for row in cells if row[1]), (1, []))
    if not named and (told := language_columns(first)):
        cells = _without_fuzzy(first, cells, fuzzy := list[int]())
        taken = Columns(told.source, told.target, source, target, True, described, fuzzy=fuzzy)
        return _told_rows(path, cells, first, told, chosen_direction(source, target, each)), taken
    ahead = [*islice(cells, LOOKED_INTO)]
    below = [row for _, row in ahead if row]
    numbers, names = _numbers(source, target), [cell.strip() for cell in first]
    table = TableHead(f"{path}:{number}", names, below, source, target, numbers, is_header(names))
    rule, taken = next((rule, found) for rule in RULES if (found := rule(table)) is not None)
    rows = chain([] if taken.header else [(number, first)], ahead, cells)
    which = f"no header, columns {taken.left + 1} and {taken.right + 1}"
    if rule is _by_language:
        which += f" by their languages, {taken.source} and {taken.target}"
        which += f", {counted(len(first) - 2, 'other column')} not read" if len(first) > 2 else ""
    if between == "comma" and rule in (_by_language, _first_two) and _cut_by_commas([first, *below], taken.right):
        if len(first) > 2:
            what = "cells that begin with a blank, as where commas of the texts are not in quotes"
            raise InputError(what, where=table.where, fix=QUOTE.format("comma"))
        which += ", the second behind a comma and a blank: is it one of the text?"
    which = f"columns {names[taken.left]!r} and {names[taken.right]!r} of its header" if taken.header else which
    taken = taken._replace(layout=f"{described}, {which}")
    if taken.header:
        wide = _under(first, path, _without_fuzzy(names, rows, fuzzy := list[int]()))
        taken = taken._replace(fuzzy=fuzzy)
    elif rule in (_by_number, _by_language):
        wide = as_wide_as_first(path, rows, len(first), max(taken.left, taken.right) + 1, between)
    else:
        most = 3 if len(first) == 3 and first[2].startswith(ATTRIBUTION) else 2
        fix = "give two columns, or say which: --source 1 --target 2, or two names in a first line that has them"
        wide = _wide(path, rows, 2, most, expected=f"2 (source {between} target)", fix=fix)
    return ((number, (row[taken.left], row[taken.right]) if row else ("", "")) for number, row in wide), taken


def _told_rows(
    path: Path,
    rows: Iterable[TableRow],
    header: list[str],
    at: LanguageColumns,
    only: OneDirection | EachDirection,
) -> Rows:
    """Yields, of rows that name their languages, those of the directions that are asked for."""
    for number, cells in _under(header, path, rows):
        if not any(cells):
            yield number, ("", "")
        elif only.has((cells[at.source_language], cells[at.target_language]), f"{path}:{number}"):
            yield number, (cells[at.source], cells[at.target])


def _without_fuzzy(header: Sequence[str], rows: Iterable[TableRow], fuzzy: list[int]) -> Iterator[TableRow]:
    """Yields the rows that a column called fuzzy does not mark, and adds the numbers of the others to `fuzzy`."""
    at = next((i for i, name in enumerate(header) if name.strip().lower() == FUZZY), None)
    for number, row in rows:
        if at is not None and len(row) > at and is_fuzzy(row[at]):
            fuzzy.append(number)
        else:
            yield number, row


def only_sides(names: Sequence[str], source: str, target: str) -> tuple[int, int] | None:
    """Returns the indices of the source and the target if two languages are asked for, but the header or keys only name
    the two sides; else None."""
    if {None, SOURCE, TARGET} & {meaning(source), meaning(target)} or column_of(source, names) is not None:
        return None
    left, right = column_of(SOURCE, names), column_of(TARGET, names)
    return None if left is None or right is None or column_of(target, names) is not None else (left, right)


def columns_by_language(rows: list[list[str]], source: str, target: str) -> Columns | None:
    """Returns the two columns of a table without a header that are in the languages asked for; or, with more than two
    columns, in the only two languages there are. None if they cannot be identified, or are the two columns in order."""
    width = min(map(len, rows))
    width = 2 if width == 3 and rows[0][2].startswith(ATTRIBUTION) else width
    asked = [None if name in (SOURCE, TARGET) else meaning(name) for name in (source, target)]
    if width < 2 or (width == 2 and None in asked):
        return None
    largest: dict[str, tuple[int, int]] = {}  # for each language, the column with the most text
    for column in range(width):
        text = " ".join(row[column] for row in rows)
        if code := language(text[:MOST_TEXT]):
            largest[code] = max(largest.get(code, (0, 0)), (len(text), column))
    found = {code: column for code, (_, column) in sorted(largest.items(), key=lambda each: each[1][1])}
    if any(code is not None and code not in found for code in asked):
        return None
    both = filled(asked, [*found])
    if both is None or both[0] == both[1] or (width == 2 and [found[code] for code in both] == [0, 1]):
        return None
    names = [code if name in (SOURCE, TARGET) else name for code, name in zip(both, (source, target), strict=True)]
    return Columns(found[both[0]], found[both[1]], names[0], names[1], False)


class TableHead(NamedTuple):
    """What determines the two columns of a table: its first rows, and the names that are asked for."""

    where: str
    first: list[str]
    below: list[list[str]]
    source: str
    target: str
    numbers: tuple[int, int] | None  # column numbers, from 1
    header: bool  # whether the first row is a header


def _by_number(table: TableHead) -> Columns | None:
    """Returns the columns with the numbers that are asked for, whatever they hold."""
    if table.numbers is None:
        return None
    numbers, names = table.numbers, table.first
    if table.header and max(numbers) > len(names):
        what = f"{counted(len(names), 'column')}, expected at least {max(numbers)}"
        raise InputError(what, where=table.where, fix=f"choose among those that the header names: {listed(names)}")
    one, other = (names[number - 1] if table.header else f"column {number}" for number in numbers)
    turned = f"--source {numbers[1]} --target {numbers[0]}"
    return Columns(numbers[0] - 1, numbers[1] - 1, one, other, table.header, turned=turned)


def _by_name(table: TableHead) -> Columns | None:
    """Returns the columns that the header names; a side that is not asked for is the only other column with text."""
    names, unsaid = table.first, (table.source == SOURCE, table.target == TARGET)
    left, right = column_of(table.source, names), column_of(table.target, names)
    if table.header and (unsaid[0] or left is not None) and (unsaid[1] or right is not None) and None in (left, right):
        values = table.below[0][: len(names)] if table.below else []
        texts = ["" if is_number(value) else name for name, value in zip_longest(names, values)]
        known = None if unsaid[0] else left, None if unsaid[1] else right
        found = two_of(names, *known) or two_of(texts, *known)
        if found is None:
            fix = "--source NAME --target NAME"
            raise InputError(f"which two columns? the header names {listed(names)}", where=table.where, fix=fix)
        left, right = found
    if left is None or right is None:
        return None
    one, other = names[left] if unsaid[0] else table.source, names[right] if unsaid[1] else table.target
    return Columns(left, right, one, other, True)


def _by_side(table: TableHead) -> Columns | None:
    """Returns the columns named source and target if languages are asked for, swapped if the texts are in these
    languages the other way round. Raises InputError for a name that no column has."""
    source, target = table.source, table.target
    if table.header and (sides := only_sides(table.first, source, target)):
        two = [[row[side] for side in sides] for row in table.below if len(row) == len(table.first)]
        left, right = sides[::-1] if two and columns_by_language(two, source, target) else sides
        return Columns(left, right, source, target, True)
    lower = [name.lower() for name in table.first]
    if table.header or source.lower() in lower or target.lower() in lower:
        unknown = source if column_of(source, table.first) is None else target
        what = f"no column {unknown!r} in the header; there are {listed(lower)}"
        raise InputError(what, where=table.where, fix="name two of these, or columns by number: --source 1 --target 2")
    return None


def _by_language(table: TableHead) -> Columns | None:
    """Returns the columns in the languages that are asked for, if there is no header."""
    return columns_by_language([table.first, *table.below], table.source, table.target)


def _first_two(table: TableHead) -> Columns:
    return Columns(0, 1, table.source, table.target, False, turned="--source 2 --target 1")


RULES = (_by_number, _by_name, _by_side, _by_language, _first_two)  # the first that finds two columns is used


def _numbers(source: str, target: str) -> tuple[int, int] | None:
    """Returns the columns that are asked for by number, from 1; None if neither is. Raises InputError if only one
    is."""
    found = [re.fullmatch(r"(?:column )?(\d+)", name) for name in (source, target)]
    if not any(found):
        return None
    numbers = [int(each[1]) for each in found if each]
    if len(numbers) < 2 or min(numbers) < 1:
        raise InputError(f"source {source!r} and target {target!r}", fix="give two numbers from 1, or two names")
    return numbers[0], numbers[1]


def _under(header: list[str], path: Path, rows: Iterable[TableRow]) -> Iterator[TableRow]:
    """Yields the rows, each blank or as wide as the header. Raises InputError for other rows."""
    expected = f"{len(header)} as in the header"
    fix = f"each line needs all of {listed(cell.strip().lower() for cell in header)}"
    return _wide(path, rows, len(header), len(header), expected=expected, fix=fix)


def as_wide_as_first(path: Path, rows: Iterable[TableRow], width: int, least: int, between: str) -> Iterator[TableRow]:
    """Yields the rows of a table without a header, each blank or with `least` columns; as many as the first where texts
    may hold what separates the columns. Raises InputError for other rows."""
    if between in ("TAB", "cell"):
        fix = "give these columns in each line"
        return _wide(path, rows, least, sys.maxsize, expected=f"at least {least}", fix=fix)
    expected = f"{width} as in the first row"
    return _wide(path, rows, max(width, least), width, expected=expected, fix=QUOTE.format(between))


def _cut_by_commas(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether most cells of a column begin with a blank, as the rest of a sentence does behind a comma."""
    return 2 * sum(row[column].startswith(" ") for row in rows if len(row) > column) > len(rows)


def _wide(
    path: Path, rows: Iterable[TableRow], least: int, most: int, *, expected: str, fix: str
) -> Iterator[TableRow]:
    """Yields the rows, each blank or of `least` to `most` columns. Raises InputError for other rows."""
    for number, cells in rows:
        if cells and not least <= len(cells) <= most:
            what = f"{counted(len(cells), 'column')}, expected {expected}"
            raise InputError(what, where=f"{path}:{number}", fix=fix)
        yield number, cells


def is_number(value: object) -> bool:
    """Whether a value is a number, and so no text: `id`, `nr` and `no` are languages too."""
    return isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value) is not None)
