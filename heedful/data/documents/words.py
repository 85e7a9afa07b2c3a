"""Splits a text into words for the moving of tags: letters and digits together, and single characters otherwise, also
of scripts without spaces. Marks (accents, vowel signs) belong to the letter before them."""

import re
import unicodedata

SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Blocks of Unicode that have marks, except of Thai to Burmese and of Khmer, which have no spaces between words.
MARKED = ((0x300, 0xE00), (0x10A0, 0x1780), (0x1800, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE30))
# For a class of characters: marks, which `\w` leaves out, and the joiners that Persian and Hindi have within words.
MARKS = "\u200c\u200d" + "".join(
    character
    for begin, end in MARKED
    for character in map(chr, range(begin, end))
    if unicodedata.category(character).startswith("M")
)
WORD = re.compile(rf"[{SPACELESS}][{MARKS}]*|(?:(?![{SPACELESS}_])\w[{MARKS}]*)+|[^\w\s]|_")

Span = tuple[int, int]  # characters: from `begin` to before `end`


def words_in(text: str) -> list[Span]:
    return [found.span() for found in WORD.finditer(text)]
