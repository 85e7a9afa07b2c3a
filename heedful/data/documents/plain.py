"""Plain text: a passage is a line, or several lines that were wrapped at the width of a page. List markers are kept."""

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from heedful.data.documents.passages import Passage, Placed, plain
from heedful.data.documents.words import SPACELESS

NARROWEST, WIDEST = 40, 120  # the width of a line that may have been wrapped
ENDS = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]]*$")
LETTER = re.compile(r"[^\W\d_]")
# List markers; numbers count if one of them is 1.
SIGN = re.compile(r"\s*(?:[-*+\u2022\u2023\u25aa\u25cf\u25e6\u00b7\u2013\u2014]|\(?[a-z]\))\s+(?=\S)")
NUMBER = re.compile(r"\s*(?:\(?\d{1,3}\)|\d{1,3}\.)\s+(?=\S)")
FIRST = re.compile(r"^[ \t]*\(?1[.)][ \t]", re.MULTILINE)
OPENS = "\u3008\u300a\u300c\u300e\u3010\u3014\uff08"  # opening brackets of such scripts, which do not end a line
PIECE = re.compile(rf"\s+|[{OPENS}]+$|[{OPENS}]*(?:[{SPACELESS}]|[^\s{SPACELESS}{OPENS}]+)[^\w\s{OPENS}]*")


def plain_parts(text: str) -> list[str | Passage]:
    parts: list[str | Passage] = []
    signs = (SIGN, NUMBER) if FIRST.search(text) else (SIGN,)
    block: list[str] = []  # lines with their ends
    last = ""  # the last list marker
    number = 1
    for line in [*lines_of(text), ""]:
        sign = next((found[0] for one in signs if (found := one.match(line))), "")
        if sign.strip() in ("\u2013", "\u2014") and block and not last:
            sign = ""  # a dash in a sentence
        if block and (sign or not line.strip()):
            for lines in [block] if was_wrapped([own.strip() for own in block]) else [[own] for own in block]:
                parts += wrapped_passage(lines, number)
                number += len(lines)
            block, last = [], ""
        if line.strip():
            parts.append(sign)
            last = sign or last
            block.append(line[len(sign) :])
        else:
            parts.append(line)
            number += 1
    return parts


def lines_of(text: str) -> list[str]:
    """Returns the lines with their ends, which are CR, LF or both."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)


def was_wrapped(lines: Sequence[str]) -> bool:
    """Whether all lines but the last have about the width of a page, and a sentence continues over the end of one: the
    next line begins in lower case, or in a script without capitals. Lines that all begin with capitals are texts of
    their own, such as names and headlines."""
    if not any(not ENDS.search(line) and _continues(after) for line, after in pairwise(lines)):
        return False
    lengths = [len(line) for line in lines[:-1]]
    return (
        min(lengths) >= NARROWEST
        and max(lengths) <= WIDEST
        and min(lengths) >= 0.6 * max(lengths)
        and len(lines[-1]) <= WIDEST
    )


def _continues(line: str) -> bool:
    """Whether a line begins in lower case, or its first letter is of a script without capitals."""
    begin = LETTER.search(line)
    if begin is None:
        return False
    letter = begin[0]
    without_capitals = not letter.isupper() and not letter.islower() and not letter.istitle()
    return without_capitals or (letter.islower() and not any(map(str.isdigit, line[: begin.start()])))


def wrapped_passage(lines: Sequence[str], number: int) -> list[str | Passage]:
    """Makes one passage of lines, which is wrapped at the same width when it is written. Its later lines are indented
    like the last one here."""
    raw = "".join(lines)
    begin, end = len(raw) - len(raw.lstrip()), len(raw.rstrip())
    inner = raw[begin:end]
    if not any(map(str.isalnum, inner)):
        return [raw]
    ending = re.search(r"\r\n|\r|\n", raw)
    own = [line.strip() for line in lines]
    width = max(len(line.rstrip()) for line in lines)
    if len(own) == 1:
        return [raw[:begin], Passage(own[0], (), inner, plain, number), raw[end:]]

    indent = re.match(r"[ \t]*", lines[-1])
    lead, line_end = indent[0] if indent else "", ending[0] if ending else "\n"

    def wrapped(placed: Placed) -> str:
        return rewrapped(plain(placed), width, lead, line_end)

    return [raw[:begin], Passage(" ".join(own), (), inner, wrapped, number), raw[end:]]


class Wrapper(textwrap.TextWrapper):
    """Also breaks lines between the characters of scripts without spaces."""

    def _split(self, text: str) -> list[str]:
        return [piece for chunk in super()._split(text) for piece in PIECE.findall(chunk)]


def rewrapped(text: str, width: int, lead: str, line_end: str, *, never: re.Pattern[str] | None = None) -> str:
    """Wraps a text at this width. All lines but the first begin with `lead`, and no line begins with a match of
    `never`."""
    made = list[str]()
    for line in Wrapper(max(1, width - len(lead)), break_long_words=False, break_on_hyphens=False).wrap(text):
        if made and never is not None and never.match(line):
            made[-1] += f" {line}"
        else:
            made.append(line)
    return f"{line_end}{lead}".join(made)
