"""Word documents (ECMA-376): translates the paragraphs of the main text, headers, footers, notes and comments, which
are found by the document's relationships.

The runs of a paragraph are one passage. Its most frequent format is the format of the translation; where a run has
another one, it moves with the run's words. Other contents (pictures, marks of notes, fields) move along too. Line
breaks and tabs separate passages, and so does an element that contains one, such as a line of a table of contents. Text
boxes are left as they are.
"""

import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from itertools import takewhile
from textwrap import shorten
from xml.sax.saxutils import escape

from heedful.data.documents.encodings import XML, Decoded, decoded
from heedful.data.documents.markup import Token, tokens_of
from heedful.data.documents.passages import Document, Mark, Passage, Placed, Role, with_pairs
from heedful.data.lines import DAMAGED, NOT_READ, quoted
from heedful.data.xml import elements_of, name_of, root_of
from heedful.errors import InputError, are, counted

MOST_UNPACKED = 1 << 28  # bytes of the unpacked contents
PREFIX = "w:"
SHOWN = 40  # characters of a paragraph that messages show
MAIN = "officeDocument"  # the type of the file's relationship to the main part
TEXTS = frozenset(["header", "footer", "footnotes", "endnotes", "comments"])  # types of its relations to other texts
NO_FORMAT = re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>")  # properties of the old words only
HOLDS = frozenset(
    ["w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:fldSimple", "w:dir", "w:bdo", "w:sdt", "w:sdtContent"]
)
SAYS = frozenset(["w:sdtPr", "w:sdtEndPr", "w:smartTagPr"])  # properties of elements that hold runs
CHOICE = re.compile(r"<w(?:14)?:(?:checkbox|comboBox|date|dropDownList|picture)\b")  # controls without free text
DELETED = re.compile(r"<w:(?:del|moveFrom)\s[^<>]*[^<>/]>")  # with words in it; that of a paragraph's end is empty
EMPTY_FORMAT = re.compile(r"<w:rPr\s*/>|<w:rPr>\s*</w:rPr>|")
DROPPED = frozenset(["w:proofErr", "w:lastRenderedPageBreak"])  # only about the old words
BREAKS = frozenset(["w:br", "w:cr", "w:tab", "w:ptab"])
SIGNS = {"w:noBreakHyphen": "\u2011", "w:softHyphen": ""}


@dataclass(frozen=True)
class Format(Mark):
    """Begins or ends words in another format; `raw` is the format."""


@dataclass
class ParagraphItem:
    """A part of a paragraph: a text in a format, something that is kept, or a tag around such parts."""

    raw: str  # the source, but each item of a run as a run of its own
    text: str | None = None
    format: str = ""
    role: Role = "alone"
    name: str = ""
    kept: str = ""  # what is written for it


def _kept(raw: str, role: Role = "alone", name: str = "") -> ParagraphItem:
    """Returns an item that is written unchanged."""
    return ParagraphItem(raw, role=role, name=name, kept=raw)


def docx_document(data: bytes, where: str) -> Document:
    """Parses a Word document. Raises InputError for another file, a damaged one, or one that unpacks to too many
    bytes."""
    members = _members(data, where)
    texts = _texts(members, where)
    parts: list[str | Passage] = []
    counts: list[tuple[str, Decoded, int]] = []
    before: list[str] = []
    boxes = deleted = 0
    for name, content in members.items():
        if name not in texts:
            continue
        root_of(content, f"{where}/{name}")
        read = decoded(content, f"{where}/{name}", says=XML, references=True)
        _refuse_other_prefix(read.text, f"{where}/{name}")
        own = [*_parts(read.text, texts[name])]
        boxes += read.text.count("<w:txbxContent>") // max(1, read.text.count("<mc:Fallback>") and 2)
        deleted += len(DELETED.findall(read.text))
        counts.append((name, read, len(own)))
        before.append("".join(part if isinstance(part, str) else part.raw for part in own))
        parts += own

    def finish(whole: list[str]) -> bytes:
        changed, begin = dict[str, bytes](), 0
        for (name, read, count), as_read in zip(counts, before, strict=True):
            made = "".join(whole[begin : begin + count])
            begin += count
            if made != as_read:
                changed[name] = read.encode(made)
        return _packed(data, changed) if changed else data

    told = "1 text box is left as it is" if boxes == 1 else f"{boxes:,} text boxes are left as they are"
    notes = [told] if boxes else []
    if deleted:
        what = f"{counted(deleted, 'tracked deletion')} {are(deleted)}"
        notes.append(f"{what} left as it was written: accept or reject the changes first")
    return Document(parts, finish, tuple(notes))


def _members(data: bytes, where: str) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            size = sum(info.file_size for info in infos)
            if size > MOST_UNPACKED:
                what = f"{size:,} bytes when unpacked, at most {MOST_UNPACKED:,} are read"
                raise InputError(what, where=where, fix="is it a document? save it again")
            names = [info.filename for info in infos]
            odd = [name for name in names if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name)]
            if odd:
                what = f"a member {odd[0]!r}, which leads out of it"
                raise InputError(what, where=where, fix="save it again with Word or LibreOffice")
            if len(names) != len({*names}):
                raise InputError("two members of one name", where=where, fix="save it again with Word or LibreOffice")
            return {name: archive.read(name) for name in names}
    except (*DAMAGED, ValueError, OSError):
        raise InputError("no Word document, or a damaged one", where=where, fix="try unzip -t") from None
    except NOT_READ:
        what = "packed with a password, or in a way that is not read"
        raise InputError(what, where=where, fix="save it without a password") from None


def _texts(members: Mapping[str, bytes], where: str) -> dict[str, str]:
    """Returns the parts with text and their types, "" for the main part. Raises InputError if that is missing."""
    main = next((name for kind, name in _related(members, "", where) if kind == MAIN), "")
    if main not in members:
        what = f"its main part, {main!r}, is not in it" if main else "it names no main part"
        raise InputError(f"no Word document: {what}", where=where, fix="save it again with Word or LibreOffice")
    return {main: ""} | {name: kind for kind, name in _related(members, main, where) if kind in TEXTS}


def _related(members: Mapping[str, bytes], part: str, where: str) -> Iterator[tuple[str, str]]:
    """Yields the types and targets of the relationships of a part, or of the file if the part is "" (ECMA-376, part 2,
    section 6.5)."""
    folder, file = posixpath.split(part)
    own = posixpath.join(folder, "_rels", f"{file}.rels")
    for event, element in elements_of(members[own], f"{where}/{own}") if own in members else ():
        if event == "start" and name_of(element) == "Relationship" and element.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", "")))
            yield element.get("Type", "").rpartition("/")[2], target.lstrip("/")


def _refuse_other_prefix(text: str, where: str) -> None:
    root = next(token for token in tokens_of(text, "xml") if token.name)
    if not root.name.startswith(PREFIX):
        what = f"its tags begin with {root.name.removesuffix(root.local)!r}, expected {PREFIX!r}"
        raise InputError(what, where=where, fix="save it again with Word or LibreOffice")


def _packed(data: bytes, changed: dict[str, bytes]) -> bytes:
    """Returns the file with new contents of these members; everything else, and the order, is unchanged."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            new.writestr(info, changed.get(info.filename, old.read(info.filename)))
    return made.getvalue()


def _parts(text: str, kind: str) -> Iterator[str | Passage]:
    """Yields a part of the document, its paragraphs as passages. Their positions name the type of the part, their
    number among the paragraphs with words, and their first words."""
    begin = done = depth = number = 0
    inner: list[Token] = []
    for token in tokens_of(text, "xml"):
        if token.name == "w:p" and token.kind == "opens":
            depth += 1
            if depth == 1:
                begin, inner = token.end, []
                continue
        elif token.name == "w:p" and token.kind == "closes":
            depth -= 1
            if depth == 0:
                yield text[done:begin]
                own = [*_paragraph(inner)]
                number += any(isinstance(part, Passage) for part in own)
                name = f"{kind}, paragraph {number}" if kind else f"paragraph {number}"
                for part in own:
                    yield part if isinstance(part, str) else replace(part, place=f"{name}, {_beginning(part.text)}")
                done = token.begin
        if depth:
            inner.append(token)
    yield text[done:]


def _beginning(text: str) -> str:
    return quoted(shorten(text, SHOWN, placeholder=" ..."))


def _paragraph(tokens: Sequence[Token]) -> Iterator[str | Passage]:
    run: list[ParagraphItem] = []
    pieces = [*_pieces(tokens)]
    parting = _parting(pieces)
    for number, piece in enumerate(pieces):
        if number in parting:
            yield from _passage(run)
            yield piece.raw
            run = []
        else:
            run.append(piece)
    yield from _passage(run)


def _parting(pieces: Sequence[ParagraphItem]) -> set[int]:
    """Returns the indices of the pieces that separate passages: breaks, tags around breaks, and tags without a partner
    in this paragraph."""
    parting, opened = set[int](), list[int]()

    def part_at_opened() -> None:
        parting.update([*takewhile(lambda outer: outer not in parting, reversed(opened))])  # all outside of it are

    for number, piece in enumerate(pieces):
        if piece.name == "break":
            parting.add(number)
            part_at_opened()
        elif piece.role == "opens":
            opened.append(number)
        elif piece.role == "closes":
            while opened and pieces[opened[-1]].name != piece.name:
                part_at_opened()
                opened.pop()
            if not opened or opened.pop() in parting:
                parting.add(number)
    return parting | {*opened}


def _passage(run: Sequence[ParagraphItem]) -> Iterator[str | Passage]:
    """Yields the pieces from the first words to the last as a passage, and those around them unchanged."""
    said = [number for number, piece in enumerate(run) if piece.text]
    if not any(any(map(str.isalnum, piece.text or "")) for piece in run):
        yield "".join(piece.raw for piece in run)
        return
    first, last = _with_partners(run, said[0], said[-1] + 1)
    yield "".join(piece.raw for piece in run[:first])
    inner = run[first:last]
    lengths = Counter[str]()
    for piece in inner:
        lengths[piece.format] += len(piece.text or "")
    base = lengths.most_common(1)[0][0]
    text, marks = _marked(inner, base)
    yield Passage(text, marks, "".join(piece.raw for piece in inner), partial(_written, base))
    yield "".join(piece.raw for piece in run[last:])


def _marked(pieces: Sequence[ParagraphItem], base: str) -> tuple[str, tuple[Mark, ...]]:
    """Returns the text of the pieces, and its marks: tags, and words in another format than `base`."""
    text, current = "", base
    marks, names = list[Mark](), list[str]()

    def turn_to(other: str) -> None:
        nonlocal current
        if current == other:
            return
        marks.extend([Format(len(text), current, "closes")] if current != base else [])
        marks.extend([Format(len(text), other, "opens")] if other != base else [])
        names.extend(["format"] * (len(marks) - len(names)))
        current = other

    for piece in pieces:
        turn_to(piece.format if piece.text else base)
        if piece.text is None:
            marks.append(Mark(len(text), piece.kept, piece.role))
            names.append(piece.name)
        text += piece.text or ""
    turn_to(base)
    return text, tuple(with_pairs(marks, names))


def _written(base: str, placed: Placed) -> str:
    """Returns texts as runs, each in its format."""
    made, formats = "", [base]
    for part in placed:
        if isinstance(part, str):
            made += f'<w:r>{formats[-1]}<w:t xml:space="preserve">{escape(part)}</w:t></w:r>'
        elif not isinstance(part, Format):
            made += part.raw
        elif part.role == "opens":
            formats.append(part.raw)
        elif part.role == "closes":
            formats.pop()
    return made


def _with_partners(run: Sequence[ParagraphItem], first: int, last: int) -> tuple[int, int]:
    """Returns the least range of pieces around this one that has both tags of each pair in it."""
    partners, opened = dict[int, int](), list[int]()
    for number, piece in enumerate(run):
        if piece.role == "opens":
            opened.append(number)
        elif piece.role == "closes":
            partners[number] = opened.pop()
            partners[partners[number]] = number
    added = [*range(first, last)]
    while added:
        low, high = first, last
        first = min(first, *(partners.get(number, number) for number in added))
        last = max(last, *(partners.get(number, number) + 1 for number in added))
        added = [*range(first, low), *range(high, last)]
    return first, last


@dataclass
class _Field:
    """A field that has begun: its source up to its text, which follows "separate"."""

    raw: list[str]
    depth: int = 1


def _pieces(tokens: Sequence[Token]) -> Iterator[ParagraphItem]:
    """Yields the pieces of a paragraph in order, with fields as pairs of marks."""
    begun: _Field | None = None
    fields = 0  # fields whose text is being read
    for piece in _raw_pieces(tokens):
        kind = re.search(r"<w:fldChar\b[^<>]*w:fldCharType=[\"'](\w+)", piece.raw) if piece.text is None else None
        if begun is not None:
            begun.raw.append(piece.raw)
            begun.depth += (kind is not None and kind[1] == "begin") - (kind is not None and kind[1] == "end")
            if kind is not None and kind[1] == "separate" and begun.depth == 1:
                yield _kept("".join(begun.raw), "opens", "field")
                begun, fields = None, fields + 1
            elif begun.depth == 0:
                yield _kept("".join(begun.raw))
                begun = None
        elif kind is not None and kind[1] == "begin":
            begun = _Field([piece.raw])
        elif kind is not None and kind[1] == "end" and fields:
            fields -= 1
            yield _kept(piece.raw, "closes", "field")
        else:
            yield piece
    if begun is not None:  # the field ends in another paragraph
        yield _kept("".join(begun.raw))


def _raw_pieces(tokens: Sequence[Token]) -> Iterator[ParagraphItem]:
    number = 0
    while number < len(tokens):
        token = tokens[number]
        end = _begun(tokens, number) if token.kind == "opens" else number + 1
        raw = "".join(each.raw for each in tokens[number:end])
        if token.kind in ("opens", "closes") and token.name in HOLDS and not CHOICE.search(raw):
            yield _kept(raw, token.kind, token.name)
            number = end
            continue
        end = _end_of(tokens, number)
        raw = "".join(each.raw for each in tokens[number:end])
        if token.name == "w:r" and token.kind == "opens":
            yield from _run_pieces(tokens[number:end])
        elif token.name in DROPPED or token.kind == "text":
            yield ParagraphItem(raw, "")
        else:
            yield _kept(raw)
        number = end


def _begun(tokens: Sequence[Token], number: int) -> int:
    """Returns the index after the start tag of an element that holds runs, and after its properties, which come
    first."""
    end = number + 1
    while end < len(tokens) and (tokens[end].name in SAYS or tokens[end].kind == "text"):
        end = _end_of(tokens, end)
    return end


def _run_pieces(run: Sequence[Token]) -> Iterator[ParagraphItem]:
    """Yields the items of a run, each as a run of its own."""
    number, last, format_ = 1, len(run) - 1, ""
    while number < last:
        token, end = run[number], _end_of(run, number)
        item = "".join(each.raw for each in run[number:end])
        raw = f"{run[0].raw}{format_}{item}{run[last].raw}"
        shown = NO_FORMAT.sub("", format_)
        shown = "" if EMPTY_FORMAT.fullmatch(shown) else shown
        if token.name == "w:rPr":
            format_ = item
        elif token.name == "w:t":
            yield ParagraphItem(raw, unescape("".join(each.raw for each in run[number + 1 : end - 1])), shown)
        elif token.name in SIGNS:
            yield ParagraphItem(raw, SIGNS[token.name], shown)
        elif token.name not in DROPPED and token.kind != "text":
            yield _kept(raw, name="break" if token.name in BREAKS else "")
        number = end


def _end_of(tokens: Sequence[Token], number: int) -> int:
    """Returns the index after the last token of the element that begins here."""
    if tokens[number].kind != "opens":
        return number + 1
    depth = 0
    for end in range(number, len(tokens)):
        if tokens[end].name == tokens[number].name:
            depth += tokens[end].deeper
            if not depth:
                return end + 1
    return len(tokens)
