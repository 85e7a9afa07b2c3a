"""What can be said of a text, or of a pair, by itself."""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from heedful.data.lines import composed, is_composed
from heedful.data.numbers import changed_numbers

ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#\d+|#[xX][0-9A-Fa-f]+);")  # &amp;
# Program text and addresses inside a sentence, which a translation has to keep.
PLACEHOLDER = re.compile(
    r"\$?\{[\w.]*\}"  # {name} ${name} {}
    r"|%\([\w.]+\)[sdifg]|%(?:\d+\$)?[sdf@]\b|%\d+\b"  # %(name)s %1$s %s %1
    r"|</?[A-Za-z][^<>]*>"  # <b> </b> <br/>
    rf"|{ENTITY.pattern}"
    r"|https?://[^\s<>\"]+|www\.[^\s<>\"]+"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)
IN_PLACEHOLDERS = ("{", "%", "<", "&", "://", "www.", "@")  # each has one of these
CUT = re.compile(r"\S@@(?!\S)|(?<!\S)▁\w")  # as subword-nmt and SentencePiece leave words
TOKENISED = re.compile(r"\w [.,](?!\S)|&(?:apos|quot);")  # as Moses' tokenizer leaves punctuation
NO_LETTERS = re.compile(r"[\W_]+")
# Classes of characters of which texts hardly ever have one.
CONTROLS, SIGNS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd", "\xad\u2060\ufeff"
# Ligatures, and letters as Arabic and Hebrew join them; letters and digits of full width.
PRINT, WIDE = "\ufb00-\ufd3d\ufd50-\ufdcf\ufe70-\ufefc", "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
ODD = re.compile(f"[{CONTROLS}{SIGNS}\u200b-\u200d{PRINT}{WIDE}&@▁]")
CONTROL, PRINTED, FULL_WIDTH = re.compile(f"[{CONTROLS}]"), re.compile(f"[{PRINT}]"), re.compile(f"[{WIDE}]")
# Joiners are meant within Persian, Hindi and emoji, and U+200B between words of scripts without spaces.
UNSPACED = r"\u0e00-\u109f\u1780-\u17ff"
INVISIBLE = re.compile(
    rf"[{SIGNS}]|(?<![{UNSPACED}])\u200b(?![{UNSPACED}])|(?<=[A-Za-z])[\u200c\u200d]|[\u200c\u200d](?=[A-Za-z])"
)
# What ftfy takes for badly decoded has one of these: two characters together that are not ASCII, or one of some few.
UNDECODED = re.compile("[^\x00-\x7f](?:[^\x00-\x7f]|(?<=[\x80-\x9fÃÂŒœ]))")


def plain(text: str) -> str:
    """What is the same about texts that differ in their blanks, their case or how Unicode composes them."""
    return " ".join(composed(text).casefold().split())


def letters(text: str) -> str:
    """The letters and digits alone, in one case."""
    return NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold())


def having(pattern: re.Pattern[str], texts: Sequence[str]) -> set[int]:
    """The numbers of the texts in which characters of a class are found, all of them searched at once."""
    ends = [*accumulate(len(text) + 1 for text in texts)]
    return {bisect_right(ends, found.start()) for found in pattern.finditer("\n".join(texts))}


def not_composed(texts: Sequence[str]) -> set[int]:
    """The numbers of the texts that are not composed."""
    if is_composed("\n".join(texts)):
        return set()
    return {number for number, text in enumerate(texts) if not is_composed(text)}


def has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def lost_numbers(source: str, target: str, languages: tuple[str, str]) -> list[str]:
    """The numbers of two digits and more whose value the target does not have: of one digit, most are written in
    words."""
    return [number for number in changed_numbers(source, target, languages) if len(re.findall(r"\d", number)) > 1]


def placeholders(text: str) -> list[str]:
    """Sorted. Tags lose their attributes, addresses the punctuation that a sentence puts behind them."""
    if not any(mark in text for mark in IN_PLACEHOLDERS):
        return []
    return sorted(re.sub(r"^(</?\w+).*>$", r"\1>", part.rstrip(".,;:!?)")) for part in PLACEHOLDER.findall(text))


def invisible(text: str) -> list[str]:
    """The signs that cannot be seen, by their numbers: "U+FEFF"."""
    return [] if text.isascii() else [f"U+{ord(sign):04X}" for sign in INVISIBLE.findall(text)]


def entities(text: str) -> list[str]:
    """The entities of HTML in a text."""
    return [each for each in ENTITY.findall(text) if html.unescape(each) != each] if "&" in text else []


def printed_forms(text: str, *, wide: bool) -> list[str]:
    """The letters that have a form of print, which Unicode has for older encodings alone; `wide`: full width is usual,
    as in Japanese."""
    return [] if text.isascii() else PRINTED.findall(text) + ([] if wide else FULL_WIDTH.findall(text))


def is_cut(text: str) -> bool:
    """Whether it has words in pieces."""
    return ("@@" in text or "▁" in text) and CUT.search(text) is not None


def undecoded(text: str) -> str | None:
    """How a text reads that was decoded wrongly; None of any other."""
    if text.isascii() or not UNDECODED.search(text):
        return None
    import ftfy

    if not ftfy.badness.is_bad(text):
        return None
    mended = ftfy.fix_encoding(text)
    return None if mended == text else mended
