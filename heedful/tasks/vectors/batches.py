"""Batches of running text for skip-gram and CBOW, and of counted pairs for GloVe.

A row is `BLOCK` words that follow each other, and the words around them: so what is near is a band of one product of
matrices, and each vector is fetched once for all pairs that it is in. A row has words of its own that are drawn against
all of its pairs, as Ji et al. 2016 (section III) share them, each counting for what it stands for.

B rows, P words of a row, W words around them too, K drawn words, N numbers of a text, V words.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, overload

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.seeds import counter_seed
from heedful.tasks.vectors.words import GAP, Cooccurrences

Batch = TypeVar("Batch")
BLOCK = 64  # words of a row
DRAWN = 64  # words that are drawn for a row


class WindowBatch(NamedTuple):
    words: Int[Tensor, "B W"]  # GAP where there is none
    reach: Int[Tensor, "B P"]  # how far each word of the middle looks
    drawn: Int[Tensor, "B K"]

    @property
    def window(self) -> int:
        """How many words stand on either side of the middle."""
        return (self.words.shape[1] - self.reach.shape[1]) // 2

    def middle(self, of: Tensor) -> Tensor:
        """What tells something of each word, of the middle alone."""
        return of[:, self.window : self.window + self.reach.shape[1]]


class WordPairBatch(NamedTuple):
    words: Int[Tensor, "B"]
    contexts: Int[Tensor, "B"]
    counts: Float[Tensor, "B"]


class Batches(Sequence[Batch], ABC):
    """Those of an epoch: rows in an `order`, so many (`size`) at a time."""

    order: Int[Tensor, "R"]
    size: int

    @abstractmethod
    def batch(self, number: int, rows: Int[Tensor, "B"]) -> Batch:
        """That of this number, which has these rows."""

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.batch(index, self.order[self.size * index : self.size * (index + 1)])


class WindowBatches(Batches[WindowBatch]):
    """Those of an epoch: a text of which frequent words are left out at random, cut into rows, which come in another
    order each time. Everything random belongs to (seed, epoch, batch)."""

    def __init__(
        self,
        stream: Int[Tensor, "N"],
        kept: Float[Tensor, "V"],
        drawn: Float[Tensor, "V"],
        *,
        window: int,
        rows: int,
        key: tuple[int, int],
    ) -> None:
        generator = self._generator(key, "text")
        stays = torch.rand(len(stream), generator=generator) < kept[stream.long()]  # a gap reads the last word's share
        text = stream[stays | (stream == GAP)]
        text = F.pad(text, (window, window + -len(text) % BLOCK), value=GAP)
        self.rows = text.unfold(0, BLOCK + 2 * window, BLOCK)
        self.order = torch.randperm(len(self.rows), generator=generator)
        self.drawn, self.window, self.size, self.key = drawn, window, rows, key

    @staticmethod
    def _generator(key: tuple[int, int], what: object) -> torch.Generator:
        return torch.Generator().manual_seed(counter_seed(*key, what))

    def batch(self, number: int, rows: Int[Tensor, "B"]) -> WindowBatch:
        generator = self._generator(self.key, number)
        reach = torch.randint(1, self.window + 1, (len(rows), BLOCK), generator=generator)
        at = torch.rand(len(rows), DRAWN, generator=generator, dtype=self.drawn.dtype)
        drawn = torch.searchsorted(self.drawn, at).clamp(max=len(self.drawn) - 1)
        return WindowBatch(self.rows[rows].long(), reach, drawn)


class PairBatches(Batches[WordPairBatch]):
    """All pairs, in another order each epoch."""

    def __init__(self, pairs: Cooccurrences, *, rows: int, key: tuple[int, int]) -> None:
        generator = torch.Generator().manual_seed(counter_seed(*key, "pairs"))
        self.pairs, self.size = pairs, rows
        self.order = torch.randperm(len(pairs.words), generator=generator)

    def batch(self, number: int, rows: Int[Tensor, "B"]) -> WordPairBatch:
        return WordPairBatch(self.pairs.words[rows], self.pairs.contexts[rows], self.pairs.counts[rows])
