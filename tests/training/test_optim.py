"""The optimizer: what stands still, stands still."""

from typing import Literal

import pytest
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
        optimizer.step(1.0, optimizer.norm(1), 1)
        moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
        assert moved == {"0.weight", "0.bias"}


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_biases_and_norms_do_not_decay(optimizer: Literal["adam", "muon"]) -> None:
    """Where no gradient moves them, the matrices alone get smaller."""
    model = nn.ModuleDict({"blocks": nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), "embed": nn.Embedding(5, 3)})
    torch.nn.init.ones_(model["blocks"][0].bias)  # type: ignore[index]
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    made = Optimizer(model, OptimConfig(optimizer=optimizer, lr=0.1, muon_lr=0.1, weight_decay=0.5))
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    made.step(1.0, 0.0, 1)
    for name, weight in model.named_parameters():
        kept = 1.0 if name.endswith("bias") or ".1." in name else 0.95
        assert torch.allclose(weight, kept * before[name], atol=1e-6), name


def test_adam_steps_by_its_betas_and_epsilon() -> None:
    """Two steps by hand: Kingma and Ba 2015, algorithm 1."""
    model, gradients = nn.Linear(1, 1, bias=False), (2.0, -0.5)
    torch.nn.init.zeros_(model.weight)
    optimizer = Optimizer(model, OptimConfig(lr=0.1, betas=(0.6, 0.7), eps=0.01, clip=0.0))
    mean = square = expected = 0.0
    for step, gradient in enumerate(gradients, 1):
        mean, square = 0.6 * mean + 0.4 * gradient, 0.7 * square + 0.3 * gradient**2
        expected -= 0.1 * (mean / (1 - 0.6**step)) / ((square / (1 - 0.7**step)) ** 0.5 + 0.01)
        model.weight.grad = torch.full_like(model.weight, gradient)
        optimizer.step(1.0, optimizer.norm(1), 1)
    assert float(model.weight.detach()) == pytest.approx(expected, rel=1e-5)
