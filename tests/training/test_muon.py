"""Muon is torch's, to the last bit in bfloat16, and about it in float32."""

import pytest
import torch
from torch import Tensor

from heedful.training import muon
from heedful.training.muon import Muon, orthogonal

SHAPES = [(8, 8), (24, 8), (8, 24), (1, 5)]


def walked(kind: type[torch.optim.Optimizer], steps: int, **settings: object) -> list[Tensor]:
    torch.manual_seed(3)
    params = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    optimizer = kind(params, lr=0.02, weight_decay=0.1, **settings)
    for step in range(steps):
        for i, param in enumerate(params):
            param.grad = None if step == i == 1 else torch.randn(param.shape)
        optimizer.step()
    assert all(set(optimizer.state[param]) == {"momentum_buffer"} for param in params)
    return params


def test_as_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muon, "product_dtype", lambda device: torch.bfloat16)
    ours = walked(Muon, 4)
    theirs = walked(torch.optim.Muon, 4, adjust_lr_fn="original")
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    monkeypatch.setattr(muon, "product_dtype", lambda device: torch.float32)
    for one, other in zip(walked(Muon, 4), theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_one(shape: tuple[int, int]) -> None:
    given = torch.randn(shape) * 100
    before = given.clone()
    values = torch.linalg.svdvals(orthogonal(given, torch.float32))
    assert values.min() > 0.3
    assert values.max() < 1.6
    assert torch.equal(given, before), "what was given stays"
    assert not orthogonal(torch.zeros(shape), torch.float32).any()
