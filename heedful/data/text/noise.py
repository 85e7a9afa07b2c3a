"""Corrupts text for denoising objectives: spans or words are masked, sentences are permuted.

Pure functions of token ids and a `random.Random` for each text, epoch and seed (`heedful.core.seeds`), so that the
noise depends on nothing else. Tokens that are kept stay in order.
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
    """Returns how many of `length` tokens are masked, and in how many spans: at least one, and no two adjacent."""
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
    """Returns (source, target): spans of the text are replaced by consecutive sentinels, and the target has each
    sentinel followed by the span that it replaced, and one more sentinel at the end (Raffel et al. 2020, section 3.1.4
    and figure 2).

    Every choice of spans is equally likely. With too few sentinels, the spans are fewer and longer.
    """
    hidden, spans = span_count(len(ids), share=share, mean=mean)
    spans = min(spans, len(sentinels) - 1)
    lengths = _parts(hidden, spans, draw)
    # Kept tokens are before, between and after the spans; only between spans there must be at least one.
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
    """Returns the text with spans of words replaced by one mask each, whatever their length (Lewis et al. 2020, section
    2.2).

    Lengths are drawn from a Poisson distribution until INFILL_SHARE of the words, at least one, are masked; a length of
    0 inserts a mask between two words. There are at most as many of these as keep the text from getting longer. Every
    order of spans and kept words is equally likely.
    """
    hidden = min(len(words), max(1, round(INFILL_SHARE * len(words))))
    lengths: list[int] = []
    left = hidden
    while left:
        lengths.append(min(left, poisson(INFILL_MEAN, draw)))
        left -= lengths[-1]
    filled = [length for length in lengths if length]
    empty = min(len(lengths) - len(filled), hidden - len(filled))
    order: list[int | None] = [*filled, *[0] * empty, *[None] * (len(words) - hidden)]  # None: a kept word
    draw.shuffle(order)
    made: Ids = []
    place = 0
    for length in order:
        made += words[place] if length is None else [mask]
        place += 1 if length is None else length
    return made


def permuted(sentences: Sequence[Ids], draw: random.Random) -> list[Ids]:
    """Returns the sentences in a random order (Lewis et al. 2020, section 2.2)."""
    return draw.sample(sentences, len(sentences))


def poisson(mean: float, draw: random.Random) -> int:
    """Draws a number from the Poisson distribution: how many waiting times fit into one unit of time."""
    limit, product, count = math.exp(-mean), draw.random(), 0
    while product > limit:
        product *= draw.random()
        count += 1
    return count


def sentences_of(text: str) -> list[str]:
    """Splits a text into sentences at full stops and line ends, with one space between words."""
    return [" ".join(sentence.split()) for sentence in SENTENCE_ENDS.split(text) if sentence.strip()]


def passages(sentences: Iterable[Ids], longest: int) -> Iterator[list[Ids]]:
    """Yields groups of consecutive whole sentences of at most `longest` tokens; longer sentences are cut."""
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
    """Groups tokens into words: a word begins with a token in `begins`."""
    words: list[Ids] = []
    for index in ids:
        if index in begins or not words:
            words.append([])
        words[-1].append(index)
    return words


def _parts(total: int, parts: int, draw: random.Random) -> list[int]:
    """Draws `parts` numbers from 1 whose sum is `total`, every such sum equally likely."""
    cuts = [0, *sorted(draw.sample(range(1, total), parts - 1)), total]
    return [after - before for before, after in pairwise(cuts)]
