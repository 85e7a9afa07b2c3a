"""Word alignments as word aligners write them: which words of a source became which words of a translation.

Words are separated by blanks. Each word of a translation is linked to one word of the source: the one with the largest
share in `links`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypedDict

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span
from heedful.data.lines import sanitise
from heedful.tasks.translate.assemble import aligned_whole
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.weigh import refuse_empty_sides
from heedful.tasks.translate.searching import Translation

WordLinks = list[tuple[int, int]]  # (word of the source, word of the translation), numbered from 0
WORD = re.compile(r"\S+")


class AlignedPair(TypedDict):
    """An answer as a record."""

    source: str
    target: str
    alignment: WordLinks


def align_pairs(translator: BaseTranslator, pairs: Sequence[tuple[str, str]]) -> Iterator[AlignedPair]:
    """Raises what `links.aligned` raises, and TextError for an empty side."""
    refuse_empty_sides(pairs)
    for (source, target), links in zip(pairs, linked(translator, pairs), strict=True):
        yield {"source": source, "target": target, "alignment": links}


def linked_translations(translator: BaseTranslator, found: Sequence[Translation]) -> Iterator[WordLinks]:
    """The links of the best translation of each text. Raises what `links.aligned` raises."""
    pairs = {
        (one.source[slice(*own)], one.text[slice(*other)]): None
        for one in found
        for own, other in one.spans or _whole(one)
    }
    different = [pair for pair in pairs if pair[0] != pair[1]]
    links = dict(zip(different, aligned(translator, different), strict=True))
    for one in found:
        yield links_of(one.source, one.text, aligned_whole(one.source, one.text, one.spans or _whole(one), links))


def _whole(found: Translation) -> list[tuple[Span, Span]]:
    """A text that was translated as a whole as its only segment."""
    return [((0, len(found.source)), (0, len(found.text)))]


def linked(translator: BaseTranslator, pairs: Sequence[tuple[str, str]]) -> Iterator[WordLinks]:
    """Raises what `links.aligned` raises."""
    pairs = [(sanitise(source), sanitise(target)) for source, target in pairs]
    for (source, target), found in zip(pairs, aligned(translator, pairs), strict=True):
        yield links_of(source, target, found)


def links_of(source: str, target: str, found: Alignment) -> WordLinks:
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
