"""Interprets the header of a table: which languages its columns are in, or which is the source."""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

Each = TypeVar("Each")
Side = Literal["source", "target"]
SIDES = {
    "source": "source src input original document dialogue article text quelle quelltext quellsprache ausgangstext "
    "ausgangssprache origen origine origem bron brontekst",
    "target": "target tgt trg output translation reference summary highlights tldr ziel zieltext zielsprache "
    "übersetzung cible traduction destino traducción destinazione traduzione tradução doel vertaling",
}
# Languages whose names are known in each other too, such as Deutsch and allemand.
WELL_KNOWN = (
    "ar bg cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk vi zh"
)


@functools.cache
def _languages() -> dict[str, str]:
    """The code of each language by its codes and its English name, and for some by their names in each other; in lower
    case."""
    from babel import Locale  # slow to import
    from babel.core import get_global

    english = {str(code): str(name) for code, name in Locale("en").languages.items()}
    found = {name.lower(): code for code, name in english.items() if "_" not in code}
    known = WELL_KNOWN.split()
    for names in (Locale(code).languages for code in known):
        found |= {str(names[code]).lower(): code for code in known}
    found |= {str(code): str(same) for code, same in get_global("language_aliases").items() if len(str(code)) == 3}
    return found | {code: code for code in english if len(code) <= 3}


@functools.cache
def _territories() -> frozenset[str]:
    """The English names of regions, in lower case."""
    from babel import Locale

    return frozenset(str(name).lower() for name in Locale("en").territories.values())


def other_languages(stated: tuple[str, str], languages: tuple[str, str]) -> Iterator[tuple[Side, str, str]]:
    """Yields the sides of which a document says another language than one that is translated from, or to, with both
    names."""
    sides: tuple[Side, Side] = ("source", "target")
    for side, name, other in zip(sides, stated, languages, strict=True):
        codes = meaning(name), meaning(other)
        if None not in codes and codes[0] != codes[1] and codes[1] not in SIDES:
            yield side, name, other


def meaning(name: str) -> str | None:
    """Returns the code of the language that `name` names ("German", "Deutsch", "de", "de-AT", "German_Germany" and
    "German (Austria)" are "de"), or "source" or "target" ("Source text"); else None."""
    plain = re.sub(r"\s*\([^()]*\)$|(?<=\w\w\w)[ _](?:text|sentence|segment|term)$", "", name.strip().lower())
    for side, words in SIDES.items():
        if plain in words.split():
            return side
    if re.fullmatch(r"\s*[A-Z][a-z]{1,2}\s*", name):
        return None  # a word that begins a sentence: codes are written en or EN
    without_region = re.sub(r"[-_]([a-z]{2}|[a-z]{4}|\d{3})$", "", plain)
    if (found := _languages().get(plain) or _languages().get(without_region)) is not None:
        return found
    first, _, region = re.sub("[_-]", " ", plain).partition(" ")
    return _languages().get(first) if len(first) > 3 and region.strip() in _territories() else None


def is_header(cells: Sequence[str]) -> bool:
    """Whether two of the cells name two languages, or the two sides; a pair of texts hardly ever does."""
    found = [meaning(cell) for cell in cells if len(cell) < 40]
    return len({each for each in found if each}) >= 2


def column_of(name: str, cells: Sequence[str]) -> int | None:
    """Returns the index of the one column that a name stands for: by its spelling, or else by its meaning. None if
    there is none, or several."""
    plain = [cell.strip().lower() for cell in cells]
    if name.strip().lower() in plain:
        return plain.index(name.strip().lower())
    wanted = meaning(name)
    same = [i for i, cell in enumerate(cells) if wanted and meaning(cell) == wanted]
    return same[0] if len(same) == 1 else None


def two_of(cells: Sequence[str], source: int | None = None, target: int | None = None) -> tuple[int, int] | None:
    """Returns the indices of two columns if the header leaves no choice (one of them may be known): the source and the
    target, or the only two languages in order. Else None."""
    named = {each: i for i, each in reversed([*enumerate(map(meaning, cells))]) if each}
    asked = [named.get(side) if one is None else one for side, one in (("source", source), ("target", target))]
    return filled(asked, sorted(i for each, i in named.items() if each not in SIDES))


def filled(asked: Sequence[Each | None], found: Sequence[Each]) -> tuple[Each, Each] | None:
    """Completes the source and the target: each that is None becomes what is left of `found`, in order. Returns None if
    that leaves a choice."""
    rest = [one for one in found if one not in asked]
    if None in asked and len(rest) != asked.count(None):
        return None
    left, right = (rest.pop(0) if one is None else one for one in asked)
    return left, right
