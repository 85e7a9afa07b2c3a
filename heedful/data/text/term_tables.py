"""Tables of terms: finds the columns of the term and of its translation, by the header or else by their order.

Several columns of one language are synonyms. Rows may name their languages, as in DeepL's glossaries: a term, its
translation, and the codes of both.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from heedful.data.lines import listed
from heedful.data.parts import kind_of
from heedful.data.tables import table_cells
from heedful.data.text.columns import FUZZY, SOURCE, TARGET, is_fuzzy
from heedful.data.text.directions import LanguageColumns, in_words, language_columns
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.formats import format_of
from heedful.data.text.formats.tbx import MOST_SYNONYMS, NOT_USED
from heedful.data.text.formats.xlsx import MOST_COLUMNS, chosen_sheet, refuse_not_computed
from heedful.data.text.headers import SIDES, is_header, meaning
from heedful.data.text.table_rows import as_wide_as_first
from heedful.errors import InputError

LONGEST_CODE, LONGEST_NAME = 3, 40  # characters
TERM_WORDS = "term terms word phrase entry begriff benennung wort terme mot término palabra termine parola"
LANGUAGE_WORDS = "language lang sprache langue idioma lingua texte texto testo"
TERM = frozenset(TERM_WORDS.split())
NAMING = TERM.union(LANGUAGE_WORDS.split())  # words that may occur in a header beside a language
STATE = frozenset(["status", "state", "usage", "info"])  # in the headers of columns with values such as "Forbidden"
# Headers of two columns that name no languages, but are not a term and its translation either.
PLAIN_HEADERS = {
    ("key", "value"), ("from", "to"), ("l1", "l2"), ("lang1", "lang2"), ("original", "translated"), ("word", "meaning"),
}  # fmt: skip
COMMENT = "#"  # begins a line without a term, if it has one cell
FIX = "each line: a term, a TAB and its translation"

Rows = list[tuple[int, list[str]]]  # the number of each row, and its cells
Entry = tuple[str, list[str]]  # a term, and its translations


def table_of(path: Path) -> Rows | None:
    """Reads the rows of a table that are not blank, without comments; returns None for other kinds of files. Raises
    InputError or MissingError."""
    kind = format_of(path)
    if kind not in (None, "xlsx") or (kind is None and kind_of(path) in (".json", ".jsonl", ".yaml", ".yml")):
        return None
    rows: Iterable[tuple[int, list[str]]]
    if kind:
        _, sheet, begin = chosen_sheet(path)
        refuse_not_computed(path, sheet, range(MOST_COLUMNS))
        between, rows = "cell", sheet.listed(begin)
    else:
        between, rows = table_cells(path, read_encoded_lines(path)[0], is_header)
    kept = [(number, row) for number, row in rows if any(row) and not (len(row) == 1 and row[0].startswith(COMMENT))]
    return [*as_wide_as_first(path, kept, len(kept[0][1]), 1, between)] if kept else []


def table_terms(rows: Rows, source: str, target: str, *, where: str) -> tuple[list[Entry], int]:
    """Returns the terms of a table with a header or without, and the number of rows under a header that lack a usable
    term on a side. Raises InputError."""
    first = rows[0][1] if rows else []
    told = language_columns(first)
    if told is not None:
        rows = rows[1:]
    elif rows and all(_says_languages(row) for _, row in rows):
        told = LanguageColumns(0, 1, 2, 3)
    if told is not None:
        return [(row[told.source], [row[told.target]]) for row in _of_pair(rows, told, source, target, where)], 0
    plain = tuple(cell.strip().lower() for cell in first[:2]) in PLAIN_HEADERS
    columns = ([0], [1]) if plain else _columns_in(first, source, target, where=where)
    states = _states(first, columns) if columns else {}
    fuzzy = [i for i, cell in enumerate(first) if columns and cell.strip().lower() == FUZZY]
    entries, left_out = list[Entry](), 0
    for number, row in rows[1:] if columns else rows:
        if columns is None and len(row) < 2:
            raise InputError("1 column, expected at least 2", where=f"{where}:{number}", fix=FIX)
        terms, forms = (
            [row[i] for i in side if i < len(row) and row[i].strip() and not _refused(row, states.get(i))]
            for side in columns or ([0], [1])
        )
        if any(i < len(row) and is_fuzzy(row[i]) for i in fuzzy):
            terms = []
        entries += [(term, forms) for term in terms or [""] if columns is None or (term and forms)]
        left_out += columns is not None and not (terms and forms)
    return entries, left_out


def _states(first: Sequence[str], columns: tuple[list[int], list[int]]) -> dict[int, int]:
    """Returns, for the columns of terms, the column that says whether a term may be used: the only one of the table, or
    the next one after the term's column and before the next term's."""
    states = [i for i, cell in enumerate(first) if STATE & {*re.findall(r"(?:(?!_)\w)+", cell.lower())}]
    terms = sorted([*columns[0], *columns[1]])
    found = {}
    for i, end in zip(terms, [*terms[1:], len(first)], strict=True):
        own = states if len(states) == 1 else [state for state in states if i < state < end]
        if own:
            found[i] = own[0]
    return found


def _refused(row: Sequence[str], state: int | None) -> bool:
    said = row[state] if state is not None and state < len(row) else ""
    return any(part.strip().lower().startswith(NOT_USED) for part in said.split(";"))


def _says_languages(row: Sequence[str]) -> bool:
    """Whether a row is a term, its translation, and the codes of both."""
    return len(row) == 4 and all(len(cell) < 8 and meaning(cell) not in (None, *SIDES) for cell in row[2:])


def _of_pair(rows: Rows, at: LanguageColumns, source: str, target: str, where: str) -> Iterator[list[str]]:
    """Yields the rows of the two languages, or of the languages of the first row if those of the model are not known.
    Raises InputError if there are none."""
    rows = [(number, row) for number, row in rows if len(row) > max(at)]
    said = [(row[at.source_language].strip(), row[at.target_language].strip()) for _, row in rows]
    asked = meaning(source), meaning(target)
    if rows and {None, SOURCE, TARGET} & {*asked}:
        asked = meaning(said[0][0]), meaning(said[0][1])
    own = [row for (_, row), (one, other) in zip(rows, said, strict=True) if (meaning(one), meaning(other)) == asked]
    if not own:
        what = f"its terms are from {in_words(dict.fromkeys(said))}, and {source} is translated to {target}"
        raise InputError(what, where=where, fix="give a glossary of these two")
    yield from own


def _columns_in(first: Sequence[str], source: str, target: str, *, where: str) -> tuple[list[int], list[int]] | None:
    """Returns the columns, from 0, of the two languages by the header; None if the line is not a header: a short term
    is easily the code of some language. Raises InputError for a header of other languages."""
    asked = meaning(source), meaning(target)
    named = [_named(cell) for cell in first]
    for one, other in product((asked[0], SOURCE), (asked[1], TARGET)):
        sides = [[i for i, each in enumerate(named) if each == side] for side in (one, other)]
        several = any(len(own) > 1 and side in SIDES for own, side in zip(sides, (one, other), strict=True))
        if one and other and one != other and all(sides) and not several:
            if max(map(len, sides)) > MOST_SYNONYMS:
                what = f"{len(sides[0]):,} and {len(sides[1]):,} columns of terms"
                raise InputError(what, where=where, fix=f"give at most {MOST_SYNONYMS} columns of a language")
            return sides[0], sides[1]
    for names in ([_in_brackets(cell) for cell in first], [meaning(cell.lower()) for cell in first]):
        if None not in asked and names.count(asked[0]) == names.count(asked[1]) == 1:
            return [names.index(asked[0])], [names.index(asked[1])]
    others = [i for i, each in enumerate(named) if each not in (None, *SIDES)]
    codes = all(len(first[i].strip()) <= LONGEST_CODE for i in others)
    if len({named[i] for i in others}) < (3 if codes else 2):
        return None
    if {None, SOURCE, TARGET} & {*asked}:  # the languages of the model are unknown
        return [others[0]], [others[1]]
    what = f"its columns are {listed(first[i].strip() for i in others)}, and {source} is translated to {target}"
    raise InputError(what, where=where, fix="give a glossary of these two")


def _named(cell: str) -> str | None:
    """Returns what the header of a column names, as `meaning` does; "Term (EN)", "term_en" and "EN source" are
    English."""
    if len(cell) > LONGEST_NAME:
        return None
    words = re.findall(r"(?:(?!_)\w)(?:(?!_)[\w-])*", re.sub("(?<=[a-z])(?=[A-Z])", " ", cell))
    kinds = [word for word in words if word.lower() not in NAMING]
    languages = [word for word in kinds if meaning(word) not in SIDES]
    said = next(filter(None, map(meaning, (cell, " ".join(kinds), " ".join(languages)))), None)
    return said or (SOURCE if words and not kinds and TERM & {*map(str.lower, words)} else None)


def _in_brackets(cell: str) -> str | None:
    found = re.fullmatch(r".*[(\[]([\w-]+)[)\]]\s*", cell) if len(cell) <= LONGEST_NAME else None
    return meaning(found[1]) if found else None
