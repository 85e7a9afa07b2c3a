"""Texts in CAPITALS: a model that has learnt from hardly any reads them in small letters, of which it knows the words.

Cut into tokens such a text is mostly single letters, whose translation is nonsense. In small letters it is a sentence
that lacks the capitals of its names, and its translation is as good as that of one.
"""

import re
from collections.abc import Sequence

FEWEST = 0.01  # of the sources that are in capitals, of which a model is left to read them as they are
KEY = "reads_capitals"  # of task.json
WORDS = 2  # of two letters or more, of a text in capitals; fewer are names, such as NATO
DOTTED = str.maketrans(
    {"I": "\N{LATIN SMALL LETTER DOTLESS I}", "İ": "i"}
)  # what Turkish and Azerbaijani write for them
_WORD, _BEGIN = re.compile(r"[^\W\d_]{2,}"), re.compile(r"(?:^|[.!?]\s)\W*\w")


def in_capitals(text: str) -> bool:
    """Whether a text has no small letter, and several words that could have some."""
    return text.isupper() and sum(map(str.isupper, _WORD.findall(text))) >= WORDS


def in_small_letters(text: str, language: str = "") -> str:
    """As many characters, each sentence with a capital where it begins."""
    dotted = re.split(r"\W|_", language.lower())[0] in ("tr", "az")
    lower = (text.translate(DOTTED) if dotted else text).lower()
    if len(lower) != len(text):
        lower = "".join(letter.lower()[0] for letter in text)
    return _BEGIN.sub(lambda found: text[found.start() : found.end()], lower)


def capitals_facts(sources: Sequence[str]) -> dict[str, bool]:
    """What task.json keeps of the sources that are learnt from: that hardly any is in capitals; else nothing."""
    return {KEY: False} if sum(map(in_capitals, sources)) < FEWEST * len(sources) else {}
