"""Turns texts and pairs of token ids into int64 rectangles: packed rows, length buckets, and padding for prediction.

B rows, S source tokens and T target tokens a row. Callers pass plain ids: here each source gets its end token, each
decoder input a begin token in front, and each decoder output an end token behind. `segments` number the sentences of a
row from 1, and 0 is padding; source segment k belongs to target segment k of the same row.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.seeds import shuffled
from heedful.data.stored import Text, sizes
from heedful.data.tokenizer import BOS, EOS, PAD
from heedful.errors import InputError

PACK_WINDOW = 512  # pairs packed together: fills rows of 64 with captions to 93 % and 97 %; 1024 is no better
SORT_WINDOW = 8192  # pairs sorted by length together

Pair = tuple[list[int], list[int]]


class Ends(NamedTuple):
    """The tokens that begin and end a text."""

    bos: int = BOS
    eos: int = EOS
    source: int | None = None  # ends a source, if it is another token than `eos`


OUR_ENDS = Ends()


class PairBatch(NamedTuple):
    """Teacher-forced pairs: position i of `target_in` predicts position i of `target_out`."""

    source: Int[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    source_segments: Int[Tensor, "B S"]
    target_segments: Int[Tensor, "B T"]

    @property
    def source_tokens(self) -> int:
        """The source tokens that are not padding, EOS included."""
        return int(self.source_segments.count_nonzero())

    @property
    def target_tokens(self) -> int:
        """The target tokens that are not padding, EOS included."""
        return int(self.target_segments.count_nonzero())


class TextBatch(NamedTuple):
    """Rows of running text: position i of `tokens` predicts position i of `following`. Segment 0 is padding. `learnt`:
    which of `following` count in the loss (None: all, in rows without padding)."""

    tokens: Int[Tensor, "B T"]
    following: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    learnt: Bool[Tensor, "B T"] | None = None


Chunk = TypeVar("Chunk")
Batch = TypeVar("Batch")


class LazyBatches(Sequence[Batch], Generic[Batch, Chunk]):
    """Batches that are made on access, each from a chunk of indices: all of an epoch need more memory than its
    texts."""

    def __init__(self, chunks: Sequence[Chunk], make: Callable[[Chunk], Batch]) -> None:
        self.chunks, self.make = chunks, make

    def ordered(self, order: Sequence[int]) -> "LazyBatches[Batch, Chunk]":
        """The batches of these numbers, in this order."""
        return LazyBatches([self.chunks[i] for i in order], self.make)

    def __len__(self) -> int:
        return len(self.chunks)

    @overload
    def __getitem__(self, at: int) -> Batch: ...
    @overload
    def __getitem__(self, at: slice) -> list[Batch]: ...
    def __getitem__(self, at: int | slice) -> Batch | list[Batch]:
        return [*map(self.make, self.chunks[at])] if isinstance(at, slice) else self.make(self.chunks[at])


PairBatches = LazyBatches[PairBatch, list[list[int]]]  # of the indices of the pairs in each row


def pack_rows(
    pairs: Sequence[Pair], order: Sequence[int], *, row: int, rows: int, ends: Ends = OUR_ENDS
) -> PairBatches:
    """Packs whole pairs, in about this order, into batches of exactly (`rows`, `row`) on both sides.

    Within each window of the order, the longest pairs are packed first, each into the row where it leaves the least
    room (best fit decreasing; Johnson, 1973). The last batch is filled up with padding. Raises InputError for a pair
    that is longer than `row`.
    """
    _check_lengths(pairs, order, row, "a row")

    def make(chunk: list[list[int]]) -> PairBatch:
        return _batch([[pairs[index] for index in own] for own in chunk], ends, row)

    return LazyBatches([*_chunks(pairs, order, row, rows)], make)


def pack_texts(texts: Sequence[Text], order: Sequence[int], *, row: int, rows: int) -> Iterator[TextBatch]:
    """As `pack_rows`, for whole texts. The batches have segments, and say which tokens are learnt."""
    pairs: list[Pair] = [([], text.ids[1:-1]) for text in texts]
    _check_lengths(pairs, order, row, "a row", noun="text")
    chunks = _chunks(pairs, order, row, rows)
    return (_text_batch([[texts[index] for index in own] for own in chunk], row) for chunk in chunks)


def bucket_rows(pairs: Sequence[Pair], order: Sequence[int], *, tokens: int, ends: Ends = OUR_ENDS) -> PairBatches:
    """Makes batches of one pair a row and similar lengths, of at most `tokens` on either side, padding included.

    Batches are in the order of their lengths within each window of the order: the caller shuffles them. Raises
    InputError for a pair that is longer than `tokens`.
    """
    _check_lengths(pairs, order, tokens, "a batch")
    chunks: list[list[list[int]]] = []
    for start in range(0, len(order), SORT_WINDOW):
        window = order[start : start + SORT_WINDOW]
        both = sizes(pairs, window)
        by_size = sorted(range(len(window)), key=lambda place: both[place][::-1])
        groups = grouped(by_size, [*map(max, both)], tokens)
        chunks += [[[window[place]] for place in group] for group in groups]
    return LazyBatches(chunks, lambda chunk: _batch([[pairs[index] for index in row] for row in chunk], ends))


def pad(
    sequences: Sequence[list[int]],
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (EOS,),
    filler: int = PAD,
    length: int | None = None,
) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B S"]]:
    """Returns (ids, segments) of sources to predict from: each with the tokens `before` and `after` it, by default EOS
    as in training, and padded with `filler` to this `length`, or to the longest."""
    rows = [[*before, *ids, *after] for ids in sequences]
    return _rectangle(rows, length, filler=filler), _rectangle([[1] * len(ids) for ids in rows], length)


def by_length(sequences: Sequence[list[int]], tokens: int) -> list[list[int]]:
    """Groups indices, the longest sequences first; each group has at most `tokens` when padded with EOS.

    A sequence that is longer than that is a group of its own.
    """
    lengths = [len(ids) + 1 for ids in sequences]
    return grouped(sorted(range(len(lengths)), key=lambda index: -lengths[index]), lengths, tokens)


def of_like_length(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Groups indices, the shortest first; each group has at most `tokens` with its padding, or one index."""
    return grouped(sorted(range(len(lengths)), key=lengths.__getitem__), lengths, tokens)


def _check_lengths(pairs: Sequence[Pair], order: Sequence[int], limit: int, holder: str, noun: str = "pair") -> None:
    for start in range(0, len(order), SORT_WINDOW):
        window = order[start : start + SORT_WINDOW]
        for index, length in zip(window, map(max, sizes(pairs, window)), strict=True):
            if length > limit:
                what = f"{noun} {index} has {length} tokens with EOS, but {holder} holds {limit}"
                raise InputError(what, fix=f"leave such {noun}s out, or allow more tokens")


def grouped(order: Sequence[int], lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Cuts the order into groups whose size times longest length is at most `tokens`, or of one index."""
    groups: list[list[int]] = []
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if not groups or longest * (len(groups[-1]) + 1) > tokens:
            groups.append([])
            longest = lengths[index]
        groups[-1].append(index)
    return groups


def shuffled_groups(lengths: Sequence[int], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Groups indices of similar lengths; each group has at most `tokens` with its padding, or one index. The order
    depends on (seed, epoch), and each epoch groups differently."""
    groups = grouped(sorted(shuffled(len(lengths), seed, epoch), key=lengths.__getitem__), lengths, tokens)
    return [groups[i] for i in shuffled(len(groups), seed + 1, epoch)]


def _fill(pairs: Sequence[Pair], window: Sequence[int], row: int) -> list[list[int]]:
    """Returns the indices of each row. Rows are in the order of the pairs that opened them, so lengths are mixed."""
    both = sizes(pairs, window)
    shortest = [min(lengths) for lengths in zip(*both, strict=True)]
    filled: list[tuple[int, list[int]]] = []
    unfilled: list[list] = []  # [source room, target room, indices] of rows with room for another pair
    for place in sorted(range(len(window)), key=lambda place: -max(both[place])):
        source, target = both[place]
        least, best = row, None
        for candidate in unfilled:
            room, other = candidate[0] - source, candidate[1] - target
            if other < room:
                room = other
            if 0 <= room < least:
                least, best = room, candidate
        if best is None:
            best = [row, row, []]
            unfilled.append(best)
            filled.append((place, best[2]))
        best[0] -= source
        best[1] -= target
        best[2].append(window[place])
        if best[0] < shortest[0] or best[1] < shortest[1]:
            unfilled.remove(best)
    return [indices for _, indices in sorted(filled)]


def _chunks(pairs: Sequence[Pair], order: Sequence[int], row: int, rows: int) -> Iterator[list[list[int]]]:
    """Yields the indices of the `rows` rows of each batch; the last batch is filled up with empty rows."""
    filled = (
        indices
        for start in range(0, len(order), PACK_WINDOW)
        for indices in _fill(pairs, order[start : start + PACK_WINDOW], row)
    )
    while chunk := list(islice(filled, rows)):
        yield chunk + [[]] * (rows - len(chunk))


def _batch(rows: Sequence[Sequence[Pair]], ends: Ends, length: int | None = None) -> PairBatch:
    """Joins the pairs of each row and pads the rows to `length`, or to the longest row."""
    last = ends.eos if ends.source is None else ends.source
    source = [[token for ids, _ in row for token in (*ids, last)] for row in rows]
    target_in = [[token for _, ids in row for token in (ends.bos, *ids)] for row in rows]
    target_out = [[token for _, ids in row for token in (*ids, ends.eos)] for row in rows]
    return PairBatch(
        _rectangle(source, length),
        _rectangle(target_in, length),
        _rectangle(target_out, length),
        _rectangle([_numbered(ids for ids, _ in row) for row in rows], length),
        _rectangle([_numbered(ids for _, ids in row) for row in rows], length),
    )


def _text_batch(rows: Sequence[Sequence[Text]], length: int) -> TextBatch:
    return TextBatch(
        _rectangle([[token for text in row for token in text.ids[:-1]] for row in rows], length),
        _rectangle([[token for text in row for token in text.ids[1:]] for row in rows], length),
        _rectangle([_numbered(text.ids[1:-1] for text in row) for row in rows], length),
        _rectangle([[int(learnt) for text in row for learnt in text.learnt[1:]] for row in rows], length).bool(),
    )


def _numbered(sentences: Iterable[list[int]]) -> list[int]:
    return [*chain.from_iterable([number] * (len(ids) + 1) for number, ids in enumerate(sentences, 1))]


def _rectangle(rows: Sequence[list[int]], length: int | None = None, *, filler: int = PAD) -> Int[Tensor, "B T"]:
    length = length or max(map(len, rows), default=0)
    padded = chain.from_iterable(ids + [filler] * (length - len(ids)) for ids in rows)
    return torch.from_numpy(np.fromiter(padded, np.int64)).view(len(rows), length)
