"""What must not change in a translation: placeholders of programs, addresses, and numbers."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

ESCAPES = re.compile(r"(?:\\[nrt](?![a-z]))+")  # "\n" in two characters, as programs write the end of a line
PLACEHOLDER = re.compile(
    ESCAPES.pattern
    + r"""
    | \$\{[^{}\n]{1,80}\}                                               # ${v}
    | \{\{[^{}\n]{1,80}\}\}                                             # {{ v }}
    | \{%[^{}\n]{1,80}%\}                                              # {% if v %}
    | %?\{[\w.:!,-]{0,80}\}                                             # {}, {0}, {name}, %{name}
    | \{\s*\w{1,80}\s*,\s*(?:number|date|time|list|duration)\s*(?:,[^{}\n]{0,80})?\}  # {n, number, percent}
    | %(?:\d+\$)?\#@\w{1,80}@                                           # %#@files@
    | %\(\w{1,80}\)[#0+-]{0,3}\d*(?:\.\d+)?[diouxXeEfFgGcrsa]           # %(x)d
    | %(?:\d+\$)?[#0+-]{0,3}\d*(?:\.\d+)?(?:hh|h|ll|l|z|t)?[diouxXeEfgGcsSpn@](?![^\W_])   # %s, %1$d, %.2f
    | %\d(?!\d|\s*%)                                                    # %1
    | \$[A-Za-z_]\w*                                                    # $v
    | </?(?:[A-Za-z][^<>\n]{0,200}|\d{1,3}/?)>                          # <b>, where it is text, and <0>
    | \[[a-z][\w-]{0,80}(?:\s+[\w-]{1,80}=(?:"[^"\n]{0,400}"|'[^'\n]{0,400}'))+\s*/?\]  # [gallery ids="1"]
    | \[/[a-z][\w-]{0,80}\]                                             # [/caption]
    | &(?:\#\d{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,31});              # &amp;
    | (?<![\w.])[vV]\d+(?:\.\d+)+                                       # versions: v2.10,
    | (?<![\w.])\d+(?:\.\d+)*\.x(?!\w)                                  # 0.85.x,
    | (?<![\w.])\d+(?:\.\d+)+-(?:alpha|beta|rc|dev|pre)(?:\.?\w+)*    # 1.2.3-beta.1
    | (?<![\w.])(?!\d{1,3}(?:\.\d{3})+(?!\d))\d+(?:\.\d+){3}(?![\w]|\.\d)  # and 10.0.0.1
    | (?:https?|ftp)://[^\s<>"'()]+[^\s<>"'().,;:!?]                    # addresses
    | www\.[^\s<>"'()]+[^\s<>"'().,;:!?]
    | [\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+
    """,
    re.VERBOSE,
)
NUMBER = re.compile(
    r"""
      (?<!\d)\d{1,3}(?:\ \d{3})+(?:[.,]\d+)?(?!\d)     # 3 050,50
    | \d{1,2}\s?h\s?\d{2}(?!\w)                        # 14 h 35
    | \d+(?:[.,:'\u2019\u00a0\u202f]\d+)*              # 3,050.5 and 14:35
    """,
    re.VERBOSE,
)
MARKS = ("7391", "8264", "5917", "6483", "9172", "3748", "4629", "2851")  # replace placeholders


class Protected(NamedTuple):
    """The placeholders and numbers in a text, in order."""

    placeholders: tuple[str, ...]
    numbers: tuple[str, ...]  # digits only: languages format numbers differently


def protected_in(text: str) -> Protected:
    placeholders = tuple(found[0] for found in PLACEHOLDER.finditer(text))
    rest = PLACEHOLDER.sub(" ", text)
    return Protected(placeholders, tuple(re.sub(r"\D", "", found[0]) for found in NUMBER.finditer(rest)))


def lost(source: str, translation: str) -> list[str]:
    """Returns the placeholders and numbers that a translation lacks, or has too often."""
    before, after = protected_in(source), protected_in(translation)
    found: list[str] = []
    for own, theirs in zip(before, after, strict=True):
        there, wanted = Counter(theirs), Counter(own)
        found += [*((wanted - there) + (there - wanted)).elements()]
    return found


def lost_placeholders(source: str, translation: str) -> bool:
    return Counter(protected_in(source).placeholders) != Counter(protected_in(translation).placeholders)


def masked(text: str) -> tuple[str, dict[str, str]] | None:
    """Returns a text with a number in place of each placeholder, which models learn to copy, and what each stands for;
    None if there are too many placeholders."""
    marks = iter(mark for mark in MARKS if mark not in text)
    stands: dict[str, str] = {}
    try:
        made = PLACEHOLDER.sub(lambda found: stands.setdefault(next(marks), found[0]) and [*stands][-1], text)
    except StopIteration:
        return None
    return made, stands


def unmasked(translation: str, stands: dict[str, str]) -> str | None:
    """Replaces the numbers by their placeholders; returns None if a number is missing, or occurs twice."""
    if any(len(re.findall(rf"(?<!\d){mark}(?!\d)", translation)) != 1 for mark in stands):
        return None
    return re.sub("|".join(stands), lambda found: stands[found[0]], translation) if stands else translation


def without(text: str) -> tuple[str, Sequence[tuple[int, str]]]:
    """Returns a text without its placeholders, and these with their positions; of the spaces on both sides of one, only
    those before it stay."""
    made, out, begin = "", list[tuple[int, str]](), 0
    for found in PLACEHOLDER.finditer(text):
        made += text[begin : found.start()]
        begin = found.end()
        out.append((len(made), found[0]))
        while (not made or made.endswith(" ")) and text.startswith(" ", begin):
            begin += 1
    return made + text[begin:], out
