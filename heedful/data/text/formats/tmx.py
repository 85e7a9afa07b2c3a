"""TMX, the exchange format of translation memories (Translation Memory eXchange 1.4b, LISA 2005)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.data.text.columns import SOURCE, TARGET, Columns, Rows
from heedful.data.text.formats.inline import unbroken, words_of
from heedful.data.text.formats.languages import two_languages
from heedful.data.text.headers import meaning
from heedful.data.xml import elements, language_of, name_of
from heedful.errors import InputError, counted

ANY = ("*all*", "")  # values of a header without a source language


@dataclass
class Memory:
    """The units of a memory, each with the first text in each language, by the language's name in lower case."""

    source: str = ""  # the source language of the header
    sources: Counter[str] = field(default_factory=Counter)  # those of the units, which say their own
    units: list[dict[str, str]] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)  # the names of the languages, as they are first written
    further: Counter[str] = field(default_factory=Counter)  # texts of units that have one in this language already
    broken: int = 0  # texts with line breaks


def read_tmx(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the units that have both languages, numbered by their order in the file. Of several variants of a unit in
    one language (regardless of case), the first is taken. "en" includes all regions, the most frequent first. Inline
    codes are left out, and line breaks are blanks. Raises InputError or MissingError."""
    memory = _memory(path)
    found = Counter(language for unit in memory.units for language in unit)
    if not found:
        raise InputError("no unit with a segment of text", where=str(path), fix="export the memory again")
    first = _first(memory, [*found])
    there = sorted(found, key=lambda name: (name != first, -found[name], memory.spelled[name]))
    regions = {name: own for name in (source, target) if len(own := _regions(name, there)) > 1}
    called = {one: name for name, own in regions.items() for one in own}
    names = dict.fromkeys(called.get(one, memory.spelled[one]) for one in there)
    left, right = two_languages([*names], source, target, where=str(path))
    sides = [regions.get(name, [name.lower()]) for name in (left, right)]
    ranks = [{one: rank for rank, one in enumerate(own)} for own in sides]
    rows, variants = list[tuple[int, tuple[str, str]]](), sum(memory.further[one] for own in sides for one in own)
    for number, unit in enumerate(memory.units, 1):
        texts = [sorted((rank[one], unit[one]) for one in unit if one in rank) for rank in ranks]
        variants += sum(len(own) - 1 for own in texts if own)
        if all(texts):
            rows.append((number, (texts[0][0][1], texts[1][0][1])))
    shown = [
        f"{name} ({', '.join(memory.spelled[one] for one in own)})" if name in regions else name
        for name, own in zip((left, right), sides, strict=True)
    ]
    layout = f"TMX, {' and '.join(shown)}"
    if without := len(memory.units) - len(rows):
        layout += f", {counted(without, 'unit')} without both left out"
    layout += f", {counted(variants, 'further variant')} of units left out" if variants else ""
    layout += f", line breaks in {counted(memory.broken, 'text')} read as blanks" if memory.broken else ""
    return iter(rows), Columns(0, 1, left, right, True, layout)


def _regions(name: str, there: Sequence[str]) -> list[str]:
    """Returns the regional variants in a memory of a language that is named without a region, the exact name first."""
    if name in (SOURCE, TARGET) or re.search("[-_]", name):
        return []
    same = (one for one in there if meaning(name) and meaning(one) == meaning(name))
    return sorted(same, key=lambda one: one.lower() != name.lower())


def _first(memory: Memory, there: Sequence[str]) -> str:
    """Returns which of the languages is the source language: that of the header, or else that of most units; also where
    only one of the languages is a variant of it. "" if there is none."""
    stated, times = next(iter(memory.sources.most_common(1)), ("", 0))
    wanted = (memory.source or (stated if 2 * times > len(memory.units) else "")).lower().replace("_", "-")
    exact = [name for name in there if name.replace("_", "-") == wanted]
    near = exact or [name for name in there if re.split("[-_]", name)[0] == wanted.partition("-")[0]]
    return near[0] if len(near) == 1 else ""


def _memory(path: Path) -> Memory:
    memory, unit = Memory(), dict[str, str]()
    for event, element in elements(path):
        name = name_of(element)
        if event == "start" and name == "header":
            named = element.get("srclang", "")
            memory.source = "" if named.lower() in ANY else named
        elif event == "end" and name == "tuv":
            language = memory.spelled.setdefault(language_of(element).lower(), language_of(element)).lower()
            segment = next((child for child in element if name_of(child) == "seg"), None)
            if not language:
                raise InputError("a tuv without xml:lang", where=str(path), fix="each needs the language of its text")
            if segment is None and (element.text or "").strip():
                where = f"{path}: unit {len(memory.units) + 1}"
                raise InputError("a tuv without <seg>", where=where, fix="each needs its text within <seg> and </seg>")
            if language in unit:
                memory.further[language] += 1
            else:
                text = words_of(segment).strip()
                unit[language] = unbroken(text, segment, element)
                memory.broken += unit[language] != text
        elif event == "end" and name == "tu":
            memory.units.append(unit)
            memory.sources[element.get("srclang", "")] += element.get("srclang", "").lower() not in ANY
            unit = {}
            element.clear()
    return memory
