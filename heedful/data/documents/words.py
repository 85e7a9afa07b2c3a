"""Splits a text into words for the moving of tags: letters and digits together, and single characters otherwise, also
of scripts without spaces. Marks (accents, vowel signs) belong to the letter before them."""

import re

from heedful.data.lines import COMBINING

SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SPACELESS}][{COMBINING}]*|(?:(?![{SPACELESS}_])\w[{COMBINING}]*)+|[^\w\s]|_")

Span = tuple[int, int]  # characters: from `begin` to before `end`


def words_in(text: str) -> list[Span]:
    return [found.span() for found in WORD.finditer(text)]
