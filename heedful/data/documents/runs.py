"""Paragraphs of the Office formats (ECMA-376): words in runs, each of which has a format.

The runs of a paragraph are one passage. Its most frequent format is the format of the translation; where a run has
another one, it moves with the run's words. Other contents (pictures, marks of notes, fields) move along too. Line
breaks and tabs separate passages, and so does an element that contains one, such as a line of a table of contents.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from itertools import takewhile
from xml.sax.saxutils import escape

from heedful.data.documents.inline import Inline, escaped, passages_from
from heedful.data.documents.markup import Token
from heedful.data.documents.passages import Mark, Passage, Placed, Role, with_pairs
from heedful.data.xml import decoded_text, encoded_text

CHOICE = re.compile(r"<w(?:14)?:(?:checkbox|comboBox|date|dropDownList|picture)\b")  # controls without free text
# In the cells of a sheet; `_x005F_x000D_` is no escape of a line end, but its text.
LINE_END = re.compile(r"((?:\r\n?|\n|&#(?:1[03]|x0*[aAdD]);|(?<!_x005[Ff])_x000[aAdD]_)+)")
CDATA = ("<![CDATA[", "]]>")


@dataclass(frozen=True, kw_only=True)
class RunNames:
    """The names of the elements that make up a paragraph; `of_old_words` finds what of a format, or beside the runs, is
    only about the words that were there, and is not written again."""

    paragraphs: frozenset[str]
    run: str
    text: str
    format: str
    breaks: frozenset[str] = frozenset()  # that separate passages
    holds: frozenset[str] = frozenset()  # runs
    properties: frozenset[str] = frozenset()  # of those
    dropped: frozenset[str] = frozenset()
    signs: Mapping[str, str] = field(default_factory=dict)  # elements that stand for a character
    of_old_words: re.Pattern[str] = re.compile(r"(?!)")
    lines: bool = False  # of workbooks: texts have line ends and escapes, and words may be outside of runs


WORD = RunNames(
    paragraphs=frozenset(["w:p"]),
    run="w:r",
    text="w:t",
    format="w:rPr",
    breaks=frozenset(["w:br", "w:cr", "w:tab", "w:ptab"]),
    holds=frozenset(
        ["w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:fldSimple", "w:dir", "w:bdo", "w:sdt", "w:sdtContent"]
    ),
    properties=frozenset(["w:sdtPr", "w:sdtEndPr", "w:smartTagPr"]),
    dropped=frozenset(["w:proofErr", "w:lastRenderedPageBreak"]),
    signs={"w:noBreakHyphen": "\u2011", "w:softHyphen": ""},
    of_old_words=re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>"),
)
DRAWING = RunNames(
    paragraphs=frozenset(["a:p"]),
    run="a:r",
    text="a:t",
    format="a:rPr",
    breaks=frozenset(["a:br"]),
    of_old_words=re.compile(r"\s(?:lang|altLang|dirty|err|smtClean|noProof)=(?:\"[^\"]*\"|'[^']*')"),
)


def sheet_names(prefix: str) -> RunNames:
    """The names in a workbook, whose elements may have a prefix ("x:") or none: of shared texts, of texts in cells, and
    of comments."""
    return RunNames(
        paragraphs=frozenset(f"{prefix}{name}" for name in ("si", "is", "text")),
        run=f"{prefix}r",
        text=f"{prefix}t",
        format=f"{prefix}rPr",
        lines=True,
    )


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


def paragraph_parts(tokens: Sequence[Token], names: RunNames) -> Iterator[str | Passage]:
    """Yields what is inside a paragraph, in parts."""
    first = next((number for number, token in enumerate(tokens) if token.name), 0)
    if names.lines and tokens and tokens[first].name == names.text:
        yield from _bare(tokens, first)
        return
    run: list[ParagraphItem] = []
    pieces = [*_pieces(tokens, names)]
    parting = _parting(pieces)
    for number, piece in enumerate(pieces):
        if number in parting:
            yield from _passage(run, names)
            yield piece.raw
            run = []
        else:
            run.append(piece)
    yield from _passage(run, names)


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


def _bare(tokens: Sequence[Token], first: int) -> Iterator[str | Passage]:
    """Yields a text that is in no run, each of its lines a passage, and what is around it."""
    last = _end_of(tokens, first)
    yield "".join(token.raw for token in tokens[: first + 1])
    for token in tokens[first + 1 : last]:
        for number, piece in enumerate(LINE_END.split(token.raw) if token.kind == "text" else [token.raw]):
            words = None if number % 2 else decoded_text(_words([Token(token.kind, piece)]))
            yield from passages_from([Inline(piece, words)], write=_bare_written, blanks=False)
    yield "".join(token.raw for token in tokens[last:])


def _bare_written(placed: Placed) -> str:
    return escaped([encoded_text(part) if isinstance(part, str) else part for part in placed])


def _words(tokens: Sequence[Token]) -> str:
    """Returns the text in these tokens."""
    begin, end = CDATA
    return "".join(
        unescape(token.raw) if token.kind == "text" else token.raw.removeprefix(begin).removesuffix(end)
        for token in tokens
        if token.kind == "text" or token.raw.startswith(begin)
    )


def _passage(run: Sequence[ParagraphItem], names: RunNames) -> Iterator[str | Passage]:
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
    yield Passage(text, marks, "".join(piece.raw for piece in inner), partial(_written, names, base))
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


def _written(names: RunNames, base: str, placed: Placed) -> str:
    """Returns texts as runs, each in its format."""
    begin = f"<{names.text}>" if names is DRAWING else f'<{names.text} xml:space="preserve">'
    made, formats = list[str](), [base]
    for part in placed:
        if isinstance(part, str):
            text = escape(encoded_text(part) if names.lines else part)
            made.append(f"<{names.run}>{formats[-1]}{begin}{text}</{names.text}></{names.run}>")
        elif not isinstance(part, Format):
            made.append(part.raw)
        elif part.role == "opens":
            formats.append(part.raw)
        elif part.role == "closes":
            formats.pop()
    return "".join(made)


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


def _pieces(tokens: Sequence[Token], names: RunNames) -> Iterator[ParagraphItem]:
    """Yields the pieces of a paragraph in order, with fields as pairs of marks."""
    begun: _Field | None = None
    fields = 0  # fields whose text is being read
    for piece in _raw_pieces(tokens, names):
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


def _raw_pieces(tokens: Sequence[Token], names: RunNames) -> Iterator[ParagraphItem]:
    number = 0
    while number < len(tokens):
        token = tokens[number]
        end = _begun(tokens, number, names) if token.kind == "opens" else number + 1
        raw = "".join(each.raw for each in tokens[number:end])
        if token.kind in ("opens", "closes") and token.name in names.holds and not CHOICE.search(raw):
            yield _kept(raw, token.kind, token.name)
            number = end
            continue
        end = _end_of(tokens, number)
        raw = "".join(each.raw for each in tokens[number:end])
        if token.name == names.run and token.kind == "opens":
            yield from _run_pieces(tokens[number:end], names)
        elif token.name in names.dropped or token.kind == "text":
            yield ParagraphItem(raw, "")
        else:
            yield _kept(raw, name="break" if token.name in names.breaks else "")
        number = end


def _begun(tokens: Sequence[Token], number: int, names: RunNames) -> int:
    """Returns the index after the start tag of an element that holds runs, and after its properties, which come
    first."""
    end = number + 1
    while end < len(tokens) and (tokens[end].name in names.properties or tokens[end].kind == "text"):
        end = _end_of(tokens, end)
    return end


def _run_pieces(run: Sequence[Token], names: RunNames) -> Iterator[ParagraphItem]:
    """Yields the items of a run, each as a run of its own."""
    number, last, format_ = 1, len(run) - 1, ""
    while number < last:
        token, end = run[number], _end_of(run, number)
        item = "".join(each.raw for each in run[number:end])
        raw = f"{run[0].raw}{format_}{item}{run[last].raw}"
        shown = names.of_old_words.sub("", format_)
        shown = "" if re.fullmatch(rf"<{names.format}\s*/>|<{names.format}>\s*</{names.format}>", shown) else shown
        if token.name == names.format:
            format_ = item
        elif token.name == names.text:
            inside = run[number + 1 : end - 1]
            lines = LINE_END.split(inside[0].raw) if names.lines and [each.kind for each in inside] == ["text"] else []
            decoded = decoded_text if names.lines else str
            if len(lines) < 2:
                yield ParagraphItem(raw, decoded(_words(inside)), shown)
            begin = f'{run[0].raw}{format_}<{names.text} xml:space="preserve">'
            for n, line in enumerate(lines if len(lines) > 1 else []):
                own = f"{begin}{line}</{names.text}>{run[last].raw}" if line else ""
                yield _kept(own, name="break") if n % 2 else ParagraphItem(own, decoded(unescape(line)), shown)
        elif token.name in names.signs:
            yield ParagraphItem(raw, names.signs[token.name], shown)
        elif token.name not in names.dropped and token.kind != "text":
            yield _kept(raw, name="break" if token.name in names.breaks else "")
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
