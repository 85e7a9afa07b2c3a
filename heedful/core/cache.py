"""What a block remembers between decoding steps.

A cache is a value: `append` and `pick` hand a new one back, and nobody keeps the old one. `Growing` joins
tensors and suits outputs up to about 2,000 tokens. `Fixed` writes into a buffer made once, so that a long
output costs the same memory at every step.

B batch, S tokens so far, T new tokens, G key heads, D head width.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.core.attention import KV


@dataclass(frozen=True)
class Growing:
    past: KV | None = None

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return None if self.past is None else self.past.positions

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
            shared = newer.positions.expand(len(past.positions), -1)  # of one row, which is a row's own once picked
            positions = torch.cat([past.positions, shared], dim=-1)
        return Growing(KV(torch.cat([past.key, newer.key], 2), torch.cat([past.value, newer.value], 2), positions))

    def pick(self, rows: Int[Tensor, "R"]) -> "Growing":
        return Growing(None if self.past is None else self.past.pick(rows))


@dataclass(frozen=True)
class Fixed:
    """Room for `size` tokens, made at the first append. Appending writes into the buffer that the old value shares,
    so only the newest may be used. Raises ValueError when the room is used up."""

    size: int
    buffer: KV | None = None
    length: int = 0

    @property
    def positions(self) -> Int[Tensor, "b S"] | None:
        return None if self.buffer is None else self.kv().positions

    def kv(self) -> KV:
        if self.buffer is None:
            raise ValueError("nothing was appended yet")
        key, value, positions = self.buffer
        places = None if positions is None else positions[:, : self.length]
        return KV(key[:, :, : self.length], value[:, :, : self.length], places)

    def append(self, newer: KV) -> "Fixed":
        end = self.length + newer.key.shape[2]
        if end > self.size:
            raise ValueError(f"{end} tokens do not fit a cache of {self.size}")
        buffer = self.buffer or KV(*(None if part is None else self._room(part) for part in newer))  # type: ignore[arg-type]
        buffer.key[:, :, self.length : end] = newer.key
        buffer.value[:, :, self.length : end] = newer.value
        if buffer.positions is not None and newer.positions is not None:
            buffer.positions[:, self.length : end] = newer.positions
        return replace(self, buffer=buffer, length=end)

    def pick(self, rows: Int[Tensor, "R"]) -> "Fixed":
        return replace(self, buffer=None if self.buffer is None else self.buffer.pick(rows))

    def _room(self, part: Tensor) -> Tensor:
        if part.dim() == 2:  # positions
            return part.new_zeros(part.shape[0], self.size)
        return part.new_zeros(*part.shape[:2], self.size, part.shape[3])


@dataclass(frozen=True)
class BlockCache:
    """One block's memory: its own past, and the keys and values of the encoder's output, projected once."""

    past: Growing | Fixed
    memory: KV | None = None

    def append(self, newer: KV) -> "BlockCache":
        return replace(self, past=self.past.append(newer))

    def pick(self, rows: Int[Tensor, "R"]) -> "BlockCache":
        return BlockCache(self.past.pick(rows), None if self.memory is None else self.memory.pick(rows))
