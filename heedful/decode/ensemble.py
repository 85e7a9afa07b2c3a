"""Several models that search as one: at each step the mean of their probabilities (Sutskever et al. 2014, section 3.6).

R rows, V vocabulary, M models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.contract import Generator, State


@dataclass(frozen=True)
class EnsembleState:
    """The state of each model."""

    states: tuple[State, ...]

    def pick(self, rows: Int[Tensor, "R"]) -> "EnsembleState":
        return EnsembleState(tuple(state.pick(rows) for state in self.states))


@dataclass(frozen=True)
class Ensemble:
    """Models with the same vocabulary, as one."""

    models: Sequence[Generator[Any]]

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> EnsembleState:
        return EnsembleState(tuple(model.start(source, segments) for model in self.models))

    def step(self, tokens: Int[Tensor, "R"], state: EnsembleState) -> tuple[Float[Tensor, "R V"], EnsembleState]:
        """The logarithm of the mean probability of each next token."""
        made = [model.step(tokens, own) for model, own in zip(self.models, state.states, strict=True)]
        each = torch.stack([logits.float().log_softmax(-1) for logits, _ in made])
        return each.logsumexp(0) - math.log(len(made)), EnsembleState(tuple(own for _, own in made))
