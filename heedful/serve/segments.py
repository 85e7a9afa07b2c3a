"""Texts cut into what a translator reads, a sentence each, and what stays as it is between them: blanks, line breaks,
and tags."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

Markup = Literal["xml", "html"]

# Where a sentence may end: marks, what closes, and a blank; or a mark that no blank follows.
END = re.compile(r"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)\]]*\s+|(?<=[\u3002\uff01\uff1f])(?=\S)")
OPENING = "(\"'[\u201c\u2018\u00ab"
ABBREVIATED = {"bzw", "ca", "dr", "e.g", "fr", "hr", "i.e", "mr", "mrs", "ms", "nr", "no", "prof", "st", "usw", "vs"}
TAG = re.compile(r"<(?P<close>/?)(?P<name>[^\W\d][^\s/<>]*)(?P<rest>(?>\"[^\"]*\"|'[^']*'|[^'\"<>])*)>")
APART = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
NEVER_TEXT = {"script", "style"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
NOT_TRANSLATED = re.compile(
    r"(?i)\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*(?:\"[^\"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)"
)


class Segment(NamedTuple):
    text: str
    spoken: bool  # whether it is translated


class Cut(NamedTuple):
    """A text, in parts. Those that are spoken are without escapes, also where the text has tags."""

    segments: list[Segment]
    escaped: bool = False

    @property
    def spoken(self) -> list[str]:
        return [segment.text for segment in self.segments if segment.spoken]

    def said(self, texts: Sequence[str]) -> str:
        """The whole, with these texts in place of those that are spoken."""
        each = iter(texts)
        put: Callable[[str], str] = escape if self.escaped else str
        return "".join(put(next(each)) if spoken else text for text, spoken in self.segments)


def cut(
    text: str,
    markup: Markup | None = None,
    *,
    lines: bool = True,
    sentences: bool = True,
    ignored: Sequence[str] = (),
) -> Cut:
    """A text in parts: at line breaks, sentences and tags. What is between tags of `ignored` names stays as it is.
    Raises ValueError for XML that is not well-formed."""
    if markup is None:
        return Cut([*_plain(text, lines, sentences)])
    if markup == "xml":
        _refuse_malformed(text)
    made: list[Segment] = []
    for part, spoken in _marked(text, markup, frozenset(ignored)):
        if not spoken:
            made.append(Segment(part, spoken=False))
            continue
        for own, said in _plain(html.unescape(part), lines, sentences):
            made.append(Segment(own if said else escape(own), said))
    return Cut(made, escaped=True)


def _plain(text: str, lines: bool, sentences: bool) -> Iterator[Segment]:
    """Of a text without tags. What has no letter and no digit is not spoken."""
    for line in re.split(r"([\r\n]+)", text) if lines else [text]:
        begin = 0
        for end in _ends(line) if sentences else ():
            yield from _trimmed(line[begin:end])
            begin = end
        yield from _trimmed(line[begin:])


def _trimmed(text: str) -> Iterator[Segment]:
    inner = text.strip()
    if not any(map(str.isalnum, inner)):
        if text:
            yield Segment(text, spoken=False)
        return
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    for part, spoken in ((before, False), (inner, True), (after, False)):
        if part:
            yield Segment(re.sub(r"[\r\n]+", " ", part) if spoken else part, spoken)


def _ends(line: str) -> Iterator[int]:
    """Where sentences end, the blanks after them counted."""
    for found in END.finditer(line):
        following = line[found.end() : found.end() + 1]
        if not following or following.islower():
            continue
        before = line[max(0, found.start() - 20) : found.start()].split()
        last = before[-1].rstrip(".").lower().lstrip(OPENING) if before else ""
        if before and before[-1].endswith(".") and (last in ABBREVIATED or (len(last) == 1 and last.isalpha())):
            continue
        yield found.end()


def _refuse_malformed(text: str) -> None:
    """As what is inside of an element: without a document type, and so without entities of its own."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(b"<text>" + text.encode() + b"</text>", True)
    except expat.ExpatError as error:
        raise ValueError(f"not well-formed XML ({error})") from None


def _marked(text: str, markup: Markup, ignored: frozenset[str]) -> Iterator[Segment]:
    """Tags, comments and the like, and the texts between them, still escaped."""
    begin = position = 0
    within: list[str] = []  # the element that is not translated, and those of its name inside of it
    while (position := text.find("<", position)) >= 0:
        end, tag = _tag_at(text, position)
        if end is None:
            position += 1
            continue
        if begin < position:
            yield Segment(text[begin:position], spoken=not within)
        yield Segment(text[position:end], spoken=False)
        begin = position = end
        if tag is None:
            continue
        name = tag["name"].lower() if markup == "html" else tag["name"]
        alone = tag["rest"].rstrip().endswith("/") or (markup == "html" and name in EMPTY)
        if within:
            if name == within[0] and tag["close"]:
                within.pop()
            elif name == within[0] and not alone:
                within.append(name)
        elif not alone and not tag["close"] and _kept(name, tag["rest"], markup, ignored):
            within.append(name)
            if markup == "html" and name in NEVER_TEXT:
                position = _end_of(text, position, name)
    if begin < len(text):
        yield Segment(text[begin:], spoken=not within)


def _kept(name: str, rest: str, markup: Markup, ignored: frozenset[str]) -> bool:
    """Whether what is inside of an element stays as it is."""
    return name in ignored or (markup == "html" and (name in NEVER_TEXT or bool(NOT_TRANSLATED.search(rest))))


def _tag_at(text: str, position: int) -> tuple[int | None, re.Match[str] | None]:
    """The end of the tag, or comment and the like, that begins here, and the tag."""
    for begin, close in APART:
        if text.startswith(begin, position):
            end = text.find(close, position + len(begin))
            return (None, None) if end < 0 else (end + len(close), None)
    found = TAG.match(text, position)
    return (None, None) if found is None else (found.end(), found)


def _end_of(text: str, position: int, name: str) -> int:
    """Where the end tag of an element begins that holds no tags."""
    found = re.compile(f"</{re.escape(name)}\\b", re.IGNORECASE).search(text, position)
    return len(text) if found is None else found.start()
