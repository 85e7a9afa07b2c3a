"""Small environments that need nothing installed. What happens in an episode depends only on its seed and its actions.

Each returns its first observation from `reset`, and from `step` the next one, the reward, and whether the episode ends.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from heedful.core.seeds import random_stream
from heedful.data.episodes.episode import Space

Numbers = list[float]
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class KeyToDoor:
    """Three square rooms, a fixed number of steps in each: the first has a key, the last a door, and reaching the door
    earns 1 if the key was taken (Mesnard et al. 2021; Chen et al. 2021, section 5.5). Whether it was cannot be seen in
    later rooms. Who leaves a room's grid on one side comes in on the other. What is seen: which room it is, whether
    there is a key or door, how many rows and columns away it is, and the own row and column."""

    SIDE: ClassVar = 3
    STEPS: ClassVar = (5, 1, 5)  # in each room
    observations = Space("vector", len(STEPS) + 5)
    actions = Space("discrete", len(MOVES))
    longest = sum(STEPS)

    def reset(self, seed: int) -> Numbers:
        self.draw, self.has_key, self.left = random_stream("key-to-door", seed), False, list(self.STEPS)
        self._enter()
        return self._seen()

    def _enter(self) -> None:
        self.cell, self.thing = self.draw.sample(range(self.SIDE**2), 2)

    @property
    def room(self) -> int:
        return len(self.STEPS) - len(self.left)

    def step(self, action: int) -> tuple[Numbers, float, bool]:
        down, right = MOVES[action]
        row, column = divmod(self.cell, self.SIDE)
        self.cell = (row + down) % self.SIDE * self.SIDE + (column + right) % self.SIDE
        there = self.cell == self.thing
        if there and self.room == 2:
            return self._seen(), float(self.has_key), True
        self.has_key |= there and self.room == 0
        self.left[0] -= 1
        if not self.left[0]:
            self.left.pop(0)
            if not self.left:
                self.left = [0]
                return self._seen(), 0.0, True
            self._enter()
        return self._seen(), 0.0, False

    def _seen(self) -> Numbers:
        there = self.room == 2 or (self.room == 0 and not self.has_key)
        rooms = [float(self.room == number) for number in range(len(self.STEPS))]
        here, half = divmod(self.cell, self.SIDE), self.SIDE // 2
        ways = zip(divmod(self.thing, self.SIDE), here, strict=True)  # the shorter ones
        away = [(thing - place + half) % self.SIDE - half if there else 0 for thing, place in ways]
        return [*rooms, *map(float, (there, *away, *here))]


class Graph:
    """A directed graph of 20 nodes with three ways out of each: a step costs 1, and to reach the goal, node 0, ends the
    episode (Chen et al. 2021, figure 2). It costs as much again as the longest way never to reach it."""

    NODES: ClassVar = 20
    observations = Space("discrete", NODES)
    actions = Space("discrete", 3)
    longest = 12

    def __init__(self) -> None:
        draw = random_stream("graph", 0)
        # The first way leads around all nodes, so that the goal can be reached from each.
        self.ways = [
            [(node + 1) % self.NODES, *draw.sample(range(self.NODES), self.actions.size - 1)]
            for node in range(self.NODES)
        ]

    def reset(self, seed: int) -> int:
        self.node, self.taken = random_stream("graph", seed).randrange(1, self.NODES), 0
        return self.node

    def step(self, action: int) -> tuple[int, float, bool]:
        self.node, self.taken = self.ways[self.node][action], self.taken + 1
        late = self.taken == self.longest and self.node != 0
        return self.node, -1.0 - self.longest * late, late or self.node == 0


class BanditWalk:
    """Six steps, at each of which the first action earns 0.4, and the second 1 in one of five times and nothing
    otherwise. Luck explains the best returns, so they cannot be had by asking for them."""

    SURE: ClassVar = 0.4
    CHANCE: ClassVar = 0.2
    observations = Space("discrete", 6)
    actions = Space("discrete", 2)
    longest = 6

    def reset(self, seed: int) -> int:
        self.draw, self.place = random_stream("bandit-walk", seed), 0
        return self.place

    def step(self, action: int) -> tuple[int, float, bool]:
        lucky = self.draw.random() < self.CHANCE
        self.place += 1
        return min(self.place, self.longest - 1), (self.SURE, float(lucky))[action], self.place == self.longest


WALKS: Mapping[str, Callable[[], "KeyToDoor | Graph | BanditWalk"]] = {
    "key-to-door": KeyToDoor,
    "graph": Graph,
    "bandit-walk": BanditWalk,
}
