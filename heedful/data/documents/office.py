"""The documents of Microsoft's Office (ECMA-376): Word, PowerPoint and Excel. Their texts are found by relationships.

Of a document, the main text, headers, footers, notes and comments are translated; of a presentation, slides and their
notes, diagrams and titles of charts; of a workbook, texts in cells, drawings and comments. Text boxes of Word are left
as they are, and so are texts of a workbook that its formulas, tables or pivots name.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape

from heedful.data.documents.markup import Token, tokens_of
from heedful.data.documents.packages import LITERAL, SAVE, Members, beginning_of, members_of, package_document
from heedful.data.documents.passages import Document, Passage
from heedful.data.documents.runs import DRAWING, LINE_END, WORD, RunNames, paragraph_parts, sheet_names
from heedful.data.xml import elements_of, name_of
from heedful.errors import InputError, are, counted

MAIN = "officeDocument"  # the type of the file's relationship to the main part
DELETED = re.compile(r"<w:(?:del|moveFrom)\s[^<>]*[^<>/]>")  # with words in it; that of a paragraph's end is empty
DRAWN = re.compile(
    r"xmlns:(\w+)\s*=\s*[\"']http://(?:schemas\.openxmlformats|purl\.oclc)\.org/(?:ooxml/)?drawingml/(?:2006/)?main[\"']"
)
CELL = re.compile(r"<(?:\w+:)?c\s([^<>]*)>\s*<(?:\w+:)?v>(\d+)<")
FORMULA = re.compile(r"<(?:\w+:)?(?:f|formula\d?|definedName)(?:\s[^<>]*)?>([^<>]+)<")
ATTRIBUTE = re.compile(r"\b([rt])=[\"'](\w+)")
NAMED = ("tableColumn", "cacheField")  # of tables and pivots
# What the parts with texts are called in messages, by the types of the relationships to them.
DOCUMENT = {name: name for name in ("header", "footer", "footnotes", "endnotes", "comments")}
DRAWINGS = {"diagramData": "diagram", "diagramDrawing": "drawn diagram", "chart": "chart", "chartEx": "chart"}
SLIDES = {"slide": "slide", "notesSlide": "notes", **DRAWINGS}
SHEETS = {"worksheet": "sheet", "sharedStrings": "texts", "comments": "comments", "drawing": "drawing", **DRAWINGS}
NUMBERED = frozenset(["slide", "worksheet"])


@dataclass(frozen=True)
class TextPart:
    """A part with texts: the type of the relationship to it, "" for the main part, and its name in messages."""

    kind: str
    label: str


def docx_document(data: bytes, where: str) -> Document:
    """Parses a Word document. Raises InputError for another file, a damaged one, or one that unpacks to too many
    bytes."""
    members = members_of(data, where, "Word document")
    texts = _texts(members, where, "Word document", DOCUMENT)

    def parts_of(name: str, text: str) -> Iterator[str | Passage]:
        _refuse_other_prefix(text, f"{where}/{name}")
        return _parts(text, texts[name].label, WORD)

    document, contents = package_document(data, where, members, texts, parts_of)
    boxes = sum(text.count("<w:txbxContent>") // max(1, text.count("<mc:Fallback>") and 2) for text in contents)
    deleted = sum(len(DELETED.findall(text)) for text in contents)
    notes = [f"{counted(boxes, 'text box')} {are(boxes)} left as {'it is' if boxes == 1 else 'they are'}"] * bool(boxes)
    if deleted:
        what = f"{counted(deleted, 'tracked deletion')} {are(deleted)}"
        notes.append(f"{what} left as it was written: accept or reject the changes first")
    return replace(document, notes=tuple(notes))


def pptx_document(data: bytes, where: str) -> Document:
    """Parses a PowerPoint presentation. Raises InputError as `docx_document`."""
    members = members_of(data, where, "PowerPoint presentation")
    texts = _texts(members, where, "PowerPoint presentation", SLIDES)
    read = [name for name, part in texts.items() if part.kind]

    def parts_of(name: str, text: str) -> Iterator[str | Passage]:
        _refuse_other_drawing(text, f"{where}/{name}")
        return _parts(text, texts[name].label, DRAWING)

    return package_document(data, where, members, read, parts_of)[0]


def xlsx_document(data: bytes, where: str) -> Document:
    """Parses an Excel workbook. Raises InputError as `docx_document`."""
    members = members_of(data, where, "Excel workbook")
    texts = _texts(members, where, "Excel workbook", SHEETS)
    read = [name for name, part in texts.items() if part.kind]
    contents = {name: members[name].decode("utf-8", "replace") for name in members if name.endswith(".xml")}
    named, cells = _named(contents), _cells(contents, texts)
    kept = 0

    def parts_of(name: str, text: str) -> Iterator[str | Passage]:
        nonlocal kept
        part = texts[name]
        if part.kind not in ("worksheet", "sharedStrings", "comments"):
            _refuse_other_drawing(text, f"{where}/{name}")
            yield from _parts(text, part.label, DRAWING)
            return
        root = next(token for token in tokens_of(text, "xml") if token.name)
        names = sheet_names(root.name.removesuffix(root.local))
        for each in _parts(text, part.label, names, cells if part.kind == "sharedStrings" else None):
            if isinstance(each, Passage) and part.kind != "comments" and each.text.strip().casefold() in named:
                kept += 1
                yield each.raw
            else:
                yield each

    document, _ = package_document(data, where, members, read, parts_of)
    note = f"{counted(kept, 'text')} left, as formulas, tables or pivots name {'it' if kept == 1 else 'them'}"
    return replace(document, notes=(note,) * bool(kept))


def _named(contents: Mapping[str, str]) -> set[str]:
    """Returns the texts of a workbook, in small letters, that its formulas, tables or pivots name: were they
    translated, formulas would have other results."""
    named = set[str]()
    for text in contents.values():
        for found in FORMULA.finditer(text):
            for literal in LITERAL.findall(unescape(found[1])):
                named |= {literal.replace('""', '"'), *literal.split(",")}
        for token in tokens_of(text, "xml") if any(name in text for name in NAMED) else ():
            if token.local in NAMED:
                named |= {*LINE_END.split(token.attribute("name") or "")}
    return {text.strip().casefold() for text in named}


def _cells(contents: Mapping[str, str], texts: Mapping[str, TextPart]) -> dict[int, str]:
    """Returns the first cell of each shared text, by its number."""
    cells = dict[int, str]()
    for name, part in texts.items():
        if part.kind == "worksheet":
            for found in CELL.finditer(contents.get(name, "")):
                values = dict(ATTRIBUTE.findall(found[1]))
                if values.get("t") == "s" and "r" in values:
                    cells.setdefault(int(found[2]), f"{part.label}, cell {values['r']}")
    return cells


def _texts(members: Members, where: str, kind: str, labels: Mapping[str, str]) -> dict[str, TextPart]:
    """Returns the parts with text, the main part first, and those related to a part behind it. Raises InputError if the
    main part is missing."""
    main = next((name for _, type_, name in _related(members, "", where) if type_ == MAIN), "")
    if main not in members:
        what = f"its main part, {main!r}, is not in it" if main else "it names no main part"
        raise InputError(f"no {kind}: {what}", where=where, fix=SAVE)
    texts = {main: TextPart("", "")}
    order = {found: n for n, found in enumerate(re.findall(rb"\bid=[\"']([^\"']*)", members[main]))}
    todo = [main]
    for name in todo:
        related = [own for own in _related(members, name, where) if own[1] in labels and own[2] in members]
        if name == main:
            related.sort(key=lambda own: order.get(own[0].encode(), len(order)))
        number = 0
        for _, type_, target in related:
            if target in texts:
                continue
            number += type_ in NUMBERED
            label = f"{labels[type_]} {number}" if type_ in NUMBERED else labels[type_]
            texts[target] = TextPart(type_, f"{label} of {texts[name].label}" if texts[name].label else label)
            todo.append(target)
    return texts


def _related(members: Members, part: str, where: str) -> Iterator[tuple[str, str, str]]:
    """Yields the ids, types and targets of the relationships of a part, or of the file if the part is "" (ECMA-376,
    part 2, section 6.5)."""
    folder, file = posixpath.split(part)
    own = posixpath.join(folder, "_rels", f"{file}.rels")
    for event, element in elements_of(members[own], f"{where}/{own}") if own in members else ():
        if event == "start" and name_of(element) == "Relationship" and element.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", "")))
            yield element.get("Id", ""), element.get("Type", "").rpartition("/")[2], target.lstrip("/")


def _refuse_other_prefix(text: str, where: str) -> None:
    root = next(token for token in tokens_of(text, "xml") if token.name)
    if not root.name.startswith("w:"):
        what = f"its tags begin with {root.name.removesuffix(root.local)!r}, expected 'w:'"
        raise InputError(what, where=where, fix="save it again with Word or LibreOffice")


def _refuse_other_drawing(text: str, where: str) -> None:
    for found in DRAWN.finditer(text):
        if found[1] != "a":
            what = f"tags of drawings begin with '{found[1]}:', expected 'a:'"
            raise InputError(what, where=where, fix="save it again with PowerPoint, Excel or LibreOffice")


def _parts(text: str, label: str, names: RunNames, cells: Mapping[int, str] | None = None) -> Iterator[str | Passage]:
    """Yields a part of the document, its paragraphs as passages. Their positions name the part, their number among the
    paragraphs with words, or the cell, and their first words."""
    begin = done = depth = paragraphs = number = 0
    inner: list[Token] = []
    for token in tokens_of(text, "xml"):
        if token.name in names.paragraphs and token.kind == "opens":
            depth += 1
            if depth == 1:
                begin, inner = token.end, []
                continue
        elif token.name in names.paragraphs and token.kind == "closes":
            depth -= 1
            if depth == 0:
                yield text[done:begin]
                own = [*paragraph_parts(inner, names)]
                number += any(isinstance(part, Passage) for part in own)
                place = ", ".join(filter(None, [label, f"paragraph {number}"]))
                place = cells.get(paragraphs, place) if cells else place
                for part in own:
                    yield part if isinstance(part, str) else replace(part, place=f"{place}, {beginning_of(part.text)}")
                done = token.begin
                paragraphs += 1
        elif token.name in names.paragraphs and not depth:
            paragraphs += 1
        if depth:
            inner.append(token)
    yield text[done:]
