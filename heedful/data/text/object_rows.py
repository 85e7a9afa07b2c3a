"""Reads the rows of JSON objects, and finds their source and target keys."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from heedful.data.lines import json_object, json_type, listed, sanitise
from heedful.data.text.columns import FUZZY, SOURCE, TARGET, Columns, Rows, is_fuzzy
from heedful.data.text.directions import (
    EachDirection,
    LanguageColumns,
    OneDirection,
    chosen_direction,
    language_columns,
)
from heedful.data.text.headers import two_of
from heedful.data.text.table_rows import LOOKED_INTO, columns_by_language, is_number, only_sides
from heedful.errors import InputError

NUMBERED = re.compile(r"_?\d+")  # the suffix of one of several references
Item = tuple[int, tuple[str, object]]  # the number of an object, its position in words, and the object
BLANK: dict[str, object] = {}  # stands for a blank line


def object_rows(
    items: Iterable[tuple[str, object]],
    source: str,
    target: str,
    *,
    described: str = "JSON, keys",
    named: bool = False,
    each: EachDirection | None = None,
) -> tuple[Rows, Columns]:
    """Returns the rows of JSON objects (or of other records, `described` in the notes), and which keys these are: those
    asked for, or those that the first object leaves no choice about. If objects name their languages, the rows are
    those of one direction, or of `each`."""
    numbered = _without_fuzzy(items, fuzzy := list[int]())
    before: list[Item] = []
    for item in numbered:
        before.append(item)
        if item[1][1] is not BLANK:
            break
    first = before[-1][1][1] if before else BLANK
    names = [*first] if isinstance(first, dict) else []
    if not named and (told := language_columns(names)):
        both = f"{described} {names[told.source]!r} and {names[told.target]!r}"
        only = chosen_direction(source, target, each)
        taken = Columns(0, 1, source, target, True, both, fuzzy=fuzzy)
        return _told_objects(chain(before, numbered), names, told, only), taken
    taken = _keys(first, source, target, described)._replace(fuzzy=fuzzy)
    left, right = taken.source, taken.target
    if sides := only_sides(names := [*_keys_of(first)], source, target):
        left, right = names[sides[0]], names[sides[1]]
        before += islice(numbered, LOOKED_INTO)
        two = [[*sides_of(row, where, left, right)[:2]] for _, (where, row) in before if row is not BLANK]
        left, right = (right, left) if columns_by_language(two, source, target) else (left, right)
        taken = taken._replace(layout=f"{described} {left!r} and {right!r}")
    rows = (
        (number, ("", "") if row is BLANK else sides_of(row, where, left, right))
        for number, (where, row) in chain(before, numbered)
    )
    return rows, taken


def _without_fuzzy(items: Iterable[tuple[str, object]], fuzzy: list[int]) -> Iterator[Item]:
    """Yields the objects that no key called fuzzy marks, and adds the numbers of the others to `fuzzy`."""
    for number, (where, row) in enumerate(items, 1):
        if isinstance(row, dict) and is_fuzzy(row.get(FUZZY)):
            fuzzy.append(number)
        else:
            yield number, (where, row)


def _told_objects(
    items: Iterable[Item], names: list[str], at: LanguageColumns, only: OneDirection | EachDirection
) -> Rows:
    """Yields, of objects that name their languages, the rows of the directions that are asked for."""
    keys = names[at.source_language], names[at.target_language]
    for number, (where, row) in items:
        if row is BLANK:
            yield number, ("", "")
        elif not isinstance(row, dict) or only.has((row.get(keys[0]), row.get(keys[1])), where):
            yield number, sides_of(row, where, names[at.source], names[at.target])


def _keys(row: object, source: str, target: str, described: str) -> Columns:
    """Returns the keys that are asked for, or the only two of the first object that name languages or sides."""
    names = [source, target]
    row = _translation(row)
    if names == [SOURCE, TARGET] and isinstance(row, dict) and not {SOURCE, TARGET} <= {*row}:
        texts = [key for key, value in row.items() if not is_number(value)]
        for keys in (list(dict.fromkeys(map(_unnumbered, own))) for own in (texts, row)):
            names = [keys[i] for i in two_of(keys) or ()] or names
    return Columns(0, 1, names[0], names[1], True, f"{described} {names[0]!r} and {names[1]!r}")


def _keys_of(row: object) -> Iterable[str]:
    row = _translation(row)
    return row if isinstance(row, dict) else ()


def _translation(row: object) -> object:
    """Returns the value of "translation" in a row of Hugging Face's data sets, or the row itself."""
    return row["translation"] if isinstance(row, dict) and isinstance(row.get("translation"), dict) else row


def sides_of(row: object, where: str, source: str, target: str) -> tuple[str, ...]:
    """Returns the source and the references of a JSON object; a single empty reference stands for none. Keys beside its
    "translation" are found too."""
    whole, row = row, _translation(row)
    if isinstance(row, dict) and isinstance(whole, dict):
        row = {**{name: whole[name] for name in (source, target) if name in whole}, **row}
    row = json_object(row, where, f'one object a line: {{"{source}": "...", "{target}": "..."}}')
    numbered = [key for key in row if key.startswith(target) and NUMBERED.fullmatch(key, len(target))]
    if target not in row and numbered:  # summary1, summary2
        row = {**row, target: [text for key in numbered for text in _texts(row, key, where)]}
    for name in (source, target):
        if name not in row:
            what = f"no key {name!r}; there are {listed(row)}"
            raise InputError(what, where=where, fix="name two of these as source and target")
    references = [text for text in _texts(row, target, where) if text.strip()] or [""]
    return sanitise(" ".join(_texts(row, source, where))), *map(sanitise, references)


def _unnumbered(key: str) -> str:
    """Returns a key without its number, as "summary" for "summary1" and "summary_2"."""
    return key if (bare := key.rstrip("0123456789")) == key else bare.removesuffix("_")


def _texts(row: dict[str, object], name: str, where: str) -> list[str]:
    value = row[name]
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        what = f"{name!r} is {json_type(value)}, expected text"
        fix = 'write "", and the pair is left out' if value is None else "write it in quotes"
        raise InputError(what, where=where, fix=fix)
    return [str(text) for text in texts]
