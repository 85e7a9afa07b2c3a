"""Large random weights: with the usual small ones, the effect of a mistake is too small to be noticed."""

from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


def make_loud(model: M, *, std: float = 0.4, norm: float = 0.0, shared: float | None = None) -> M:
    """Draws N(0, std) for all trained weights, except N(`norm`, std) for the scales of norms, and N(0, `shared`) for
    the matrix that their models share."""
    for name, weight in model.named_parameters():
        if weight.requires_grad:  # all except sines and statistics
            scale = ("norm" in name.lower() or "ln_" in name) and "weight" in name
            own = shared if shared is not None and "shared" in name else std
            nn.init.normal_(weight, mean=norm if scale else 0.0, std=own)
    return model
