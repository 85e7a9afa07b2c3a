"""Comparisons with numbers of another implementation, and with records of such, within tolerances."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.exchange.hf.rules import Rule, to_ours


def copy_weights(ours: nn.Module, rules: Iterable[Rule], theirs: Mapping[str, Tensor]) -> None:
    """Copies their tensors into a model of ours, by the rules of a family."""
    own = dict(ours.named_parameters())
    for name, value in to_ours(rules, theirs, own).items():
        own[name].data.copy_(value)


def close(ours: Tensor, theirs: Tensor, name: str = "", *, loud: float = 1e-4, within: float | None = None) -> None:
    """No element differs by more than 1e-5 of the tensor's largest, which must be above `loud`; 1e-9 in double
    precision, which gradients need: those of the first layers are sums that nearly cancel."""
    largest = float(theirs.detach().abs().max())
    assert largest > loud, f"{name} says nothing"
    within = within or {torch.float32: 1e-5, torch.float64: 1e-9}[theirs.dtype]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within * largest, msg=lambda text: f"{name}: {text}")


def close_gradients(
    own: Mapping[str, nn.Parameter],
    expected: Mapping[str, Tensor],
    *,
    idle: tuple[str, ...] = (),
    zero: float = 1e-12,
    within: float | None = None,
    rotary: bool = False,
) -> None:
    """Compares the gradients of all parameters. Those whose names begin with one of `idle` are zero, and so are those
    of the biases of keys, which add the same to every score of a query, unless keys are rotated."""
    assert expected.keys() == own.keys()
    for name, gradient in expected.items():
        if name.startswith(idle) or (name.endswith(".key.bias") and not rotary):
            assert max(float(gradient.abs().max()), float(own[name].grad.abs().max())) < zero
        else:
            close(own[name].grad, gradient, name, within=within)


def like(found: Any) -> Any:
    """An object that compares floats approximately, and everything else exactly."""
    if isinstance(found, float):
        return pytest.approx(found, abs=2e-4)
    if isinstance(found, dict):
        return {key: like(value) for key, value in found.items()}
    return [like(each) for each in found] if isinstance(found, list | tuple) else found
