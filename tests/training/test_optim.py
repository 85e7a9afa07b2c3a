"""The optimizer: what stands still, stands still."""

import torch
from torch import nn

from heedful.models.resnet import BatchNorm
from heedful.training.optim import OptimConfig, Optimizer
from heedful.training.ranks import Ranks


class Alone(Ranks):
    """Two ranks, of which the other adds nothing."""

    def sum(self, tensors: object) -> None:
        pass


def test_fixed_statistics_do_not_decay() -> None:
    """Also under several ranks, where a weight without a gradient gets one of zeros."""
    for ranks in (Ranks(), Alone(size=2)):
        model = nn.Sequential(nn.Conv2d(2, 4, 1), BatchNorm(4, learned=False))
        before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        optimizer = Optimizer(model, OptimConfig(lr=0.1, weight_decay=0.5))
        model(torch.randn(2, 2, 3, 3)).square().sum().backward()
        optimizer.collect()
        optimizer.sum(ranks)
        optimizer.step(1.0, optimizer.norm(1))
        moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
        assert moved == {"0.weight", "0.bias"}
