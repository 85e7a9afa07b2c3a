"""Texts in CAPITALS: a model that was trained on hardly any reads them in lower case, in which it knows the words.

As tokens, a text in capitals is mostly single letters, and its translation nonsense. In lower case it is a normal
sentence, except for the capitals of rare names, and is translated as well as one.
"""

import re
from collections.abc import Callable, Sequence

from heedful.data.lines import COMBINING
from heedful.data.protected import PLACEHOLDER
from heedful.data.text.headers import meaning

Tokens = Callable[[Sequence[str]], Sequence[Sequence[int]]]
FEWEST = 0.01  # share of sources in capitals, from which the model reads them as they are
WORDS = 2  # that a text in capitals has at least, of two letters or more; fewer are names, such as NATO
# The lower case of these letters in Turkish and Azerbaijani.
DOTTED = str.maketrans({"I": "\N{LATIN SMALL LETTER DOTLESS I}", "İ": "i"})
_WORD, _BEGIN = re.compile(rf"(?:[^\W\d_][{COMBINING}]*){{2,}}"), re.compile(r"(?:^|[.!?]\s)\W*\w")
_KEPT = re.compile(rf"{PLACEHOLDER.pattern} | \b[^\W\d_]\w*\d\w*", re.VERBOSE)  # and names with digits, such as MP3
_ENGLISH_I = re.compile(r"\bI\b")


def in_capitals(text: str) -> bool:
    """Whether a text has several words in capitals and no other letters, apart from placeholders and addresses: no
    lower case, except "ß", and no script without capitals."""
    text = text.replace("ß", "\N{LATIN CAPITAL LETTER SHARP S}")
    if not _several(text):  # the quickest test
        return False
    own = _KEPT.sub(" ", text)
    return _several(own) and all(map(str.isupper, filter(str.isalpha, own)))


def _several(text: str) -> bool:
    return sum(map(str.isupper, _WORD.findall(text))) >= WORDS


def in_small_letters(text: str, language: str = "", tokens: Tokens | None = None) -> str:
    """The text in lower case, with the same number of characters. Sentences begin with a capital; placeholders and
    addresses stay as they are. A word that has fewer `tokens` with a capital gets one: the model learnt it so, as it
    does names, months and German nouns.
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


def has_capitals(sources: Sequence[str]) -> bool:
    """Whether so many training sources are in capitals that the model reads them as they are."""
    return sum(map(in_capitals, sources)) >= FEWEST * len(sources)
