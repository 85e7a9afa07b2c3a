"""Environments by their names: those of `heedful.data.episodes.walks`, and gymnasium's where that is installed."""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, runtime_checkable

import numpy

from heedful.core.seeds import random_stream
from heedful.data.episodes.episode import Episode, Space, episode
from heedful.data.episodes.walks import WALKS
from heedful.errors import InputError, MissingError

GYMNASIUM = re.compile(r"[\w-]{1,80}-v\d{1,4}")  # without a module, which would be imported, and a namespace
STEPS = 1000  # of an environment that sets no limit
NAMES = (*WALKS, "CartPole-v1", "Acrobot-v1")  # for messages


@runtime_checkable
class Environment(Protocol):
    observations: Space
    actions: Space
    longest: int  # steps of an episode

    def reset(self, seed: int) -> Any:
        """The first observation of the episode with this seed."""

    def step(self, action: Any) -> tuple[Any, float, bool]:
        """The next observation, the reward, and whether the episode ends."""


@dataclass
class Begun:
    """An episode so far, with the observation of now, and the return that is asked for."""

    observations: list[Any]
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    asked: float = 0.0


Chooser = Callable[[Sequence[Begun]], Sequence[Any]]  # an action for each


def is_environment(name: str) -> bool:
    """Whether it is the name of an environment, and not of a file."""
    return name in WALKS or GYMNASIUM.fullmatch(name) is not None


def environment(name: str) -> Environment:
    """Raises InputError for a name that no environment has, MissingError where gymnasium is not installed."""
    if name in WALKS:
        return WALKS[name]()
    if not GYMNASIUM.fullmatch(name):
        raise InputError(f"no environment is called {name[:80]!r}", fix=f"name one such as {', '.join(NAMES)}")
    return Gymnasium(name)


def play(name: str, seeds: Sequence[int], choose: Chooser, *, asked: float = 0.0) -> list[Episode]:
    """Plays an episode for each seed, all at the same time; a seed gives the same episode whatever else is played."""
    worlds = [environment(name) for _ in seeds]
    begun = [Begun([world.reset(seed)], asked=asked) for world, seed in zip(worlds, seeds, strict=True)]
    going = list(range(len(worlds)))
    while going:
        actions, still = choose([begun[number] for number in going]), []
        for number, action in zip(going, actions, strict=True):
            now = begun[number]
            observation, reward, ends = worlds[number].step(action)
            now.actions.append(action)
            now.rewards.append(reward)
            now.observations.append(observation)
            if not ends and len(now.rewards) < worlds[number].longest:
                still.append(number)
        going = still
    return [episode(now.observations, now.actions, now.rewards, where=name) for now in begun]


def random_episodes(name: str, seeds: Sequence[int]) -> list[Episode]:
    """Plays an episode of random actions for each seed."""
    world = environment(name)

    def walk(seed: int) -> Episode:
        draw = random_stream("random actions", name, seed)
        return play(name, [seed], lambda begun: [_random_action(world, draw)])[0]

    return [walk(seed) for seed in seeds]


def _random_action(world: Environment, draw: Random) -> Any:
    if isinstance(world, Gymnasium) and world.bounds is not None:
        return [draw.uniform(low, high) for low, high in zip(*world.bounds, strict=True)]
    return draw.randrange(world.actions.size)


class Gymnasium:
    """An environment of gymnasium's registry. Observations are vectors or whole numbers, and so are actions; those that
    leave their bounds are set to these."""

    def __init__(self, name: str) -> None:
        try:
            import gymnasium
        except ImportError:
            raise MissingError("gymnasium is not installed", where=name, fix="pip install gymnasium") from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of environments that have a newer version
                self.env = gymnasium.make(name)
        except gymnasium.error.Error as error:
            raise InputError(" ".join(str(error).split()), where=name, fix="see gymnasium.pprint_registry()") from None
        self.observations = _space(self.env.observation_space, "observations", name)
        self.actions = _space(self.env.action_space, "actions", name)
        self.longest = (self.env.spec and self.env.spec.max_episode_steps) or STEPS
        self.bounds: tuple[list[float], list[float]] | None = None
        if self.actions.kind == "vector":
            space: Any = self.env.action_space
            low, high = numpy.nan_to_num([space.low, space.high], posinf=1.0, neginf=-1.0)
            self.bounds = low.tolist(), high.tolist()

    def reset(self, seed: int) -> Any:
        return self._plain(self.env.reset(seed=seed % 2**32)[0])

    def step(self, action: Any) -> tuple[Any, float, bool]:
        space: Any = self.env.action_space
        if self.bounds is not None:
            given = numpy.clip(numpy.asarray(action, dtype=space.dtype), space.low, space.high)
        else:
            given = int(space.start) + int(action)
        observation, reward, ended, cut, _ = self.env.step(given)
        return self._plain(observation), float(reward), bool(ended or cut)

    def _plain(self, observation: Any) -> Any:
        if self.observations.kind == "vector":
            return observation.tolist()
        start: Any = self.env.observation_space
        return int(observation) - int(start.start)


def _space(space: Any, what: str, name: str) -> Space:
    kind = type(space).__name__
    if kind == "Discrete":
        return Space("discrete", int(space.n))
    if kind == "Box" and len(space.shape) == 1:
        return Space("vector", int(space.shape[0]))
    raise InputError(f"{what} of {space}, and vectors or whole numbers can be read", where=name)
