"""The directions of pairs: given with a path ("memory.tmx:en>de,en>fr"), or in two columns."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heedful.data.lines import first_few
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.headers import column_of
from heedful.errors import InputError

ARROW = ">"  # "en>de" is from English to German
Direction = tuple[str, str]

_NAMED = r"[A-Za-z][\w-]*>[A-Za-z][\w-]*"
_SAID = re.compile(rf":({_NAMED}(?:,{_NAMED})*)(?=(?::[\d.]+)?$)")
SIDES = (("source_lang", "src_lang", "source_language"), ("target_lang", "tgt_lang", "target_language"))


def said_in(text: str) -> tuple[str, list[Direction]]:
    """Separates a path with its weight from the directions between them, and returns both."""
    found = _SAID.search(text)
    if found is None:
        return text, []
    pairs = [each.split(ARROW) for each in found[1].split(",")]
    return text[: found.start()] + text[found.end() :], [(source, target) for source, target in pairs]


class LanguageColumns(NamedTuple):
    """The indices of the columns or keys of the source, the target, and their languages."""

    source: int
    target: int
    source_language: int
    target_language: int


def language_columns(names: Sequence[str]) -> LanguageColumns | None:
    """Returns the columns of a table whose rows name their languages; None for other tables."""
    plain = [name.strip().lower() for name in names]
    told = [next((plain.index(word) for word in words if word in plain), None) for words in SIDES]
    rest = [name if i not in told else "" for i, name in enumerate(names)]
    sides = [column_of(side, rest) for side in ("source", "target")]
    left, right, first, second = *sides, *told
    if left is None or right is None or first is None or second is None:
        return None
    return LanguageColumns(left, right, first, second)


def in_words(directions: Iterable[Direction]) -> str:
    """Formats the first few directions."""
    return first_few([f"{source} to {target}" for source, target in directions], 8)


class OneDirection:
    """The direction that is asked for, or that of the first pair if none is."""

    def __init__(self, asked: Direction) -> None:
        self.found, self.any = None if asked == (SOURCE, TARGET) else asked, asked == (SOURCE, TARGET)

    def has(self, languages: tuple[object, object], where: str) -> bool:
        """Whether a row has this direction. Raises InputError for another one if none is asked for."""
        own = said_languages(languages, where)
        self.found = self.found or own
        if self.any and own != self.found:
            what = f"from {' to '.join(own)}, and other rows are from {' to '.join(self.found)}"
            fix = "name both languages, --source en --target de, or give the table itself, in no folder"
            raise InputError(what, where=where, fix=fix)
        return own == self.found


class EachDirection:
    """All directions: `last` is that of the row that was read last, and `there` whether rows say theirs at all."""

    there = False
    last: Direction | None = None

    def has(self, languages: tuple[object, object], where: str) -> bool:
        self.last = said_languages(languages, where)
        return True


def chosen_direction(source: str, target: str, each: EachDirection | None) -> OneDirection | EachDirection:
    """Returns which rows are read of those that name their languages."""
    if each is None:
        return OneDirection((source, target))
    each.there = True
    return each


def said_languages(languages: tuple[object, object], where: str) -> Direction:
    """Returns the direction of a row. Raises InputError if a language is missing."""
    one, other = (language.strip() if isinstance(language, str) else "" for language in languages)
    if not one or not other:
        raise InputError("a row that does not say its languages, as others do", where=where, fix="fill in both")
    return one, other
