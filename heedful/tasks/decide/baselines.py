"""What is learnt from the same episodes without a Transformer: behaviour cloning, of all episodes and of the best
tenth, and fitted Q iteration (Riedmiller 2005). Each is a small network that sees one observation.

N steps of all episodes, S numbers of an observation, A actions or numbers of one.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, smooth_l1_loss

from heedful.data.episodes.environments import Begun, Chooser
from heedful.data.episodes.episode import Episode
from heedful.tasks.decide.layout import DecideSpec

WIDTH, STEPS, BATCH, RATE = 64, 500, 256, 3e-3
DISCOUNT, RENEWED = 0.99, 25  # of fitted Q: of a reward one step later; steps after which its targets are renewed
SHARE = 10  # behaviour cloning of the best: one episode in so many


def baselines(episodes: Sequence[Episode], spec: DecideSpec, *, seed: int = 0) -> dict[str, Chooser]:
    """The baselines by their names; fitted Q where actions are chosen among some."""
    best = sorted(episodes, key=lambda each: each.total)[-max(1, len(episodes) // SHARE) :]
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        torch.manual_seed(seed)
        learnt = {"behaviour_cloning": _cloned(episodes, spec), "best_tenth": _cloned(best, spec)}
        if spec.actions.kind == "discrete":
            learnt["fitted_q"] = _fitted_q(episodes, spec)
    return {name: _chooser(network, spec) for name, network in learnt.items()}


def _network(spec: DecideSpec) -> nn.Module:
    S, A = spec.observations.size, spec.actions.size
    return nn.Sequential(nn.Linear(S, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, A))


def _steps(episodes: Sequence[Episode], spec: DecideSpec) -> tuple[Float[Tensor, "N S"], Tensor]:
    states = torch.cat([spec.states(each.observations) for each in episodes])
    return states, torch.cat([torch.from_numpy(each.actions) for each in episodes])


def _cloned(episodes: Sequence[Episode], spec: DecideSpec) -> nn.Module:
    """Learns to do what was done."""
    (states, actions), network = _steps(episodes, spec), _network(spec)
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    for _ in range(STEPS):
        drawn = torch.randint(len(states), (BATCH,))
        loss = mse_loss if actions.is_floating_point() else cross_entropy
        optimizer.zero_grad()
        loss(network(states[drawn]), actions[drawn]).backward()
        optimizer.step()
    return network


def _fitted_q(episodes: Sequence[Episode], spec: DecideSpec) -> nn.Module:
    """Learns the return after each action, if the best ones follow; the network of the targets is one of before."""
    (states, actions), network = _steps(episodes, spec), _network(spec)
    rewards = torch.from_numpy(numpy.concatenate([each.rewards for each in episodes])) / spec.scale
    ends = torch.zeros(len(states), dtype=torch.bool)
    ends[torch.tensor([len(each) for each in episodes]).cumsum(0) - 1] = True
    optimizer, before = torch.optim.Adam(network.parameters(), RATE), deepcopy(network)
    for step in range(STEPS):
        if step % RENEWED == 0:
            before = deepcopy(network)
        drawn = torch.randint(len(states), (BATCH,))
        with torch.no_grad():
            following = before(states[(drawn + 1) % len(states)]).amax(1)
        target = rewards[drawn] + DISCOUNT * following.masked_fill(ends[drawn], 0.0)
        optimizer.zero_grad()
        smooth_l1_loss(network(states[drawn]).gather(1, actions[drawn, None])[:, 0], target).backward()
        optimizer.step()
    return network


def _chooser(network: nn.Module, spec: DecideSpec) -> Chooser:
    kind = numpy.int64 if spec.observations.kind == "discrete" else numpy.float32

    @torch.no_grad()
    def choose(begun: Sequence[Begun]) -> list[Any]:
        answers = network(spec.states(numpy.array([each.observations[-1] for each in begun], dtype=kind)))
        return answers.tolist() if spec.actions.kind == "vector" else answers.argmax(1).tolist()

    return choose
