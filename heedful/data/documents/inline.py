"""Makes passages of tokens: a run of texts and inline tags becomes a passage, without what surrounds its words."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from heedful.data.documents.markup import Token
from heedful.data.documents.passages import Mark, Passage, Placed, Role, with_pairs

BLANK = " \t\r\n\f"  # white space that markup collapses; other spaces, such as no-break spaces, are text
BLANKS = re.compile(f"[{BLANK}]+")
LINE_END = re.compile(r"((?:\r\n?|\n|&#(?:1[03]|x0*[aAdD]);)+)")  # in XML


@dataclass
class Inline:
    """A part of a run: a text, or a mark with its role and the name by which it is paired."""

    raw: str
    text: str | None = None
    role: Role = "alone"
    name: str = ""
    beside: str = ""  # how to write a mark beside other words, if not as now


def inline_of(token: Token) -> Inline:
    if token.kind == "text":
        return Inline(token.raw, html.unescape(token.raw))
    role: Role = token.kind if token.kind == "opens" or token.kind == "closes" else "alone"
    return Inline(token.raw, role=role, name=token.name)


def escaped(placed: Placed) -> str:
    """Returns texts escaped as in XML and HTML, and marks unchanged."""
    return "".join(escape(part) if isinstance(part, str) else part.raw for part in placed)


def passages_from(
    run: Sequence[Inline],
    *,
    write: Callable[[Placed], str] = escaped,
    line: int = 0,
    place: str = "",
    blanks: bool = True,
) -> list[str | Passage]:
    """Makes one passage of a run, and keeps what is before and after it: white space, and marks around all of its
    words. A run without a letter or digit is kept. `blanks`: consecutive white space means one space."""
    run = [part for part in run if part.raw]
    if not any(part.text and any(map(str.isalnum, part.text)) for part in run):
        return ["".join(part.raw for part in run)]
    first, last = _within(run)
    before, inner, after = [*run[:first]], [*run[first:last]], [*run[last:]]
    begin, end = inner[0], inner[-1]
    if begin.text is not None:
        kept = len(begin.raw) - len(begin.raw.lstrip(BLANK))
        before.append(Inline(begin.raw[:kept]))
        inner[0] = Inline(begin.raw[kept:], begin.text[kept:])
    if end.text is not None:
        end = inner[-1]
        kept = len(end.raw.rstrip(BLANK))
        after.insert(0, Inline(end.raw[kept:]))
        inner[-1] = Inline(end.raw[:kept], (end.text or "")[: kept - len(end.raw) or None])
    passage = replace(_passage(inner, write, blanks), line=line, place=place)
    return ["".join(part.raw for part in before), passage, "".join(part.raw for part in after)]


def _passage(inner: Sequence[Inline], write: Callable[[Placed], str], blanks: bool) -> Passage:
    text, marks, names = "", list[Mark](), list[str]()
    thing = False  # whether a mark with spaces of its own follows the last text
    for part in inner:
        if part.text is None:
            thing |= part.role == "alone"
            marks.append(Mark(len(text), part.beside or part.raw, part.role))
            names.append(part.name)
            continue
        own = BLANKS.sub(" ", part.text) if blanks else part.text
        text += own[1:] if blanks and not thing and text.endswith(" ") and own.startswith(" ") else own
        thing = False
    return Passage(text, tuple(with_pairs(marks, names)), "".join(part.raw for part in inner), write)


def _within(run: Sequence[Inline]) -> tuple[int, int]:
    """Returns the range of a run without what surrounds all of its words: white space, single marks, and pairs."""
    marks = [Mark(0, part.raw, part.role if part.text is None else "alone") for part in run]
    pairs = [mark.pair for mark in with_pairs(marks, [part.name for part in run])]

    def bare(part: Inline) -> bool:
        return part.text is not None and not part.text.strip()

    begin, end = 0, len(run)
    while True:
        while bare(run[begin]) or (run[begin].text is None and pairs[begin] < 0):
            begin += 1
        while bare(run[end - 1]) or (run[end - 1].text is None and pairs[end - 1] < 0):
            end -= 1
        if pairs[begin] >= 0 and pairs[begin] == pairs[end - 1] and not run[end - 1].beside:
            begin, end = begin + 1, end - 1
        else:
            return begin, end
