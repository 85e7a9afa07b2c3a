"""ICU messages with cases: {n, plural, one {# file} other {# files}}. The words of each case are passages of their own,
and the syntax around them is kept."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from heedful.data.documents.inline import Inline, passages_from
from heedful.data.documents.passages import Passage

BLANKS = r"(?:\s|\\n)*"  # includes the escaped line ends of catalogues
CASE = rf"(?:=\d+|\w+){BLANKS}\{{"
BEGINS = re.compile(
    rf"\{{{BLANKS}[\w.]+{BLANKS},{BLANKS}(plural|select|selectordinal){BLANKS},{BLANKS}(?:offset:\d+{BLANKS})?{CASE}"
)
GOES_ON, ENDS = re.compile(rf"\}}{BLANKS}{CASE}"), re.compile(rf"\}}{BLANKS}\}}")
BRACE = re.compile(r"[{}]")


def chooses(text: str) -> bool:
    """Whether a text, as in the source file, begins such a choice."""
    return BEGINS.search(text) is not None


def passages_of(run: Sequence[Inline], read: Callable[[str], str], **how: Any) -> Iterator[str | Passage]:
    """Yields the passages of a run, one for each case of a message; `read` unescapes the source."""
    found = [*_parts(run, read)] if any(chooses(part.raw) for part in run if part.text is not None) else []
    for part in found if found and found[-1] is not None else [[*run]]:
        yield from [part] if isinstance(part, str) else passages_from(part or [], **how)


def _parts(run: Sequence[Inline], read: Callable[[str], str]) -> Iterator[list[Inline] | str | None]:
    """Yields runs, and the source between them; None at the end if braces do not match."""
    own = list[Inline]()
    opened: list[str] = []  # the kinds of the choices with an open case, and "" for other braces
    for part in run:
        if part.text is None:
            own.append(part)
            continue
        done = at = 0
        while (brace := BRACE.search(part.raw, at)) is not None:
            first, inside = brace.start(), bool(opened and opened[-1])
            begins = BEGINS.match(part.raw, first)
            after = GOES_ON.match(part.raw, first) or ENDS.match(part.raw, first) if inside else None
            sign = begins or after
            at = (sign or brace).end()
            if sign is not None:
                own += _texts(part.raw[done:first], read, opened)
                yield own
                yield sign[0]
                own, done = [], at
            if begins is not None:
                opened.append(begins[1])
            elif brace[0] == "{":
                opened.append("")
            elif opened and (not inside or (sign is not None and sign.re is ENDS)):
                opened.pop()
            elif inside and sign is None:
                yield None
                return
        own += _texts(part.raw[done:], read, opened)
    yield own
    if opened:
        yield None


def _texts(raw: str, read: Callable[[str], str], opened: Sequence[str]) -> Iterator[Inline]:
    """Yields a text; in a plural, "#" (the number) is not text."""
    number = opened and opened[-1].startswith(("plural", "selectordinal"))
    for piece in re.split("(#)", raw) if number else [raw]:
        yield Inline(piece) if piece == "#" and number else Inline(piece, read(piece))
