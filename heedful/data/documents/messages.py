"""Messages that choose their words, as ICU writes them: {n, plural, one {# file} other {# files}}. The words of each
case are passages of their own, and what says which case it is stays."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from heedful.data.documents.inline import Inline, passages_from
from heedful.data.documents.passages import Passage

BLANKS = r"(?:\s|\\n)*"  # a line end of a catalogue too
CASE = rf"(?:=\d+|\w+){BLANKS}\{{"
BEGINS = re.compile(
    rf"\{{{BLANKS}[\w.]+{BLANKS},{BLANKS}(plural|select|selectordinal){BLANKS},{BLANKS}(?:offset:\d+{BLANKS})?{CASE}"
)
GOES_ON, ENDS = re.compile(rf"\}}{BLANKS}{CASE}"), re.compile(rf"\}}{BLANKS}\}}")
BRACE = re.compile(r"[{}]")


def chooses(text: str) -> bool:
    """Whether a text, as it stands in the file, begins such a choice."""
    return BEGINS.search(text) is not None


def passages_of(run: Sequence[Inline], read: Callable[[str], str], **how: Any) -> Iterator[str | Passage]:
    """The passages of a run, of each case of a message one; `read` makes a text of what stands in the file."""
    found = [*_parts(run, read)] if any(chooses(part.raw) for part in run if part.text is not None) else []
    for part in found if found and found[-1] is not None else [[*run]]:
        yield from [part] if isinstance(part, str) else passages_from(part or [], **how)


def _parts(run: Sequence[Inline], read: Callable[[str], str]) -> Iterator[list[Inline] | str | None]:
    """Runs, and what stands between them; None at last where braces do not match."""
    own = list[Inline]()
    opened: list[str] = []  # the kinds of choices of which a case is open, and "" for other braces
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
    """A text; in a plural the sign of the number is none."""
    number = opened and opened[-1].startswith(("plural", "selectordinal"))
    for piece in re.split("(#)", raw) if number else [raw]:
        yield Inline(piece) if piece == "#" and number else Inline(piece, read(piece))
