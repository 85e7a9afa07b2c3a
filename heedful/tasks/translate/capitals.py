"""Texts in CAPITALS: a model that has learnt from hardly any reads them in small letters, of which it knows the words.

Cut into tokens such a text is mostly single letters, whose translation is nonsense. In small letters it is a sentence
that lacks the capitals of rare names, and its translation is as good as that of one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heedful.data.documents.protected import PLACEHOLDER
from heedful.data.text.headers import meaning

Tokens = Callable[[Sequence[str]], Sequence[Sequence[int]]]
FEWEST = 0.01  # of the sources that are in capitals, of which a model is left to read them as they are
READS_CAPITALS = "reads_capitals"  # of task.json
WORDS = 2  # of two letters or more, of a text in capitals; fewer are names, such as NATO
# What Turkish and Azerbaijani write for them.
DOTTED = str.maketrans({"I": "\N{LATIN SMALL LETTER DOTLESS I}", "İ": "i"})
_WORD, _BEGIN = re.compile(r"[^\W\d_]{2,}"), re.compile(r"(?:^|[.!?]\s)\W*\w")
_KEPT = re.compile(rf"{PLACEHOLDER.pattern} | \b[^\W\d_]\w*\d\w*", re.VERBOSE)  # and names with digits, such as MP3
_ENGLISH_I = re.compile(r"\bI\b")


def in_capitals(text: str) -> bool:
    """Whether a text has several words in capitals and no other letter, aside from placeholders and addresses: no
    small one, but for the "ß" that few have a capital for, and none of a script without capitals."""
    text = text.replace("ß", "\N{LATIN CAPITAL LETTER SHARP S}")
    if not _several(text):  # which is soonest known
        return False
    own = _KEPT.sub(" ", text)
    return _several(own) and all(map(str.isupper, filter(str.isalpha, own)))


def _several(text: str) -> bool:
    return sum(map(str.isupper, _WORD.findall(text))) >= WORDS


def in_small_letters(text: str, language: str = "", tokens: Tokens | None = None) -> str:
    """As many characters, each sentence with a capital where it begins; placeholders and addresses as they are. A word
    that takes fewer `tokens` with a capital was learnt so, as names, months and German nouns are: it begins with one.
    """
    code = meaning(language)
    lower = (text.translate(DOTTED) if code in ("tr", "az") else text).lower()
    if len(lower) != len(text):
        lower = "".join(letter.lower()[0] for letter in text)
    made = [*lower]
    for kept in (_BEGIN, _KEPT, *([_ENGLISH_I] if code == "en" else [])):
        for begin, end in (found.span() for found in kept.finditer(text)):
            made[begin:end] = text[begin:end]
    read = "".join(made)
    words = [found.span() for found in _WORD.finditer(read) if found[0].islower()]
    small = [f" {read[begin:end]}" for begin, end in words]
    large = [f" {text[begin]}{read[begin + 1 : end]}" for begin, end in words]
    both = [] if tokens is None else zip(words, tokens(small), tokens(large), strict=True)
    for (begin, _), own, other in both:
        if len(other) < len(own):
            made[begin] = text[begin]
    return "".join(made)


def capitals_facts(sources: Sequence[str]) -> dict[str, bool]:
    """What task.json keeps of the sources that are learnt from: that hardly any is in capitals; else nothing."""
    return {READS_CAPITALS: False} if sum(map(in_capitals, sources)) < FEWEST * len(sources) else {}


def capitals_lost(about: Mapping[str, Any]) -> list[str]:
    """What is told of a folder whose reader knows nothing of this, of a run with such a task.json."""
    told = "there a text in CAPITALS is read as it is: the run itself reads it in small letters"
    return [] if about.get(READS_CAPITALS, True) else [told]
