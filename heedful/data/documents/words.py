"""Splits a text into words for the moving of tags: letters and digits together, and single characters otherwise, also
of scripts without spaces."""

import re

SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}_])\w)+|[^\w\s]|_")

Span = tuple[int, int]  # characters: from `begin` to before `end`


def words_in(text: str) -> list[Span]:
    return [found.span() for found in WORD.finditer(text)]
