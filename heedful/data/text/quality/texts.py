"""What can be said of a text, or of a pair, by itself."""

import re
import unicodedata

from heedful.data.lines import composed

# Program text and addresses inside a sentence, which a translation has to keep.
PLACEHOLDER = re.compile(
    r"\$?\{[\w.]*\}"  # {name} ${name} {}
    r"|%\([\w.]+\)[sdifg]|%(?:\d+\$)?[sdf@]\b|%\d+\b"  # %(name)s %1$s %s %1
    r"|</?[A-Za-z][^<>]*>"  # <b> </b> <br/>
    r"|&(?:[a-z]+|#\d+);"  # &amp;
    r"|https?://[^\s<>\"]+|www\.[^\s<>\"]+"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)
IN_PLACEHOLDERS = ("{", "%", "<", "&", "://", "www.", "@")  # each has one of these
NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d{3})*(?:[.,]\d+)?")  # noqa: RUF001  # as several countries write it
CUT = re.compile(r"\S@@(?!\S)|(?<!\S)▁\w")  # as subword-nmt and SentencePiece leave words
IN_CUT = ("@@", "▁")
TOKENISED = re.compile(r"\w [.,](?!\S)|&(?:apos|quot);")  # as Moses' tokenizer leaves punctuation
NO_LETTERS = re.compile(r"[\W_]+")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
# What ftfy takes for badly decoded has one of these: two characters together that are not ASCII, or one of some few.
UNDECODED = re.compile("[^\x00-\x7f](?:[^\x00-\x7f]|(?<=[\x80-\x9fÃÂŒœ]))")


def plain(text: str) -> str:
    """What is the same about texts that differ in their blanks, their case or how Unicode composes them."""
    return " ".join(composed(text).casefold().split())


def letters(text: str) -> str:
    """The letters and digits alone, in one case."""
    return NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold())


def has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def numbers(text: str) -> list[str]:
    """The numbers of two digits and more, without what separates thousands and decimals, sorted."""
    found = (re.sub(r"\D", "", number) for number in NUMBER.findall(text))
    digits = ("".join(str(unicodedata.digit(character)) for character in number) for number in found)
    return sorted(number for number in digits if len(number) > 1)


def placeholders(text: str) -> list[str]:
    """Sorted. Tags lose their attributes, addresses the punctuation that a sentence puts behind them."""
    if not any(mark in text for mark in IN_PLACEHOLDERS):
        return []
    return sorted(re.sub(r"^(</?\w+).*>$", r"\1>", part.rstrip(".,;:!?)")) for part in PLACEHOLDER.findall(text))


def is_cut(text: str) -> bool:
    """Whether it has words in pieces."""
    return any(mark in text for mark in IN_CUT) and CUT.search(text) is not None


def undecoded(text: str) -> str | None:
    """How a text reads that was decoded wrongly; None of any other."""
    if text.isascii() or not UNDECODED.search(text):
        return None
    import ftfy

    if not ftfy.badness.is_bad(text):
        return None
    mended = ftfy.fix_encoding(text)
    return None if mended == text else mended
