"""A Decision Transformer that was only trained on random walks finds short paths when asked for them (Chen et al. 2021,
section 3, figure 2)."""

from functools import cache
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from heedful.core import AttentionConfig, BlockConfig, StackConfig
from heedful.lab.drawn import bars
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.learning import learn
from heedful.models.decision import TOKENS, DecisionTransformer, DecisionTransformerConfig

SIDE, LONGEST, STEPS = 4, 12, 300
GOAL = SIDE * SIDE - 1
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def moved(cell: int, action: int) -> int:
    """The cell after a step on a square grid; steps off the grid stay in the cell."""
    row, column = cell // SIDE + MOVES[action][0], cell % SIDE + MOVES[action][1]
    return row * SIDE + column if 0 <= row < SIDE and 0 <= column < SIDE else cell


class Walks(NamedTuple):
    """Returns to go (each step costs 1) over LONGEST; cells; actions; and which steps are valid: all (B, T)."""

    returns: Tensor
    cells: Tensor
    actions: Tensor
    valid: Tensor


def walks(draw: Random, count: int) -> Walks:
    """Random walks from random cells, until the goal or the last step."""
    rows = []
    for _ in range(count):
        cell = draw.randrange(GOAL)
        cells: list[int] = []
        actions: list[int] = []
        while len(cells) < LONGEST and cell != GOAL:
            cells.append(cell)
            actions.append(draw.randrange(len(MOVES)))
            cell = moved(cell, actions[-1])
        cost = len(cells) if cell == GOAL else 2 * LONGEST  # if it never arrives, the worst return
        pad = LONGEST - len(cells)
        rows.append(
            (
                [-(cost - at) for at in range(len(cells))] + [0] * pad,
                cells + [0] * pad,
                actions + [0] * pad,
                [True] * len(cells) + [False] * pad,
            )
        )
    returns, cells_, actions_, valid = (torch.tensor(part) for part in zip(*rows, strict=True))
    return Walks(returns / LONGEST, cells_, actions_, valid)


@cache
def learnt(steps: int) -> DecisionTransformer:
    torch.manual_seed(0)
    block = BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=128, order="pre", activation="gelu")
    stack = StackConfig(n_layers=2, block=block, final_norm=True)
    config = DecisionTransformerConfig(d_model=48, d_state=GOAL + 1, n_actions=len(MOVES), longest=LONGEST, stack=stack)
    model, draw = DecisionTransformer(config), Random(0)

    def loss(step: int) -> Tensor:
        returns, cells, actions, valid = walks(draw, 64)
        logits = model(returns, one_hot(cells, GOAL + 1).float(), actions, None, valid)
        return cross_entropy(logits[valid], actions[valid])

    learn(model, loss, steps=steps, lr=4e-3)
    return model


@torch.no_grad()
def walked(model: DecisionTransformer, start: int, wanted: int) -> int:
    """The number of steps to the goal when asked for a path of `wanted` steps; LONGEST if it does not arrive."""
    cells, actions, returns = [start], [0], [-wanted / LONGEST]
    for taken in range(LONGEST):
        states = one_hot(torch.tensor([cells]), GOAL + 1).float()
        logits = model(torch.tensor([returns]), states, torch.tensor([actions]))[0, -1]
        actions[-1] = int(logits.argmax())
        cell = moved(cells[-1], actions[-1])
        if cell == GOAL:
            return taken + 1
        cells.append(cell)
        actions.append(0)
        returns.append(returns[-1] + 1 / LONGEST)
    return LONGEST


def by_return(says: Says, *, steps: Steps = STEPS) -> Shown:
    """The mean steps to the goal: when asked for the shortest path, when asked for a long one, and by a random walk."""
    model, draw = learnt(steps), Random(3)
    shortest = {cell: 2 * (SIDE - 1) - cell // SIDE - cell % SIDE for cell in range(GOAL)}
    asked = {
        "asked for the shortest": [walked(model, cell, far) for cell, far in shortest.items()],
        "asked for never": [walked(model, cell, 2 * LONGEST) for cell in shortest],
    }
    random = walks(draw, 400).valid.sum(1).float().mean()
    means = {
        "shortest way": sum(shortest.values()) / GOAL,
        **{name: sum(each) / GOAL for name, each in asked.items()},
        "random walk": float(random),
    }
    names = ["return-to-go", "state", "action"]
    lines = [holds(says, "tokens of a step", names, right=len(names) == TOKENS and names == says["tokens of a step"])]
    return Shown(
        lines + unsaid({f"steps, {name}": mean for name, mean in means.items()}),
        bars(means, y="steps to the goal"),
    )
