"""torch's optimizers without its compiler."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from heedful.training import optimizers


@pytest.mark.parametrize("name", ["Adam", "AdamW", "LBFGS"])
def test_each_steps_as_that_of_torch(name: str) -> None:
    made = []
    for module in (torch.optim, optimizers):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = getattr(module, name)([{"params": [weight]} for weight in model.parameters()][:1], lr=0.1)
        x, y = torch.randn(5, 3), torch.randn(5, 2)

        def loss(model=model, optimizer=optimizer, x=x, y=y) -> Tensor:
            optimizer.zero_grad()
            error = (model(x) - y).square().mean()
            error.backward()
            return error

        for _ in range(4):
            optimizer.step(loss)
        made.append((model.weight.detach(), loss()))
        assert torch.is_grad_enabled()
    for one, other in zip(*made, strict=True):
        assert torch.equal(one, other)


def test_no_training_loads_the_compiler() -> None:
    code = """
import sys
from torch import nn, ones
from heedful.training.optim import OptimConfig, Optimizer
from heedful.training.optimizers import LBFGS
for kind in ("adam", "muon"):
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(4, 4)])})
    optimizer = Optimizer(model, OptimConfig(optimizer=kind))
    model.blocks[0](ones(1, 4)).sum().backward()
    optimizer.step(1.0, 1.0, 1)
LBFGS(model.parameters()).step(lambda: model.blocks[0](ones(1, 4)).sum())
sys.exit("torch._dynamo" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
