"""Episodes as batches: observations, actions and returns as a model reads them.

B episodes, T steps, S numbers of an observation, A actions or numbers of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from torch.nn.utils.rnn import pad_sequence

from heedful.data.episodes.environments import Begun
from heedful.data.episodes.episode import Episode, Space
from heedful.errors import InputError
from heedful.models.decision import DecisionTransformer


class Window(NamedTuple):
    """Some consecutive steps of an episode, of which `first` is the number of the first one."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    returns: NDArray[numpy.float32]
    first: int


class DecideBatch(NamedTuple):
    """What a Decision Transformer reads; `valid` is False for padding."""

    returns: Float[Tensor, "B T"]
    states: Float[Tensor, "B T S"]
    actions: Int[Tensor, "B T"] | Float[Tensor, "B T A"]
    steps: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]


@dataclass(frozen=True, kw_only=True)
class DecideSpec:
    """The content of task.json besides the task's name. Observations that are vectors are read as (x - mean) /
    deviation, returns divided by `scale`. `least` and `best` are the returns of the training episodes."""

    observations: Space
    actions: Space
    context: int = 20  # steps that are read at a time
    environment: str = ""
    least: float = 0.0
    best: float = 1.0
    scale: float = 1.0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.mean), len(self.deviation)}
        if sizes not in ({0}, {self.observations.size}) or 0.0 in self.deviation or not self.scale or not self.context:
            what = "a mean or deviation of another size than observations, or a scale or context of 0"
            raise InputError(what, where="task.json", fix="get the whole folder from its source")

    def states(self, observations: NDArray[Any]) -> Float[Tensor, "T S"]:
        """Raises InputError for observations of another kind or size."""
        if not self.observations.holds(observations):
            what = f"observations of another kind than the model reads, which are {self.observations}"
            raise InputError(what, fix="give those of the environment that it learnt in")
        values = torch.from_numpy(observations)
        if self.observations.kind == "discrete":
            return one_hot(values, self.observations.size).float()
        if not self.mean:
            return values
        return (values - torch.tensor(self.mean)) / torch.tensor(self.deviation)

    def batch(self, windows: Sequence[Window]) -> DecideBatch:
        """Raises InputError for actions of another kind or size."""
        if not all(self.actions.holds(window.actions) for window in windows):
            raise InputError(f"actions of another kind than the model's, which are {self.actions}")
        rows = [
            (
                torch.from_numpy(window.returns / self.scale),
                self.states(window.observations),
                torch.from_numpy(window.actions),
                torch.arange(window.first, window.first + len(window.returns)),
                torch.ones(len(window.returns), dtype=torch.bool),
            )
            for window in windows
        ]
        return DecideBatch(*(pad_sequence(list(part), batch_first=True) for part in zip(*rows, strict=True)))

    def now(self, begun: Begun) -> Window:
        """The last steps of an unfinished episode; the action that is to be chosen is a zero, which is not read."""
        T = len(begun.observations)
        first = max(0, T - self.context)
        earned = numpy.concatenate([[0.0], numpy.cumsum(begun.rewards)])
        returns = (begun.asked - earned)[first:].astype(numpy.float32)
        if self.actions.kind == "discrete":
            actions = numpy.array([*begun.actions[first:], 0], dtype=numpy.int64)
        else:
            zero = numpy.zeros(self.actions.size)
            actions = numpy.array([*begun.actions[first:], zero], dtype=numpy.float32)
        kind = numpy.int64 if self.observations.kind == "discrete" else numpy.float32
        return Window(numpy.array(begun.observations[first:], dtype=kind), actions, returns, first)


def windows(episode: Episode, context: int, offset: int = 0) -> list[Window]:
    """Cuts an episode into windows of at most `context` steps, the first of which has `offset` steps (0: `context`)."""
    cuts = [0, *range(offset or context, len(episode), context), len(episode)]
    returns = episode.returns
    return [
        Window(episode.observations[first:last], episode.actions[first:last], returns[first:last], first)
        for first, last in pairwise(cuts)
    ]


def predict(model: DecisionTransformer, batch: DecideBatch) -> Float[Tensor, "B T A"]:
    """What the model says of each step, in float32, on its device."""
    like = model.norm.weight  # which stays a float where linear maps have fewer bits
    return model(*(part.to(like if part.is_floating_point() else like.device) for part in batch)).float()


def step_losses(predicted: Float[Tensor, "B T A"], batch: DecideBatch) -> Float[Tensor, "N"]:
    """The loss at each step that is not padding: the cross-entropy of an action, or the squared error of its numbers,
    averaged over them (Chen et al. 2021, section 3)."""
    valid = batch.valid.to(predicted.device)
    chosen, wanted = predicted[valid], batch.actions.to(predicted.device)[valid]
    if wanted.is_floating_point():
        return (chosen - wanted).square().mean(-1)
    return cross_entropy(chosen, wanted, reduction="none")
