"""Word alignments as word aligners write them: which words of a source became which words of a translation.

Words are separated by blanks. Each word of a translation is linked to one word of the source: the one with the largest
share in `links`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypedDict

from heedful.data.documents.tags import Alignment
from heedful.data.lines import sanitise
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.weigh import refuse_empty_sides
from heedful.tasks.translate.records import Translated
from heedful.tasks.translate.use import Translator

Links = list[tuple[int, int]]  # (word of the source, word of the translation), numbered from 0
WORD = re.compile(r"\S+")


class AlignedPair(TypedDict):
    """An answer as a record."""

    source: str
    target: str
    alignment: Links


def align_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[AlignedPair]:
    """Raises what `links.aligned` raises, and TextError for an empty side."""
    refuse_empty_sides(pairs)
    for (source, target), links in zip(pairs, linked(translator, pairs), strict=True):
        yield {"source": source, "target": target, "alignment": links}


def with_alignments(translator: Translator, records: Sequence[Translated]) -> Iterator[Translated]:
    """Records of translations with the links of the best of each. Raises what `align_pairs` raises."""
    pairs = [(made["source"], made["text"]) for made in records]
    for made, links in zip(records, linked(translator, pairs), strict=True):
        yield {**made, "alignment": links}


def linked(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[Links]:
    """Raises what `links.aligned` raises."""
    pairs = [(sanitise(source), sanitise(target)) for source, target in pairs]
    for (source, target), found in zip(pairs, aligned(translator, pairs), strict=True):
        yield links_of(source, target, found)


def links_of(source: str, target: str, found: Alignment) -> Links:
    """Of an alignment of finer words: those of a word count together."""
    own, theirs = _numbers(source), _numbers(target)
    shares: dict[int, dict[int, float]] = {}
    for (begin, _), row in zip(found.target, found.shares, strict=True):
        told = shares.setdefault(theirs[begin], {})
        for word, share in row.items():
            number = own[found.source[word][0]]
            told[number] = told.get(number, 0.0) + share
    return [(max(told, key=lambda number: told[number]), word) for word, told in shares.items() if told]


def pharaoh(links: Sequence[Sequence[int]]) -> str:
    """As word aligners write it: "0-0 1-2 2-1"."""
    return " ".join(f"{i}-{j}" for i, j in links)


def _numbers(text: str) -> list[int]:
    """The number of the word that each character is in; -1 of blanks."""
    made = [-1] * len(text)
    for number, word in enumerate(WORD.finditer(text)):
        made[word.start() : word.end()] = [number] * len(word[0])
    return made
