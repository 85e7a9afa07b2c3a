"""Running text as word numbers, and which words occur near each other.

N numbers of a text, with gaps between its lines, V words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.lines import composed
from heedful.data.parts import some_of
from heedful.errors import InputError

LETTERS = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)*")
GAP = -1  # between lines: near no word
STRETCH = 2000  # consecutive words that are kept together where only a part of a text is used
WordsAre = Literal["letters", "blanks"]


@dataclass(frozen=True)
class Splitting:
    """How a text is split into words, and whether it is composed before (Unicode's NFC)."""

    words: WordsAre
    lower: bool
    composes: bool = True

    def __call__(self, line: str) -> list[str]:
        line = composed(line) if self.composes else line
        line = line.lower() if self.lower else line
        return line.split() if self.words == "blanks" else LETTERS.findall(line)

    def lines(self, documents: Iterable[str]) -> Iterator[list[str]]:
        """The words of each line that has any."""
        for text in documents:
            yield from (words for line in text.split("\n") if (words := self(line)))


def count_words(documents: Iterable[str], splitting: Splitting, *, least: int) -> dict[str, int]:
    """The counts of the words that occur `least` times or more, the most frequent first. Raises InputError where there
    are fewer than two."""
    counts = Counter(word for words in splitting.lines(documents) for word in words)
    kept = {word: n for word, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= least}
    if len(kept) < 2:
        what = f"{len(kept)} words occur {least} times or more"
        raise InputError(what, fix="give more text, or --set data.min_count=1")
    return kept


def numbered(
    documents: Iterable[str], splitting: Splitting, numbers: Mapping[str, int], *, gap: int
) -> Int[Tensor, "N"]:
    """The numbers of the words that have one, line after line, with `gap` gaps after each line."""
    made: list[int] = []
    for words in splitting.lines(documents):
        made += [numbers[word] for word in words if word in numbers]
        made += [GAP] * gap
    return torch.tensor(made, dtype=torch.int32)


def some_of_stream(stream: Int[Tensor, "N"], most: int, *, gap: int) -> Int[Tensor, "M"]:
    """At most about `most` numbers of a longer text, in evenly spread stretches, with `gap` gaps after each."""
    if len(stream) <= most:
        return stream
    stretches = stream.unfold(0, STRETCH, STRETCH)
    chosen = stretches[some_of(len(stretches), most // STRETCH)]
    return torch.nn.functional.pad(chosen, (0, gap), value=GAP).flatten()


def kept_shares(counts: Int[Tensor, "V"], threshold: float) -> Float[Tensor, "V"]:
    """The probability of keeping each word: sqrt(t / f) + t / f for a word of frequency f, as in word2vec's code;
    Mikolov et al. 2013 (equation 5) have only the first term."""
    if not threshold:
        return torch.ones(len(counts))
    share = threshold * counts.sum() / counts.double()
    return (share.sqrt() + share).clamp(max=1).float()


@dataclass(frozen=True)
class Cooccurrences:
    """The weighted counts of pairs of words: 1 for neighbours, 1/2 for words two apart, and so on (Pennington et al.
    2014, section 4.2). Pairs are in both orders."""

    words: Int[Tensor, "P"]
    contexts: Int[Tensor, "P"]
    counts: Float[Tensor, "P"]


def near_pairs(stream: Int[Tensor, "N"], size: int, window: int) -> Cooccurrences:
    """Counts the pairs of a text whose gaps are at least as long as the window."""
    numbers = stream.numpy().astype(numpy.int64)
    keys, sums = numpy.zeros(0, numpy.int64), numpy.zeros(0)
    for apart in range(1, window + 1):
        left, right = numbers[:-apart], numbers[apart:]
        real = (left != GAP) & (right != GAP)
        found, times = numpy.unique(left[real] * size + right[real], return_counts=True)
        keys, sums = _merged(keys, sums, found, times / apart)
    flipped = keys % size * size + keys // size
    keys, sums = _merged(keys, sums, flipped, sums)
    words, contexts = (torch.from_numpy(part) for part in (keys // size, keys % size))
    return Cooccurrences(words, contexts, torch.from_numpy(sums).float())


def _merged(
    keys: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
    more: NDArray[numpy.int64],
    added: NDArray[numpy.float64],
) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]:
    """The union of the keys, sorted, and their sums."""
    found, where = numpy.unique(numpy.concatenate([keys, more]), return_inverse=True)
    weights = numpy.concatenate([sums, added]).astype(numpy.float64)
    return found, numpy.bincount(where, weights=weights, minlength=len(found)).astype(numpy.float64)
