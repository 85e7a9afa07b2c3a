"""Token ids as plain numbers, of texts, pairs and conversations: in memory, or on disk, where they are mapped and read
as they are asked for."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from heedful.core.seeds import counter_seed, shuffled
from heedful.data.large import Rows
from heedful.data.lines import PART
from heedful.data.tokenizer import Ids, Tokenizer

BLOCK = 64  # pairs: it is known where each block of them begins
TURN = 1 << 20  # pairs that are put into random order together
TEXT_TURN, TEXT_PIECE = 1 << 21, 1 << 13  # tokens of texts that are read into memory together, and of one of them
MOST_TOKENS = 0xFFFF  # of a stored side
LENGTHS = np.dtype("<u2")

Pair = tuple[list[int], list[int]]
Stored = TypeVar("Stored", bound=Sequence[Any])


class Text(NamedTuple):
    """Two or more token ids of a running text, including those that begin and end it, and which of them count in the
    loss, such as the answers of a conversation."""

    ids: list[int]
    learnt: list[bool]


class Shard(NamedTuple):
    """The ids of some pairs (of each, the source and then the target), the tokens of both sides (N, 2), and where each
    block of pairs begins."""

    ids: np.ndarray
    lengths: np.ndarray
    begins: np.ndarray


def opened(ids: Path, lengths: Path, kind: str) -> Shard:
    """Maps the two files of a shard; `kind` is the type of its ids."""
    size = np.fromfile(lengths, LENGTHS).reshape(-1, 2)
    empty = np.zeros(0, kind)  # what is empty cannot be mapped
    ends = np.add.reduceat(size.sum(1, dtype=np.int64), range(0, len(size), BLOCK)).cumsum() if len(size) else empty
    mapped = np.memmap(ids, kind, "r").view(np.ndarray) if len(size) else empty
    return Shard(mapped, size, np.concatenate([[0], ends]))


def kind_of_ids(vocabulary: int) -> str:
    """The smallest type of numbers that holds all ids."""
    return "<u2" if vocabulary <= 1 << 16 else "<u4"


def as_bytes(pairs: Iterable[Pair], kind: str) -> tuple[bytes, bytes]:
    """The two files of a shard with these pairs, of sides of at most `MOST_TOKENS`."""
    sides = [side for pair in pairs for side in pair]
    ids = np.fromiter(chain.from_iterable(sides), kind, sum(map(len, sides)))
    return ids.tobytes(), np.fromiter(map(len, sides), LENGTHS, len(sides)).tobytes()


class StoredTexts(Rows[Ids]):
    """The ids of texts, all behind each other, and where each text begins: a hundredth of the memory of lists. Each may
    stand `behind` a token, which also ends the last."""

    def __init__(self, ids: np.ndarray, begins: np.ndarray, apart: int | None = None) -> None:
        self.ids, self.begins, self.apart = ids, begins, apart

    def __len__(self) -> int:
        return len(self.begins)

    def row(self, number: int) -> Ids:
        between = int(self.apart is not None)
        end = self.begins[number + 1] if number + 1 < len(self) else len(self.ids)
        ids: Ids = self.ids[self.begins[number] : end - between].tolist()
        return ids

    @property
    def tokens(self) -> int:
        """How many tokens all texts have."""
        return len(self.ids) - (0 if self.apart is None else len(self) + 1)

    @property
    def lengths(self) -> np.ndarray:
        """How many tokens each text has (N)."""
        between = int(self.apart is not None)
        return np.diff(self.begins, append=len(self.ids)) - between

    @property
    def turns(self) -> int:
        """Into how many turns each epoch is divided: the texts of one are read into memory. Texts that are there have
        one."""
        return 1 if self.apart is None else max(1, -(-self.tokens // TEXT_TURN))

    def turn(self, seed: int, number: int) -> Iterator[Ids]:
        """The texts of a turn, counted from the first epoch on. Where there are several, each epoch deals the texts to
        its turns anew, long ones in pieces."""
        if self.turns == 1:
            yield from self
            return
        epoch, place = divmod(number, self.turns)
        lengths = self.lengths
        pieces = -(-lengths // TEXT_PIECE)
        ends = pieces.cumsum()
        first, last = (int(ends[-1]) * at // self.turns for at in (place, place + 1))
        for piece in permuted(np.arange(first, last), int(ends[-1]), "pieces", seed, epoch).tolist():
            text = int(ends.searchsorted(piece, "right"))
            begin = (piece - int(ends[text] - pieces[text])) * TEXT_PIECE
            at, length = int(self.begins[text]), int(lengths[text])
            yield self.ids[at + begin : at + min(begin + TEXT_PIECE, length)].tolist()

    def behind(self, token: int) -> np.ndarray:
        """All texts, each behind this token, which also ends the last. Raises ValueError where they stand behind
        another."""
        if self.apart is None:
            return np.append(np.insert(self.ids, self.begins, token), self.ids.dtype.type(token))
        if token != self.apart:
            raise ValueError(f"the texts are stored behind {self.apart}, not {token}")
        return self.ids

    def counts(self) -> Counter[int]:
        """How often each id is there."""
        counts = Counter[int]()
        for at in range(0, len(self.ids), PART):
            counts.update(_counted(self.ids[at : at + PART]))
        if self.apart is not None:
            counts[self.apart] -= len(self) + 1
        return +counts


def stored_texts(texts: Iterable[str], tokenizer: Tokenizer) -> StoredTexts:
    """The ids of texts by `encode_whole`, some at a time."""
    kind, every, begins, count = kind_of_ids(tokenizer.size), list[np.ndarray](), list[int](), 0
    parts, words = tokenizer.parts(texts), dict[str, Ids]()
    while some := [*_some(parts)]:
        for (begin, _), ids in zip(some, tokenizer.encode_whole([part for _, part in some], words), strict=True):
            begins += [count] if begin else []
            count += len(ids)
            every.append(np.array(ids, kind))
    return StoredTexts(np.concatenate([np.zeros(0, kind), *every]), np.array(begins, np.int64))


def _some(parts: Iterator[tuple[bool, str]]) -> Iterator[tuple[bool, str]]:
    """The next parts, of a million characters together, about."""
    size = 0
    while size < 4 * PART and (part := next(parts, None)) is not None:
        size += len(part[1])
        yield part


class StoredPairs(Rows[Pair]):
    """The pairs of several shards, as a model reads them: those that are not too long, with the tokens around them."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self.firsts = [0, *accumulate(len(shard.lengths) for shard in shards)]
        self.lengths = np.concatenate([shard.lengths for shard in shards])
        self.rows: np.ndarray | None = None  # the numbers of those that are kept; None: all
        self.cut: int | None = None  # tokens of a source that are read; None: all
        self.framed: Callable[[Pair], Pair] = lambda pair: pair  # adds the tokens around the texts

    def read_as(self, framed: Callable[[Pair], Pair], *, most: int, cut: int | None) -> "StoredPairs":
        """Those with fewer than `most` tokens on each side, where sources are cut after `cut` tokens, and `framed` adds
        some."""
        pairs = StoredPairs(self.shards)
        pairs.cut, pairs.framed = cut, framed
        lengths = pairs.lengths if cut is None else np.minimum(pairs.lengths, (cut, MOST_TOKENS))
        lengths = lengths.astype(np.int32) + np.array([len(side) for side in framed(([], []))], np.int32)
        kept = np.flatnonzero(lengths.max(1, initial=0) < most)
        pairs.rows = kept if len(kept) < len(lengths) else None
        pairs.lengths = lengths if pairs.rows is None else lengths[kept]
        return pairs

    @property
    def turns(self) -> int:
        """Into how many turns each epoch is divided: the pairs of one are put into random order in memory."""
        return max(1, -(-len(self) // TURN))

    def turn(self, seed: int, number: int) -> list[int]:
        """The numbers of a turn's pairs, counted from the first epoch on. Each epoch deals blocks of neighbours to its
        turns anew. Data of one turn have the order of pairs in memory."""
        if self.turns == 1:
            return shuffled(len(self), seed, number)
        epoch, place = divmod(number, self.turns)
        blocks, each = -(-len(self) // BLOCK), TURN // BLOCK
        dealt = permuted(np.arange(place * each, min(blocks, (place + 1) * each)), blocks, "blocks", seed, epoch)
        rows = (dealt[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        rows = rows[rows < len(self)]
        return rows[shuffled(len(rows), seed, number)].tolist()

    def __len__(self) -> int:
        return len(self.lengths)

    def row(self, number: int) -> Pair:
        number = number if self.rows is None else int(self.rows[number])
        place = bisect_right(self.firsts, number) - 1
        shard, i = self.shards[place], number - self.firsts[place]
        begin = int(shard.begins[i // BLOCK] + shard.lengths[i - i % BLOCK : i].sum(dtype=np.int64))
        middle = begin + int(shard.lengths[i, 0])
        end = middle if self.cut is None else min(middle, begin + self.cut)
        pair = shard.ids[begin:end].tolist(), shard.ids[middle : middle + int(shard.lengths[i, 1])].tolist()
        return self.framed(pair)

    def counts(self, side: int) -> Counter[int]:
        """How often each id is in all that is stored of the sources (side 0) or the targets (1)."""
        counted = Counter[int]()
        for shard in self.shards:
            begins = np.tile([side == 0, side == 1], len(shard.lengths))
            counted.update(_counted(shard.ids[np.repeat(begins, shard.lengths.ravel())]))
        return counted


class StoredAnswers(Rows[Text]):
    """Conversations as texts that stay on disk: the ids of all, which of these are learnt, and where each begins."""

    def __init__(self, ids: np.ndarray, learnt: np.ndarray, begins: np.ndarray) -> None:
        self.ids, self.learnt, self.begins = ids, learnt, begins

    def __len__(self) -> int:
        return len(self.begins)

    def row(self, number: int) -> Text:
        begin = self.begins[number]
        end = self.begins[number + 1] if number + 1 < len(self) else len(self.ids)
        return Text(self.ids[begin:end].tolist(), self.learnt[begin:end].astype(bool).tolist())

    @property
    def turns(self) -> int:
        """Into how many turns each epoch is divided: the conversations of one are read into memory."""
        return max(1, -(-len(self.ids) // TEXT_TURN))

    def turn(self, seed: int, number: int) -> list[Text]:
        """The conversations of a turn, in its order, counted from the first epoch on."""
        epoch, place = divmod(number, self.turns)
        if self.turns == 1:
            return [self[i] for i in shuffled(len(self), seed, number)]
        first, last = (len(self) * at // self.turns for at in (place, place + 1))
        dealt = permuted(np.arange(first, last), len(self), "conversations", seed, epoch)
        return [self[i] for i in dealt.tolist()]

    def counts(self) -> Counter[int]:
        """How often each id is learnt."""
        counts = Counter[int]()
        for at in range(0, len(self.ids), PART):
            counts.update(_counted(self.ids[at : at + PART][self.learnt[at : at + PART] > 0]))
        return counts

    @property
    def answers(self) -> int:
        """How many tokens are learnt, without those that begin a conversation, which nothing predicts."""
        return int(self.learnt.sum(dtype=np.int64) - self.learnt[self.begins].sum(dtype=np.int64))


def _counted(ids: np.ndarray) -> Counter[int]:
    return Counter({token: count for token, count in enumerate(np.bincount(ids).tolist()) if count})


@dataclass(frozen=True)
class Prepared(Generic[Stored]):
    """Prepared pairs or texts, and what their folder says of them. `tokenizers`: the source's and the target's; of
    texts, one."""

    stored: Stored
    tokenizers: tuple[Tokenizer, Tokenizer]
    fingerprint: str
    options: Mapping[str, Any]  # of the recipe
    inputs: Sequence[Mapping[str, Any]]  # the files that they come from, with their sha256
    learnt: bytes  # the fingerprints of the texts


def sizes(pairs: Sequence[Any], numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The tokens of both sides of these pairs, with their ends."""
    if isinstance(pairs, StoredPairs):
        return [(source, target) for source, target in (pairs.lengths[numbers] + np.int32(1)).tolist()]
    return [(len(pairs[i][0]) + 1, len(pairs[i][1]) + 1) for i in numbers]


def longest_of(pairs: Sequence[Any]) -> int:
    """The most tokens of a side, with its end."""
    if isinstance(pairs, StoredPairs):
        return int(pairs.lengths.max()) + 1
    return max(max(len(source), len(target)) + 1 for source, target in pairs)


def permuted(numbers: np.ndarray, n: int, *key: object) -> np.ndarray:
    """Where a permutation of range(n) that depends on n and the key sends these numbers; no list of all is made. A
    Feistel network (Luby and Rackoff 1988), whose results of n and more are sent on (Black and Rogaway 2002)."""
    half = max(1, -(-(n - 1).bit_length() // 2))
    shift, mask = np.uint64(half), np.uint64((1 << half) - 1)
    rounds = [np.uint64(counter_seed(*key, number)) for number in range(6)]
    moved, left = numbers.astype(np.uint64), np.ones(len(numbers), bool)
    while left.any():
        high, low = moved[left] >> shift, moved[left] & mask
        for secret in rounds:
            mixed = (low ^ secret) * np.uint64(0x9E3779B97F4A7C15)
            high, low = (
                low,
                high ^ ((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(32)) & mask,
            )
        moved[left] = high << shift | low
        left = moved >= n
    return moved.astype(np.int64)
