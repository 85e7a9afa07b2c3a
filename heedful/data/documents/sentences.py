"""Splits a passage into sentences by sentencex (Wikimedia, MIT), which knows the abbreviations of some 300
languages."""

import re
from bisect import bisect_right
from itertools import accumulate
from unicodedata import combining

from heedful.data.documents.words import SPACELESS, Span
from heedful.data.protected import PLACEHOLDER

CODE = re.compile(r"[a-z]{2,3}")
ANY = "en"  # if the name of a language is not a code
CLAUSE = re.compile(rf"[,;:\u2014)]\s+|[\u3001\uff0c\uff1b]|\s+|(?<=[{SPACELESS}])")


def sentences_in(text: str, language: str) -> list[Span]:
    """Returns the span of each sentence, without the white space between them. Tags that close something belong to the
    sentence that they directly follow."""
    from sentencex import get_sentence_boundaries

    code = re.split("[-_]", language.lower())[0]
    found = get_sentence_boundaries(code if CODE.fullmatch(code) else ANY, text)
    spans = list[Span]()
    for each in found:
        begin, end = trimmed(text, each["start_index"], each["end_index"])
        if spans and spans[-1][1] == begin:
            begin = _behind(text, begin, end)
            spans[-1] = spans[-1][0], begin
            begin, end = trimmed(text, begin, end)
        if begin < end:
            spans.append((begin, end))
    return spans


def _behind(text: str, begin: int, end: int) -> int:
    """Where what belongs to the sentence before ends: tags that close something, and placeholders without a text."""
    if not PLACEHOLDER.sub("", text[begin:end]).strip():
        return end
    while (tag := PLACEHOLDER.match(text, begin, end)) and tag[0].startswith(("</", "[/")):
        begin = tag.end()
    return begin


def trimmed(text: str, begin: int, end: int) -> Span:
    """Returns a span without white space at both ends."""
    part = text[begin:end]
    return begin + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def halves(text: str, *, clauses: bool) -> tuple[Span, Span] | None:
    """Splits a sentence in two, as near to the middle as possible, at the end of a clause, or else of a word; with
    `clauses`, only of a clause. Returns None if there is no such end."""
    ends = {found.end(): not found[0].isspace() for found in CLAUSE.finditer(text)}
    first, last = trimmed(text, 0, len(text))
    inner = [end for end in ends if first < end < last]
    letters = letters_before(text)
    whole = letters[-1]
    best = [end for end in inner if ends[end] and whole / 5 <= letters[end] <= 4 * whole / 5]
    best = best if best or clauses else inner
    if not best:
        return None
    cut = min(best, key=lambda end: abs(letters[end] - whole / 2))
    return trimmed(text, 0, cut), trimmed(text, cut, len(text))


def letters_before(text: str) -> list[int]:
    """Returns for each position of a text, and for its end, the number of characters before it, without the marks that
    follow their letters: the same for a text in either form of Unicode."""
    return [0, *accumulate(int(not (combining(sign) or "\u1160" <= sign <= "\u11ff")) for sign in text)]


def middle_of(text: str) -> int:
    """Returns the position in the middle of a text that parts no letter from its marks; an end, where it has one
    letter."""
    letters = letters_before(text)
    return bisect_right(letters, letters[-1] // 2) - 1


def gap_between(before: str, gap: str, after: str) -> str:
    """Returns what to put between two sentences, one of which was translated: a space, if the script uses them."""
    if gap and not gap.isspace():
        return gap
    spaceless = re.compile(rf"[{SPACELESS}\u3000-\u3003\uff01\uff0c\uff0e\uff1f]")
    tight = bool(before and after and spaceless.match(before[-1]) and spaceless.match(after[0]))
    return ("" if gap in ("", " ") else gap) if tight else gap or " "
