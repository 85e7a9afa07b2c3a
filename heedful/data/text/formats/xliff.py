"""XLIFF 1.2 and 2, the working files of translation tools (OASIS 2008; 2014 to 2018)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from heedful.data.lines import first_few
from heedful.data.text.columns import SOURCE, Columns, Rows
from heedful.data.text.formats.inline import unbroken, words_of
from heedful.data.text.formats.languages import two_languages
from heedful.data.xml import elements, name_of
from heedful.errors import InputError, counted

# Values that mark a target as not translated yet: `state` of a target in 1.2, of a segment in 2.
UNTRANSLATED = ("new", "needs-translation", "needs-l10n", "needs-adaptation", "initial")
# Values that mark an unconfirmed draft: `state-qualifier` of a target in 1.2, `conf` of a segment of Trados, `status`
# of a unit of memoQ.
QUALIFIERS = ("mt-suggestion", "leveraged-mt", "fuzzy-match", "rejected-grammar", "rejected-inaccurate")
REVIEW = re.compile(r"(?:[^:]+:)?needs-review.*")  # a `state` of 1.2, or a `subState` of 2
TRADOS = ("Draft", "RejectedTranslation", "RejectedSignOff")
MEMOQ = ("MachineTranslated", "Pretranslated", "AssembledFromFragments", "PartiallyEdited", "Rejected")
DRAFTS = frozenset([*QUALIFIERS, *TRADOS, *MEMOQ])
CONFIRMED = ("final", "signed-off")  # states that override a qualifier, as approved="yes" does
STATUS = "{MQXliff}status"


class FileLanguages(NamedTuple):
    source: str
    target: str


class Segment(NamedTuple):
    source: str
    target: str
    translated: bool
    draft: bool
    broken: int  # texts with line breaks


def read_xliff(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the translated segments, numbered by their order in the file: in 1.2, the marked segments of a unit, or
    else the unit. Inline codes and drafts are left out, and line breaks are blanks. Raises InputError or
    MissingError."""
    languages: list[FileLanguages] = []
    segments: list[Segment] = []
    for found in _found(path):
        if isinstance(found, FileLanguages):
            languages.append(found)
        else:
            segments.append(found)
    if len({(one.lower(), other.lower()) for one, other in languages}) > 1:
        what = (
            f"files of several languages: {first_few([f'{one} to {other}' for one, other in dict.fromkeys(languages)])}"
        )
        raise InputError(what, where=str(path), fix="give a file for each pair of languages")
    if not segments:
        raise InputError("no unit with a source", where=str(path), fix="export it again from the tool that made it")
    own = languages[0] if languages else FileLanguages("", "")
    both = (own.source or SOURCE, own.target or target)
    left, right = two_languages(both, source, target, where=str(path))
    turned = left != both[0]
    without = sum(not one.translated for one in segments)
    drafts = sum(one.translated and one.draft for one in segments)
    layout = f"XLIFF, {left} and {right}" + (f", {counted(without, 'unit')} not translated left out" if without else "")
    layout += f", {counted(drafts, 'unconfirmed draft')} left out" if drafts else ""
    broken = sum(one.broken for one in segments)
    layout += f", line breaks in {counted(broken, 'text')} read as blanks" if broken else ""
    if without + drafts == len(segments):
        raise InputError(f"no pair to learn from ({layout})", where=str(path), fix="give a file that is translated")
    rows = (
        (number, (one.target, one.source) if turned else (one.source, one.target))
        for number, one in enumerate(segments, 1)
        if one.translated and not one.draft
    )
    return rows, Columns(0, 1, left, right, True, layout)


def _found(path: Path) -> Iterator[FileLanguages | Segment]:
    """Yields the languages of each file element, and each segment: a trans-unit of 1.2, a segment of 2."""
    for event, element in elements(path):
        name = name_of(element)
        if event == "start" and name == "xliff" and element.get("srcLang"):
            yield FileLanguages(element.get("srcLang", ""), element.get("trgLang", ""))
        elif event == "start" and name == "file" and element.get("source-language"):
            yield FileLanguages(element.get("source-language", ""), element.get("target-language", ""))
        elif event == "end" and name in ("trans-unit", "segment"):
            yield from _segments(element)
            element.clear()


def _segments(element: Element) -> Iterator[Segment]:
    sides = {name_of(child): child for child in element if name_of(child) in ("source", "seg-source", "target")}
    target = sides.get("target")
    states = [element.get("state"), None if target is None else target.get("state")]
    review = any(REVIEW.fullmatch(state) for state in (*states, element.get("subState")) if state)
    conf = {part.get("id"): part.get("conf") for part in element.iter() if name_of(part) == "seg"}
    confirmed = element.get("approved") == "yes" or any(state in CONFIRMED for state in states)
    said = {element.get(STATUS), None if target is None or confirmed else target.get("state-qualifier")}
    pairs = [("", sides.get("source"), target)]
    sources, targets = _marked(sides.get("seg-source")), _marked(target)
    if sources and targets:
        pairs = [(key, sources[key], targets.get(key)) for key in sources]
    for key, *both in pairs:
        texts = [words_of(own).strip() for own in both]
        source, translation = (unbroken(text, own, element) for text, own in zip(texts, both, strict=True))
        done = bool(translation) and not any(state in UNTRANSLATED for state in states)
        draft = review or not DRAFTS.isdisjoint({*said, conf.get(key)})
        yield Segment(source, translation, done, draft, sum(map(str.__ne__, texts, (source, translation))))


def _marked(side: Element | None) -> dict[str, Element]:
    """Returns the marked segments of a side by their ids; there is none within another."""
    found, todo = dict[str, Element](), [] if side is None else [side]
    while todo:
        part = todo.pop()
        if part.get("mtype") != "seg":
            todo += reversed(part)
        elif mid := part.get("mid"):
            found[mid] = part
    return found
