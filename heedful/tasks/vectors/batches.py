"""Batches of running text for skip-gram and CBOW, and of counted pairs for GloVe.

A row is `BLOCK` consecutive words and the words around them, so that the pairs in the window are a band of one matrix
product, and each vector is read once for all its pairs. The negative samples of a row are shared by all its pairs, as
in Ji et al. 2016 (section III), and weighted accordingly.

B rows, P words of a row, W words with those around them, K negative samples, N numbers of a text, V words.
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
DRAWN = 64  # negative samples per row


class WindowBatch(NamedTuple):
    words: Int[Tensor, "B W"]  # GAP where there is none
    reach: Int[Tensor, "B P"]  # the window of each word of the middle
    drawn: Int[Tensor, "B K"]

    @property
    def window(self) -> int:
        """The number of words on either side of the middle."""
        return (self.words.shape[1] - self.reach.shape[1]) // 2

    def middle(self, of: Tensor) -> Tensor:
        """The columns of a tensor with an entry per word that belong to the middle."""
        return of[:, self.window : self.window + self.reach.shape[1]]


class WordPairBatch(NamedTuple):
    words: Int[Tensor, "B"]
    contexts: Int[Tensor, "B"]
    counts: Float[Tensor, "B"]


class Batches(Sequence[Batch], ABC):
    """The batches of an epoch: `size` rows each, in this `order`."""

    order: Int[Tensor, "R"]
    size: int

    @abstractmethod
    def batch(self, number: int, rows: Int[Tensor, "B"]) -> Batch:
        """The batch with this number, of these rows."""

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
    """The batches of an epoch: a text, without some of the frequent words (subsampling), cut into rows, in a new order
    each time. All randomness is seeded by (seed, epoch, batch)."""

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
        stays = torch.rand(len(stream), generator=generator) < kept[stream.long()]  # a gap (-1) reads the last share
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
    """Batches of all pairs, in a new order in each epoch."""

    def __init__(self, pairs: Cooccurrences, *, rows: int, key: tuple[int, int]) -> None:
        generator = torch.Generator().manual_seed(counter_seed(*key, "pairs"))
        self.pairs, self.size = pairs, rows
        self.order = torch.randperm(len(pairs.words), generator=generator)

    def batch(self, number: int, rows: Int[Tensor, "B"]) -> WordPairBatch:
        return WordPairBatch(self.pairs.words[rows], self.pairs.contexts[rows], self.pairs.counts[rows])
