"""What a block remembers between decoding steps.

A cache is a value: `append` and `pick` hand a new one back, and nobody keeps the old one. `Growing` joins
tensors and suits outputs up to about 2,000 tokens, in rows that are equally long. `Fixed` writes into a buffer made
once, so that a long output costs the same memory at every step, and its rows may differ in length and be replaced.

B batch, R rows, S tokens so far (of the longest row), T new tokens, U = S + T, G key heads, D head width.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.attention import KV


@dataclass(frozen=True)
class Growing:
    past: KV | None = None

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return None if self.past is None else self.past.positions

    def positions_with(self, newer: Int[Tensor, "b T"]) -> Int[Tensor, "b U"]:
        """`positions`, once tokens at these are appended."""
        return newer if self.positions is None else torch.cat([self.positions, newer], dim=-1)

    def kv(self) -> KV:
        if self.past is None:
            raise ValueError("nothing was appended yet")
        return self.past

    def append(self, newer: KV) -> "Growing":
        past = self.past
        if past is None:
            return Growing(newer)
        positions = None
        if past.positions is not None and newer.positions is not None:
            positions = self.positions_with(newer.positions)
        return Growing(KV(torch.cat([past.key, newer.key], 2), torch.cat([past.value, newer.value], 2), positions))

    def pick(self, rows: Int[Tensor, "R"]) -> "Growing":
        return Growing(None if self.past is None else self.past.pick(rows))


@dataclass(frozen=True)
class Fixed:
    """Room for `size` tokens a row, made at the first append. A row's next token goes behind its own last one.

    `kv` shows every row up to the end of the longest, without a copy: what stands there behind a shorter row is to be
    masked (`valid`). `append` and `put` write into the buffer that the old value shares, so only the newest may be
    used. Raises ValueError when the room is used up.
    """

    size: int
    buffer: KV | None = None
    length: int = 0  # of the longest row
    lengths: Int[Tensor, "B"] | None = None  # of each row; None: all are equally long

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return None if self.buffer is None else self.kv().positions

    def positions_with(self, newer: Int[Tensor, "b T"]) -> Int[Tensor, "b U"]:
        """`positions`, once tokens at these are appended: any number behind the end of a row."""
        if self.positions is None:
            return newer
        both = torch.cat([self.positions, newer], dim=-1)
        return both if self.lengths is None else both.index_put_(self._behind(newer.shape[1]), newer)

    def valid(self, more: int) -> Bool[Tensor, "B U"] | None:
        """Which keys are a row's own, once so many tokens are appended to each; None: all of them."""
        if self.lengths is None:
            return None
        return torch.arange(self.length + more, device=self.lengths.device) < self.lengths[:, None] + more

    def kv(self) -> KV:
        if self.buffer is None:
            raise ValueError("nothing was appended yet")
        key, value, positions = self.buffer
        places = None if positions is None else positions[:, : self.length]
        return KV(key[:, :, : self.length], value[:, :, : self.length], places)

    def append(self, newer: KV) -> "Fixed":
        T = newer.key.shape[2]
        end = self.length + T
        if end > self.size:
            raise ValueError(f"{end} tokens do not fit a cache of {self.size}")
        buffer = self.buffer or self._room(newer, len(newer.key))
        for own, part in zip(buffer, newer, strict=True):
            if own is None or part is None:
                continue
            if self.lengths is None:
                own.narrow(_places(own), self.length, T).copy_(part)
            else:
                own.movedim(_places(own), 1)[self._behind(T)] = part.movedim(_places(part), 1)
        return replace(self, buffer=buffer, length=end, lengths=None if self.lengths is None else self.lengths + T)

    def keep(self, length: int, lengths: Int[Tensor, "B"] | None) -> "Fixed":
        """The first `lengths` tokens of each row (None: `length` of every row), of which `length` are the most."""
        return replace(self, length=length, lengths=lengths)

    def pick(self, rows: Int[Tensor, "R"]) -> "Fixed":
        lengths = None if self.lengths is None else self.lengths[rows]
        if self.buffer is None:
            return replace(self, lengths=lengths)
        picked = self._room(self.buffer, len(rows))
        for made, part in zip(picked, self.kv().pick(rows), strict=True):
            if made is not None and part is not None:
                made.narrow(_places(made), 0, self.length).copy_(part)
        return replace(self, buffer=picked, lengths=lengths)

    def put(self, rows: Int[Tensor, "R"], newer: "Fixed") -> "Fixed":
        """The rows of `newer` in place of these. How long each row then is, `keep` is to be told."""
        if self.buffer is None:
            raise ValueError("nothing was appended yet")
        if newer.length > self.size:
            raise ValueError(f"{newer.length} tokens do not fit a cache of {self.size}")
        if newer.buffer is None:
            return self
        for own, part in zip(self.buffer, newer.buffer, strict=True):
            if own is not None and part is not None:
                own.narrow(_places(own), 0, newer.length)[rows] = part.narrow(_places(part), 0, newer.length)
        return self

    def _behind(self, T: int) -> tuple[Int[Tensor, "B 1"], Int[Tensor, "B T"]]:
        """The row and the place of the next T tokens of each row."""
        assert self.lengths is not None
        rows, more = (torch.arange(n, device=self.lengths.device) for n in (len(self.lengths), T))
        return rows[:, None], self.lengths[:, None] + more

    def _room(self, like: KV, rows: int) -> KV:
        """Zeros: what is masked must be finite all the same. Positions that many rows share stay one row."""

        def room(part: Tensor, rows: int) -> Tensor:
            size = [rows, *part.shape[1:]]
            size[_places(part)] = self.size
            return part.new_zeros(size)

        places = like.positions
        if places is not None:
            places = room(places, 1 if len(places) < len(like.key) else rows)
        return KV(room(like.key, rows), room(like.value, rows), places)


def _places(part: Tensor) -> int:
    """The dimension of keys, values or positions along which the tokens are."""
    return 1 if part.dim() == 2 else 2


@dataclass(frozen=True)
class BlockCache:
    """One block's memory: its own past, and the keys and values of the encoder's output, projected once."""

    past: Growing | Fixed
    memory: KV | None = None

    @property
    def fixed(self) -> Fixed:
        """`past`, whose rows may differ in length. Raises ValueError where it grows."""
        if isinstance(self.past, Growing):
            raise ValueError("rows of a growing cache are equally long: start with a size")
        return self.past

    def append(self, newer: KV) -> "BlockCache":
        return replace(self, past=self.past.append(newer))

    def pick(self, rows: Int[Tensor, "R"]) -> "BlockCache":
        return BlockCache(self.past.pick(rows), None if self.memory is None else self.memory.pick(rows))
