"""The laws of a model that decides."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.models.decision import DecisionTransformer
from heedful.run.task import Law
from heedful.tasks.decide.layout import DecideBatch
from heedful.tasks.decide.use import Decider
from heedful.tasks.shared.probes import Probe

LENGTHS = (3, 9, 5, 14)


class DecideProbe(Probe[DecisionTransformer]):
    """A probe on random episodes."""

    def __init__(self, decider: Decider, texts: Sequence[str]) -> None:
        draw, config = torch.Generator().manual_seed(0), decider.model.config
        B, T = len(LENGTHS), min(max(LENGTHS), config.longest)
        sizes = (B, T, config.n_actions) if config.continuous else (B, T)
        actions = torch.randn(sizes, generator=draw)
        if not config.continuous:
            actions = torch.randint(config.n_actions, sizes, generator=draw)
        steps = torch.arange(T)
        valid = steps < torch.tensor(LENGTHS)[:, None]
        states = torch.randn(B, T, config.d_state, generator=draw)
        returns = torch.randn(B, T, generator=draw)
        super().__init__(decider.model, DecideBatch(returns, states, actions, steps.expand(B, T), valid), valid)

    def __iter__(self) -> Iterator[Law]:
        yield Law(
            "causal: gradient from the future",
            self.leak(),
            0.0,
            otherwise="training would show the model what is yet to happen",
        )
        yield from super().__iter__()

    @torch.no_grad()
    def padded(self) -> Tensor:
        """Seven more steps of padding, filled with numbers that no step may look at."""
        returns, states, actions, steps, valid = self.inputs
        wider = pad(actions, (0, 0, 0, 7) if actions.dim() == 3 else (0, 7), value=1)
        more = (pad(returns, (0, 7), value=4), pad(states, (0, 0, 0, 7), value=4), wider, pad(steps, (0, 7)))
        return self.read(*more, pad(valid, (0, 7)))[:, : self.full.shape[1]]

    def alone(self, row: int) -> Tensor:
        return self.read(*(part[row : row + 1, : int(self.real[row].sum())] for part in self.inputs))

    def leak(self) -> float:
        """The gradient of each step's logits with respect to later observations and returns."""
        returns, states, *rest = self.inputs
        returns, states = returns.clone().requires_grad_(), states.clone().requires_grad_()
        logits, worst = self.read(returns, states, *rest), 0.0
        for step in range(logits.shape[1] - 1):
            gradients = torch.autograd.grad(logits[:, step].square().sum(), (returns, states), retain_graph=True)
            worst = max(worst, *(float(each[:, step + 1 :].abs().max()) for each in gradients))
        return worst
