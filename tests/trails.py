"""A toy model that moves in a table, one step per token: the next logits depend on the whole history, and are easily
computed in plain Python.

Sizes: B sentences, S source length, R rows, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from heedful.decode.contract import Hypothesis

PAD, BOS, EOS = 0, 1, 2
PLACES = 1009  # a prime
Told = tuple[int, ...]


@dataclass
class Trail:
    """The state of a toy: the table row and the sentence of each row of the batch, and the number of steps."""

    place: Tensor
    sentence: Tensor
    steps: int = 0

    def pick(self, rows: Tensor) -> "Trail":
        return Trail(self.place[rows], self.sentence[rows], self.steps)


@dataclass
class Toy:
    """A model that moves in a `table` (PLACES, V) of logits, one step per token; `seen` has the rows of each step."""

    table: Tensor
    seen: list[list[int]] = field(default_factory=list)

    def start(self, source: Tensor, segments: Tensor | None) -> Trail:
        self.seen = []
        words = source if segments is None else source * (segments > 0)
        return Trail((words.sum(1) * 31) % PLACES, torch.arange(len(source)))

    def step(self, tokens: Tensor, state: Trail) -> tuple[Tensor, Trail]:
        assert tokens.shape == state.place.shape
        sentences = state.sentence.tolist()
        assert sentences == sorted(sentences), "the rows of a sentence are side by side"
        self.seen.append(sentences)
        place = (state.place * 37 + tokens * 101 + 7) % PLACES
        return self.table[place], Trail(place, state.sentence, state.steps + 1)

    def log_probabilities(self, source: Sequence[int], history: Sequence[int]) -> list[float]:
        place = sum(source) * 31 % PLACES
        for token in (BOS, *history):
            place = (place * 37 + token * 101 + 7) % PLACES
        return self.table[place].log_softmax(-1).tolist()


def toy(V: int = 8, loud: float = 2.0, end: float = 0.0) -> Toy:
    table = torch.randn(PLACES, V, generator=torch.Generator().manual_seed(V)) * loud
    table[:, EOS] += end
    return Toy(table)


def sources(B: int) -> Tensor:
    return torch.arange(3 * B).view(B, 3) * 5


def check_scores(model: Toy, source: Sequence[int], found: Hypothesis, alpha: float) -> None:
    """The scores of `found` are the model's own."""
    spoken = (*found.tokens, EOS) if found.finished else found.tokens
    own = [model.log_probabilities(source, spoken[:i])[token] for i, token in enumerate(spoken)]
    assert found.token_log_probabilities == pytest.approx(own, abs=1e-5)
    assert found.log_probability == pytest.approx(sum(own), abs=1e-5)
    assert found.score == pytest.approx(sum(own) / len(own) ** alpha, abs=1e-5)
