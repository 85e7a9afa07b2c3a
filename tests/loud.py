"""Weights that are loud: at the usual small ones a mistake changes too little to be seen."""

from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


def make_loud(model: M, *, std: float = 0.4, norm: float = 0.0, shared: float | None = None) -> M:
    """N(0, std) in all that learns, but N(`norm`, std) in what norms multiply by, and N(0, `shared`) in the matrix that
    theirs share."""
    for name, weight in model.named_parameters():
        if weight.requires_grad:  # all but sines and statistics
            scale = ("norm" in name.lower() or "ln_" in name) and "weight" in name
            own = shared if shared is not None and "shared" in name else std
            nn.init.normal_(weight, mean=norm if scale else 0.0, std=own)
    return model
