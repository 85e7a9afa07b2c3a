"""What a block remembers between decoding steps.

Keys and values are written into a buffer, which is allocated once if the largest length of a row is given, and
otherwise doubled whenever it is full. Rows may differ in length, leave, and be replaced by others.

A cache is a value that can be continued once: every method returns a new one, which shares the buffer, and a second
write from one that was continued already raises InputError. What branches asks for its rows first (`pick`), which
copies them.

B batch, R rows, S tokens so far (of the longest row), T new tokens, U = S + T, G key heads, D head width.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.attention import KV
from heedful.errors import InputError

LEAST = 16  # tokens that a buffer has room for, by default


class Buffer:
    """Room for keys and values, and how often it has been written to."""

    __slots__ = ("kv", "writes")

    def __init__(self, kv: KV) -> None:
        self.kv, self.writes = kv, 0


@dataclass(frozen=True)
class Past:
    """The tokens so far, at most `size` a row (None: any number). New tokens are appended to the end of each row.

    `kv` gives every row up to the end of the longest, without a copy: the entries behind a shorter row are finite, and
    must be masked (`valid`). Raises InputError where there is no room left, and where it was continued already.
    """

    size: int | None = None
    buffer: Buffer | None = None
    writes: int = 0  # those to the buffer that it knows of
    length: int = 0  # of the longest row
    lengths: Int[Tensor, "B"] | None = None  # of each row; None: all are equally long

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return None if self.buffer is None else self.kv().positions

    def positions_with(self, newer: Int[Tensor, "#B T"]) -> Int[Tensor, "B U"]:
        """`positions` after appending tokens at `newer`; entries behind the end of a row are arbitrary."""
        if self.positions is None:
            return newer
        both = torch.cat([self.positions, newer.expand(len(self.positions), -1)], dim=-1)
        return both if self.lengths is None else both.index_put_(self._behind(newer.shape[1]), newer)

    def valid(self, more: int) -> Bool[Tensor, "B U"] | None:
        """Which keys are valid after appending `more` tokens to each row; None: all."""
        if self.lengths is None:
            return None
        return torch.arange(self.length + more, device=self.lengths.device) < self.lengths[:, None] + more

    def kv(self) -> KV:
        if self.buffer is None:
            raise InputError("a state that has read nothing yet", fix="give it a token first")
        return _first(self.buffer.kv, self.length)

    def append(self, newer: KV) -> "Past":
        T = newer.key.shape[2]
        buffer, end = self._room(self.length + T, newer), self.length + T
        for own, part in _pairs(buffer.kv, newer):
            room = own.narrow(_token_axis(own), self.length, T)
            if self.lengths is None:
                room.copy_(part)
            else:
                room.zero_()
                own.movedim(_token_axis(own), 1)[self._behind(T)] = part.movedim(_token_axis(part), 1)
        return Past(self.size, buffer, buffer.writes, end, None if self.lengths is None else self.lengths + T)

    def keep(self, length: int, lengths: Int[Tensor, "B"] | None) -> "Past":
        """The first `lengths` tokens of each row (None: `length` of every row), of which `length` are the most. What
        was written behind them, also in continuing this cache, is forgotten, and cannot be continued any more."""
        writes = self.writes if self.buffer is None else self.buffer.writes
        return replace(self, writes=writes, length=length, lengths=lengths)

    def pick(self, rows: Int[Tensor, "R"]) -> "Past":
        lengths = None if self.lengths is None else self.lengths[rows]
        if self.buffer is None:
            return replace(self, lengths=lengths)
        return replace(self, buffer=Buffer(self.buffer.kv.pick(rows)), writes=0, lengths=lengths)

    def put(self, rows: Int[Tensor, "R"], newer: "Past") -> "Past":
        """Replaces these rows by those of `newer`. `keep` must then set the lengths."""
        if self.buffer is None:
            raise InputError("a state that has read nothing yet", fix="give it a token first")
        if newer.buffer is None:
            return self
        buffer = self._room(newer.length, newer.buffer.kv)
        for own, part in _pairs(_first(buffer.kv, newer.length), newer.kv()):
            if newer.length > self.length:
                own.narrow(_token_axis(own), self.length, newer.length - self.length).zero_()
            own[rows] = part
        return replace(self, buffer=buffer, writes=buffer.writes)

    def _room(self, size: int, like: KV) -> Buffer:
        """The buffer, or a larger one, with room for so many tokens, which this cache alone may write to next."""
        if self.size is not None and size > self.size:
            raise InputError(f"{size} tokens do not fit a cache of {self.size}", fix="start it with a larger size")
        old = self.buffer
        if old is not None:
            if self.writes != old.writes:
                what = "this state was continued already"
                raise InputError(what, fix="continue the newest one, or pick its rows before")
            old.writes += 1
            if size <= old.kv.key.shape[2]:
                return old
        like = like if old is None else old.kv
        buffer = Buffer(_like(like, len(like.key), self.size or max(2 * size, LEAST)))
        if old is not None:
            for made, part in _pairs(_first(buffer.kv, self.length), self.kv()):
                made.copy_(part)
        return buffer

    def _behind(self, T: int) -> tuple[Int[Tensor, "B 1"], Int[Tensor, "B T"]]:
        """The row and the position of the next T tokens of each row."""
        assert self.lengths is not None
        rows, more = (torch.arange(n, device=self.lengths.device) for n in (len(self.lengths), T))
        return rows[:, None], self.lengths[:, None] + more


def _token_axis(part: Tensor) -> int:
    """The dimension of keys, values or positions along which the tokens are."""
    return 1 if part.dim() == 2 else 2


def _pairs(one: KV, other: KV) -> Iterator[tuple[Tensor, Tensor]]:
    return ((own, part) for own, part in zip(one, other, strict=True) if own is not None and part is not None)


def _first(kv: KV, length: int) -> KV:
    key, value, positions = kv
    return KV(key[:, :, :length], value[:, :, :length], None if positions is None else positions[:, :length])


def _like(kv: KV, rows: int, size: int) -> KV:
    """Room for so many rows and tokens. Positions that many rows share stay one row."""
    key, value, positions = kv
    if positions is not None:
        positions = positions.new_empty(rows if len(positions) == len(key) else 1, size)
    key, value = (part.new_empty(rows, part.shape[1], size, part.shape[3]) for part in (key, value))
    return KV(key, value, positions)


@dataclass(frozen=True)
class BlockCache:
    """One block's memory: its own past, and the keys and values of the encoder's output, projected once.
    A row of the memory may be that of several rows of the past, side by side, and of equally many each. A block that
    compresses keys also has them here: one for each `size` tokens of the past."""

    past: Past
    memory: KV | None = None
    compressed: Past = Past()
    size: int | None = None

    def append(self, newer: KV) -> "BlockCache":
        return replace(self, past=self.past.append(newer))

    def compress(self, newer: KV, counts: Int[Tensor, "B"] | None) -> "BlockCache":
        """With more compressed keys, of which each row keeps so many (None: all)."""
        compressed = self.compressed.append(newer)
        if counts is not None:
            compressed = compressed.keep(int(counts.max()), counts)
        return replace(self, compressed=compressed)

    def keep(self, length: int, lengths: Int[Tensor, "B"] | None) -> "BlockCache":
        past, size = self.past.keep(length, lengths), self.size
        if size is None:
            return replace(self, past=past)
        kept = self.compressed.keep(length // size, None if lengths is None else lengths // size)
        return replace(self, past=past, compressed=kept)

    def put(self, rows: Int[Tensor, "R"], newer: "BlockCache") -> "BlockCache":
        """Replaces these rows by those of `newer`. `keep` must then set the lengths."""
        past = self.past.put(rows, newer.past)
        if self.size is None:
            return replace(self, past=past)
        return replace(self, past=past, compressed=self.compressed.put(rows, newer.compressed))

    def pick(self, rows: Int[Tensor, "R"], memories: Int[Tensor, "M"] | None) -> "BlockCache":
        """These rows of the past, and of the memory `memories` (None: all that there are)."""
        memory = self.memory
        if memory is not None and memories is not None:
            memory = memory.pick(memories)
        return replace(self, past=self.past.pick(rows), memory=memory, compressed=self.compressed.pick(rows))
