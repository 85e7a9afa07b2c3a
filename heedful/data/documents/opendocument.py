"""OpenDocument (ISO/IEC 26300; OASIS 2021): texts, sheets and presentations, of LibreOffice and others.

Paragraphs and headings are translated, wherever they are: in cells, footnotes, comments, text boxes, headers and notes
of slides. Other elements inside a paragraph are marks of it, which move with its words; if they have paragraphs of
their own, those are translated too. Kept are the values of cells (numbers, dates, results of formulas), texts that
formulas compare with, and what tracked changes deleted.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import count

from heedful.data.documents.inline import Inline, inline_of, passages_from
from heedful.data.documents.markup import Token, tokens_of
from heedful.data.documents.packages import LITERAL, SAVE, beginning_of, members_of, package_document
from heedful.data.documents.passages import Document, Passage
from heedful.errors import InputError, are, counted

KIND = b"application/vnd.oasis.opendocument."
LABELS = {"content.xml": "", "styles.xml": "headers and footers"}  # the members with texts, and their names in messages
ENCRYPTED = b"encryption-data"
OTHER_PREFIX = re.compile(r"xmlns:(?!text\b)(\w+)=[\"']urn:oasis:names:tc:opendocument:xmlns:text:1\.0[\"']")
PARAGRAPHS = frozenset(["text:p", "text:h"])
INLINE = frozenset(["text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base"])  # hold words of the paragraph
BREAKS = frozenset(["text:tab", "text:line-break"])
DELETION = re.compile(r"<(?:text|table):deletion\b")
FORMULA = re.compile(r"\btable:(?:formula|condition|expression)=(?:\"([^\"]*)\"|'([^']*)')")
CDATA = ("<![CDATA[", "]]>")
INSIDE, BEGINS = re.compile("\0(\\d+)\0"), re.compile("\0:(\\d+)\0")  # XML has no such character


@dataclass
class _Element:
    """What is between paragraphs: the whole document, or an element in a paragraph with paragraphs of its own."""

    number: int
    parts: list[str | Passage] = field(default_factory=list)
    depth: int = 0
    kept: int = 0  # the depth of an element that is kept whole, if not 0


@dataclass
class _Paragraph:
    parts: list[str | Passage] = field(default_factory=list)
    run: list[Inline] = field(default_factory=list)
    depth: int = 0

    def end_passage(self) -> None:
        self.parts += passages_from(self.run) if self.run else []
        self.run = []


def opendocument(data: bytes, where: str) -> Document:
    """Parses a text, a workbook or a presentation. Raises InputError for another file, a damaged one, one with a
    password, or one that unpacks to too many bytes."""
    members = members_of(data, where, "OpenDocument file")
    if "content.xml" not in members or not members.get("mimetype", b"").startswith(KIND):
        raise InputError("no OpenDocument file: it does not name its kind", where=where, fix=SAVE)
    if ENCRYPTED in members.get("META-INF/manifest.xml", b""):
        raise InputError("packed with a password", where=where, fix="save it without a password")
    named = set[str]()
    left = 0

    def parts_of(name: str, text: str) -> Iterator[str | Passage]:
        nonlocal left
        if found := OTHER_PREFIX.search(text):
            what = f"its tags begin with '{found[1]}:', expected 'text:'"
            raise InputError(what, where=f"{where}/{name}", fix=SAVE)
        for formula in FORMULA.finditer(text):
            for literal in LITERAL.findall(unescape(formula[1] or formula[2] or "")):
                named.add(literal.replace('""', '"').strip().casefold())
        for part in _parts(text, LABELS[name]):
            if isinstance(part, Passage) and part.text.strip().casefold() in named:
                left += 1
                yield part.raw
            else:
                yield part

    texts = [name for name in LABELS if name in members]
    document, contents = package_document(data, where, members, texts, parts_of, finish=_whole)
    notes = [f"{counted(left, 'text')} left, as formulas name {'it' if left == 1 else 'them'}"] if left else []
    if deleted := sum(len(DELETION.findall(text)) for text in contents):
        what = f"{counted(deleted, 'tracked deletion')} {are(deleted)}"
        notes.append(f"{what} left as it was written: accept or reject the changes first")
    return replace(document, notes=tuple(notes))


def _parts(text: str, label: str) -> Iterator[str | Passage]:
    """Yields the parts of a member, and behind them those of each element inside a paragraph that has passages of its
    own; in the paragraph, its number takes its place."""
    whole = _Element(0)
    stack: list[_Element | _Paragraph] = [whole]
    inside = list[_Element]()
    numbers, paragraphs = count(1), count(1)
    for token in tokens_of(text, "xml"):
        top = stack[-1]
        if isinstance(top, _Paragraph):
            if token.kind == "opens" and token.name not in INLINE:
                top = _Element(next(numbers))
                stack.append(top)
            elif token.kind == "closes" and top.depth == 0:
                stack.pop()
                outer = stack[-1]
                assert isinstance(outer, _Element)
                top.end_passage()
                outer.parts += _placed(top.parts, label, paragraphs)
                outer.parts.append(token.raw)
                outer.depth -= 1
                continue
            else:
                top.depth += token.deeper
                if token.name in BREAKS:
                    top.end_passage()
                    top.parts.append(token.raw)
                else:
                    top.run.append(_inline(token))
                continue
        top.depth += token.deeper
        top.parts.append(token.raw)
        if top.kept:
            top.kept = top.kept if top.depth >= top.kept else 0
        elif token.kind == "opens" and token.name in PARAGRAPHS:
            stack.append(_Paragraph())
        elif token.kind == "opens" and _is_kept(token):
            top.kept = top.depth
        if top.depth == 0 and top is not whole and stack[-1] is top:
            stack.pop()
            outer = stack[-1]
            assert isinstance(outer, _Paragraph)
            has_passages = any(isinstance(part, Passage) for part in top.parts)
            inside += [top] if has_passages else []
            outer.run.append(Inline(f"\0{top.number}\0" if has_passages else "".join(map(str, top.parts))))
    yield from whole.parts
    for element in inside:
        yield f"\0:{element.number}\0"
        yield from element.parts


def _placed(parts: Sequence[str | Passage], label: str, numbers: Iterator[int]) -> Iterator[str | Passage]:
    """Yields the parts of a paragraph, with a name for messages."""
    number = next(numbers) if any(isinstance(part, Passage) for part in parts) else 0
    for part in parts:
        if isinstance(part, Passage):
            place = ", ".join(filter(None, [label, f"paragraph {number}", beginning_of(part.text)]))
            yield replace(part, place=place)
        else:
            yield part


def _inline(token: Token) -> Inline:
    begin, end = CDATA
    if token.raw.startswith(begin):
        return Inline(token.raw, token.raw.removeprefix(begin).removesuffix(end))
    return inline_of(token)


def _is_kept(token: Token) -> bool:
    """Whether all in an element is kept: deleted text, and the cells of a workbook that have a value, of which the text
    only shows it."""
    if token.local not in ("table-cell", "covered-table-cell"):
        return token.local == "tracked-changes"
    values = token.attribute("table:formula"), token.attribute("office:string-value")
    return any(value is not None for value in values) or token.attribute("office:value-type") not in (None, "string")


def _whole(parts: Sequence[str]) -> str:
    """Joins the parts of a member, with what is inside of its paragraphs in place of the numbers."""
    elements, number = dict[int, list[str]]({0: []}), 0
    for part in parts:
        if found := BEGINS.fullmatch(part):
            number = int(found[1])
            elements[number] = []
        else:
            elements[number].append(part)
    made, todo = list[str](), ["".join(elements[0])]
    while todo:
        for n, piece in reversed([*enumerate(INSIDE.split(todo.pop()))]):
            todo.append("".join(elements[int(piece)]) if n % 2 else piece)
        made.append(todo.pop())  # the text before the first mark
    return "".join(made)
