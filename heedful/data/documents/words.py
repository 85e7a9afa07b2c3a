"""The words of a text, as tags are moved between them: letters and digits together, each other sign by itself, and each
character of a script that is written without spaces."""

import re

SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}_])\w)+|[^\w\s]|_")

Span = tuple[int, int]  # characters: from the first to before the last


def words_in(text: str) -> list[Span]:
    return [found.span() for found in WORD.finditer(text)]
