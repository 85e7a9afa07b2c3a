"""Text made worse, for a model to put right: spans hidden, words hidden, sentences in another order.

Pure functions over token ids and a `random.Random` of each text, epoch and seed (`heedful.core.seeds`), so that what
happens to a text depends on nothing else. What is not hidden keeps its order.
"""

import math
import random
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from heedful.data.tokenizer import Ids

SPANS_SHARE, SPANS_MEAN = 0.15, 3.0  # Raffel et al. 2020, section 3.3.4
INFILL_SHARE, INFILL_MEAN = 0.3, 3.0  # Lewis et al. 2020, sections 2.2 and 5.1
SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")


def span_count(length: int, *, share: float = SPANS_SHARE, mean: float = SPANS_MEAN) -> tuple[int, int]:
    """How many of `length` tokens are hidden, and in how many spans: at least one, and no two that touch."""
    hidden = min(length, max(1, round(share * length)))
    return hidden, min(max(1, round(hidden / mean)), hidden, length - hidden + 1)


def hide_spans(
    ids: Sequence[int],
    sentinels: Sequence[int],
    draw: random.Random,
    *,
    share: float = SPANS_SHARE,
    mean: float = SPANS_MEAN,
) -> tuple[Ids, Ids]:
    """(source, target): spans of the text are replaced by sentinels, each by the next, and the target says after each
    sentinel what it replaced, and ends with one more (Raffel et al. 2020, section 3.1.4 and figure 2).

    Every way to choose the spans is equally likely. Where there are too few sentinels, the spans are fewer and longer.
    """
    hidden, spans = span_count(len(ids), share=share, mean=mean)
    spans = min(spans, len(sentinels) - 1)
    lengths = _parts(hidden, spans, draw)
    # What is kept stands before, between and after the spans: only between them there must be some.
    gaps = _parts(len(ids) - hidden + 2, spans + 1, draw)
    gaps[0], gaps[-1] = gaps[0] - 1, gaps[-1] - 1
    source: Ids = []
    target: Ids = []
    place = 0
    for sentinel, gap, length in zip(sentinels, gaps, lengths, strict=False):
        source += [*ids[place : place + gap], sentinel]
        place += gap
        target += [sentinel, *ids[place : place + length]]
        place += length
    return [*source, *ids[place:]], [*target, sentinels[spans]]


def infill(words: Sequence[Ids], mask: int, draw: random.Random) -> Ids:
    """The text with spans of words replaced by a mask each, whatever their length (Lewis et al. 2020, section 2.2).

    Lengths are drawn from a Poisson distribution until INFILL_SHARE of the words, at least one, are hidden; one of 0
    puts a mask between two words. Of these there are at most as many as leave the text no longer than it was. Every
    order of spans and words that are kept is equally likely.
    """
    hidden = min(len(words), max(1, round(INFILL_SHARE * len(words))))
    lengths: list[int] = []
    left = hidden
    while left:
        lengths.append(min(left, poisson(INFILL_MEAN, draw)))
        left -= lengths[-1]
    filled = [length for length in lengths if length]
    empty = min(len(lengths) - len(filled), hidden - len(filled))
    order: list[int | None] = [*filled, *[0] * empty, *[None] * (len(words) - hidden)]  # None: a word that is kept
    draw.shuffle(order)
    made: Ids = []
    place = 0
    for length in order:
        made += words[place] if length is None else [mask]
        place += 1 if length is None else length
    return made


def permuted(sentences: Sequence[Ids], draw: random.Random) -> list[Ids]:
    """The sentences in a random order (Lewis et al. 2020, section 2.2)."""
    return draw.sample(sentences, len(sentences))


def poisson(mean: float, draw: random.Random) -> int:
    """A number from the Poisson distribution: how many waiting times fit into one unit of time."""
    limit, product, count = math.exp(-mean), draw.random(), 0
    while product > limit:
        product *= draw.random()
        count += 1
    return count


def sentences_of(text: str) -> list[str]:
    """A text's sentences, as far as full stops and line ends tell, with one space between words."""
    return [" ".join(sentence.split()) for sentence in SENTENCE_ENDS.split(text) if sentence.strip()]


def passages(sentences: Iterable[Ids], longest: int) -> Iterator[list[Ids]]:
    """Whole sentences that stand together, at most `longest` tokens; a sentence that is longer is cut."""
    passage: list[Ids] = []
    room = longest
    for sentence in sentences:
        for piece in (sentence[i : i + longest] for i in range(0, len(sentence), longest)):
            if len(piece) > room:
                yield passage
                passage, room = [], longest
            passage.append(piece)
            room -= len(piece)
    if passage:
        yield passage


def words_of(ids: Sequence[int], begins: Collection[int]) -> list[Ids]:
    """The tokens of each word: a word begins with a token in `begins`."""
    words: list[Ids] = []
    for index in ids:
        if index in begins or not words:
            words.append([])
        words[-1].append(index)
    return words


def _parts(total: int, parts: int, draw: random.Random) -> list[int]:
    """`total` as a sum of `parts` numbers from 1, every such sum equally likely."""
    cuts = [0, *sorted(draw.sample(range(1, total), parts - 1)), total]
    return [after - before for before, after in pairwise(cuts)]
