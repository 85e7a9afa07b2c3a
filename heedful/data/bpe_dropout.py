"""A text cut otherwise each time: BPE that leaves out merges at random (Provilkov et al. 2020, algorithm 1).

What `tokenizers` offers of this draws from a generator of each thread, which cannot be seeded. Here the draws are the
caller's, so that a training that continues reads what it would have read.
"""

import random
from itertools import pairwise

from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError

Word = tuple[int, ...]

MOST = 1 << 20  # merges that are remembered, of words as they are cut


class BPEDropout:
    """Encodes as the tokenizer does, but at each step every merge that is possible is left out with the probability
    `share`; where none is left, the word stays as it is."""

    def __init__(self, tokenizer: Tokenizer, share: float) -> None:
        """Raises InputError for a tokenizer that does not merge pairs, or was not made here."""
        merges = tokenizer.merges
        if not merges:
            what = "only a BPE vocabulary that was made here can leave out merges"
            raise InputError(what, where="data.bpe_dropout", fix="--set data.tokenizer=bpe, or data.bpe_dropout=0")
        self.tokenizer, self.share = tokenizer, share
        self._merged = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(merges)}
        self._possible: dict[Word, list[tuple[int, int]]] = {}
        self._held = 0

    def encode(self, text: str, draw: random.Random) -> list[int]:
        """The ids of a text, without BOS and EOS."""
        ids: list[int] = []
        for word in self.tokenizer.unmerged(text):
            while merge := next((one for one in self._merges_of(word) if draw.random() >= self.share), None):
                at, made = merge
                word = (*word[:at], made, *word[at + 2 :])
            ids += word
        return ids

    def _merges_of(self, word: Word) -> list[tuple[int, int]]:
        """Where two tokens of a word can be merged, and what they become, the merge that was learnt first first."""
        found = self._possible.get(word)
        if found is None:
            pairs = ((self._merged.get(pair), at) for at, pair in enumerate(pairwise(word)))
            ranked = sorted((merge, at) for merge, at in pairs if merge is not None)
            found = [(at, made) for (_, made), at in ranked]
            self._held += len(word)
            if self._held > MOST:
                self._possible, self._held = {}, len(word)
            self._possible[word] = found
        return found
