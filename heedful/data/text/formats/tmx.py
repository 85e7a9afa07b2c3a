"""TMX, the exchange format of translation memories (Translation Memory eXchange 1.4b, LISA 2005)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.data.text.columns import SOURCE, TARGET, Columns, Rows
from heedful.data.text.formats.inline import words_of
from heedful.data.text.formats.languages import two_languages
from heedful.data.text.headers import meaning
from heedful.data.xml import elements, language_of, name_of
from heedful.errors import InputError, counted

ANY = ("*all*", "")  # values of a header without a source language


def read_tmx(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the units that have both languages, numbered by their order in the file. Of several variants of a unit in
    one language (regardless of case), the first is taken. "en" includes all regions, the most frequent first. Inline
    codes are left out. Raises InputError or MissingError."""
    first, units, spelled = "", list[dict[str, str]](), dict[str, str]()
    for kind, value in _units(path):
        if isinstance(value, str):
            first = value
        elif kind == "unit":
            units.append({spelled.setdefault(name.lower(), name): text for name, text in value.items()})
    found = Counter(language for unit in units for language in unit)
    if not found:
        raise InputError("no unit with a segment of text", where=str(path), fix="export the memory again")
    there = sorted(found, key=lambda name: (name.lower() != first.lower(), -found[name], name))
    regions = {name: own for name in (source, target) if len(own := _regions(name, there)) > 1}
    for name, own in regions.items():
        there = [name if one == own[0] else one for one in there if one not in own[1:]]
        for unit in units:
            if first_of := next((one for one in own if one in unit), None):
                unit[name] = unit[first_of]
    left, right = two_languages(there, source, target, where=str(path))
    without = sum(left not in unit or right not in unit for unit in units)
    names = [f"{name} ({', '.join(regions[name])})" if name in regions else name for name in (left, right)]
    layout = f"TMX, {' and '.join(names)}" + (f", {counted(without, 'unit')} without both left out" if without else "")
    rows = (
        (number, (unit[left], unit[right])) for number, unit in enumerate(units, 1) if left in unit and right in unit
    )
    return rows, Columns(0, 1, left, right, True, layout)


def _regions(name: str, there: Sequence[str]) -> list[str]:
    """Returns the regional variants in a memory of a language that is named without a region, the exact name first."""
    if name in (SOURCE, TARGET) or re.search("[-_]", name):
        return []
    same = (one for one in there if meaning(name) and meaning(one) == meaning(name))
    return sorted(same, key=lambda one: one.lower() != name.lower())


def _units(path: Path) -> Iterator[tuple[str, str | dict[str, str]]]:
    """Yields the source language of the header, and the text of each unit by language."""
    unit: dict[str, str] = {}
    for event, element in elements(path):
        name = name_of(element)
        if event == "start" and name == "header":
            named = element.get("srclang", "")
            yield "source", "" if named.lower() in ANY else named
        elif event == "end" and name == "tuv":
            language = language_of(element)
            segment = next((child for child in element if name_of(child) == "seg"), None)
            if not language:
                raise InputError("a tuv without xml:lang", where=str(path), fix="each needs the language of its text")
            if language.lower() not in map(str.lower, unit):
                unit[language] = words_of(segment)
        elif event == "end" and name == "tu":
            yield "unit", unit
            unit = {}
            element.clear()
