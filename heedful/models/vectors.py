"""Vectors of words: one row per word, and another for the word as a neighbour (Mikolov et al. 2013; Pennington et al.
2014, where both have a bias too). The losses are in the task.

B words, D width.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.embed import Table

Method = Literal["skipgram", "cbow", "glove"]


@dataclass(frozen=True, kw_only=True)
class VectorsConfig:
    vocab_size: int
    d_model: int
    method: Method = "skipgram"


@dataclass(frozen=True, kw_only=True)
class VectorsSize:
    """The width of the vectors, and how they are learnt."""

    d_model: int
    method: Method = "skipgram"


VECTORS: dict[str, VectorsSize] = {
    "vectors-100": VectorsSize(d_model=100),
    "vectors-300": VectorsSize(d_model=300),
}


def vectors_config(row: VectorsSize, *, vocab_size: int) -> VectorsConfig:
    return VectorsConfig(vocab_size=vocab_size, d_model=row.d_model, method=row.method)


class Vectors(nn.Module):
    """Initialized like word2vec: words small and uniform, contexts zero, so that every score is 0; for GloVe both
    small."""

    def __init__(self, config: VectorsConfig) -> None:
        super().__init__()
        self.config = config
        V, D = config.vocab_size, config.d_model
        glove = config.method == "glove"
        self.words, self.contexts = Table(V, D), Table(V, D)
        self.word_biases = nn.Parameter(torch.zeros(V)) if glove else None
        self.context_biases = nn.Parameter(torch.zeros(V)) if glove else None
        nn.init.uniform_(self.words.weight, -0.5 / D, 0.5 / D)
        if glove:
            nn.init.uniform_(self.contexts.weight, -0.5 / D, 0.5 / D)
        else:
            nn.init.zeros_(self.contexts.weight)

    def forward(self, words: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        """The vector of a word: its row; for GloVe the sum of both rows (Pennington et al. 2014, section 4.2)."""
        found = self.words(words)
        return found if self.word_biases is None else found + self.contexts(words)
