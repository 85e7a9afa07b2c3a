"""BPE dropout: merges are left out at random, so that a text is segmented differently each time (Provilkov et al. 2020,
algorithm 1).

The dropout of `tokenizers` uses one generator per thread, which cannot be seeded. Here the caller passes the generator,
so that a resumed training reads the same tokens as an uninterrupted one.
"""

import random
from itertools import pairwise

from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError

Word = tuple[int, ...]

MOST = 1 << 20  # tokens of the words whose possible merges are cached


class BPEDropout:
    """Encodes as the tokenizer does, but at each step every possible merge is left out with the probability `share`;
    when all are left out, the word stays as it is."""

    def __init__(self, tokenizer: Tokenizer, share: float) -> None:
        """Raises InputError for a tokenizer that is not BPE, or was not trained here."""
        merges = tokenizer.merges
        if not merges:
            what = "only a BPE vocabulary that was made here can leave out merges"
            raise InputError(what, where="data.bpe_dropout", fix="--set data.tokenizer=bpe, or data.bpe_dropout=0")
        self.tokenizer, self.share = tokenizer, share
        self._merged = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(merges)}
        self._possible: dict[Word, list[tuple[int, int]]] = {}
        self._held = 0

    def encode(self, text: str, draw: random.Random) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        ids: list[int] = []
        for word in self.tokenizer.unmerged(text):
            while merge := next((one for one in self._merges_of(word) if draw.random() >= self.share), None):
                at, made = merge
                word = (*word[:at], made, *word[at + 2 :])
            ids += word
        return ids

    def _merges_of(self, word: Word) -> list[tuple[int, int]]:
        """Returns where two tokens of a word can be merged, and the result, in the order in which the merges were
        learnt."""
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
