"""An episode: what was observed at each step, what was done then, and what it earned.

T steps, S numbers of an observation, A numbers of an action.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import NDArray

from heedful.data.lines import json_type
from heedful.errors import InputError

MOST_KINDS = 10_000  # of discrete observations or actions: a model has a row for each
PARTS = ("observations", "actions", "rewards")


@dataclass(frozen=True)
class Space:
    """What observations or actions are: whole numbers below `size`, or vectors of `size` numbers."""

    kind: Literal["discrete", "vector"]
    size: int

    def __str__(self) -> str:
        return f"{self.size:,} kinds" if self.kind == "discrete" else f"vectors of {self.size:,}"

    def holds(self, values: NDArray[Any]) -> bool:
        """Whether these are some of its observations or actions, one for each step."""
        if self.kind == "vector":
            return values.ndim == 2 and values.shape[1] == self.size
        return values.ndim == 1 and bool((values < self.size).all())


class Episode(NamedTuple):
    """`observations` (T) are whole numbers, or (T, S); so are `actions` (T) or (T, A); `rewards` (T). An
    unfinished episode has one observation more."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[numpy.float32]

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return: the sum of all rewards."""
        return float(self.rewards.sum(dtype=numpy.float64))

    @property
    def returns(self) -> NDArray[numpy.float32]:
        """The return to go at each step: the sum of the rewards from there to the end (T)."""
        return self.rewards[::-1].cumsum(dtype=numpy.float64)[::-1].astype(numpy.float32)

    @property
    def fingerprint(self) -> str:
        """A hash of all its numbers."""
        return sha256(b"".join(part.tobytes() for part in self)).hexdigest()


def parsed(value: object, where: str, *, unfinished: bool = False) -> Episode:
    """The episode in a JSON object. One more observation at the end, that after the last action, is left out, unless
    the episode is `unfinished`: then it must be there. Raises InputError."""
    if not isinstance(value, dict):
        fix = '{"observations": [...], "actions": [...], "rewards": [...]}'
        raise InputError(f"{json_type(value)}, expected an episode", where=where, fix=fix)
    begun = {"actions": [], "rewards": []} | value if unfinished else value
    if missing := [name for name in PARTS if name not in begun]:
        raise InputError(f"an episode without {missing[0]}", where=where, fix=f"give {', '.join(PARTS)}")
    return episode(*(begun[name] for name in PARTS), where=where, unfinished=unfinished)


def episode(observations: Any, actions: Any, rewards: Any, *, where: str, unfinished: bool = False) -> Episode:
    """An episode of lists or arrays. Raises InputError where they do not fit each other."""
    T = _length(rewards, "rewards", where)
    seen, done = _length(observations, "observations", where), _length(actions, "actions", where)
    if done != T or seen not in ((T + 1,) if unfinished else (T, T + 1)) or not (T or unfinished):
        what = f"{seen} observations, {done} actions and {T} rewards"
        fix = "one observation more, that of now" if unfinished else "one of each at every step"
        raise InputError(what, where=where, fix=fix)
    earned = _numbers(rewards, "rewards", where).astype(numpy.float32)
    if earned.ndim != 1:
        raise InputError("a reward is one number", where=where)
    observed = observations if unfinished else observations[:T]
    return Episode(_of_space(observed, "observations", where), _of_space(actions, "actions", where), earned)


def space_of(parts: Sequence[NDArray[Any]], what: str, where: str) -> Space:
    """The smallest space that holds all observations, or all actions, of episodes. Raises InputError where they are not
    alike."""
    first = parts[0]
    if any(part.shape[1:] != first.shape[1:] for part in parts):
        raise InputError(f"{what} of several kinds or sizes", where=where, fix="give episodes of one environment")
    if first.ndim == 2:
        return Space("vector", first.shape[1])
    return Space("discrete", 1 + max(int(part.max(initial=0)) for part in parts))


def _length(values: Any, name: str, where: str) -> int:
    if not isinstance(values, list | numpy.ndarray):
        raise InputError(f"{name}: {json_type(values)}, expected a list", where=where)
    return len(values)


def _numbers(values: Any, name: str, where: str) -> NDArray[Any]:
    try:
        numbers = numpy.asarray(values)
    except ValueError:
        raise InputError(f"{name} are not all of one size", where=where) from None
    if numbers.dtype.kind not in "iuf" or not numpy.isfinite(numbers).all():
        raise InputError(f"{name} are not all finite numbers", where=where)
    return numbers


def _of_space(values: Any, name: str, where: str) -> NDArray[Any]:
    """Whole numbers, one a step, or vectors."""
    numbers = _numbers(values, name, where)
    if numbers.ndim == 2 and numbers.shape[1]:
        return numbers.astype(numpy.float32)
    if not numbers.size:
        return numpy.zeros(0, dtype=numpy.int64)
    if numbers.ndim != 1 or numbers.dtype.kind == "f":
        what = "numbers with fractions, one a step" if numbers.ndim == 1 else f"arrays of {numbers.ndim - 1} dimensions"
        raise InputError(f"{name} are {what}", where=where, fix="give a whole number each, or a list of numbers each")
    if numbers.min() < 0 or numbers.max() >= MOST_KINDS:
        raise InputError(f"{name} must be from 0 to {MOST_KINDS - 1:,}", where=where, fix="number them from 0")
    return numbers.astype(numpy.int64)
