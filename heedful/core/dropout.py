"""Dropout (Srivastava et al. 2014) whose random numbers cost little on a CPU.

A CPU draws random numbers one after another, and `torch.nn.functional.dropout` draws one 64-bit number an
element: at p = 0.1 it took a third of a training step. One such number holds eight bytes, and a byte decides
one element, so p is rounded to a multiple of 1/256 here; what is kept is scaled by exactly that chance.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core import kernels
from heedful.errors import InputError


def dropout(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """Sets elements to zero with chance `p`, and scales the others so that the mean stays.

    Raises InputError for a `p` that is no chance, or that leaves nothing.
    """
    if p == 0.0:
        return x
    dropped = round(p * 256)
    if not 0 <= dropped < 256:
        raise InputError(f"dropout with chance {p}", fix="give 0, or more but less than 1")
    if not kernels.slow_random_numbers(x):
        return F.dropout(x, p)
    keep = (_random_bytes(x.shape) >= dropped).to(x.dtype).mul_(256 / (256 - dropped))
    return x * keep.view(x.shape)


_generators: ContextVar[Sequence[torch.Generator]] = ContextVar("generators", default=())


@contextmanager
def rows(seeds: Sequence[int]) -> Iterator[None]:
    """Inside this block, row i of a batch of `len(seeds)` draws its dropout from `seeds[i]` only, on a CPU.

    So a row's dropout does not depend on the other rows, or on the rank that computes it. A GPU draws from its own
    generator for the whole batch.
    """
    token = _generators.set([torch.Generator().manual_seed(seed) for seed in seeds])
    try:
        yield
    finally:
        _generators.reset(token)


def drawn_again() -> AbstractContextManager[None]:
    """Returns a context in which rows draw again the numbers that they draw from here on: for recomputation. It does
    not change what they draw outside of it."""
    states = [generator.get_state() for generator in _generators.get()]

    @contextmanager
    def again() -> Iterator[None]:
        token = _generators.set([torch.Generator().set_state(state) for state in states])
        try:
            yield
        finally:
            _generators.reset(token)

    return again()


def _random_bytes(shape: torch.Size) -> Tensor:
    """A random byte for each element: uint8 of [rows, elements of a row], or of [1, elements] without `rows`. Raises
    InputError where the first dimension is not as many rows, or a multiple of them."""
    generators = _generators.get() or [torch.default_generator]
    if len(generators) > 1 and (not shape or shape[0] % len(generators)):
        what = f"dropout of {list(shape)}, where each of {len(generators)} rows draws its own numbers"
        raise InputError(what, fix="let the first dimension be the rows of the batch")
    each = math.prod(shape) // len(generators)
    words = torch.empty(len(generators), -(-each // 8), dtype=torch.int64)
    for row, generator in zip(words.unbind(), generators, strict=True):
        row.random_(-(2**63), None, generator=generator)
    return words.view(torch.uint8)[:, :each]


class Dropout(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        return f"p={self.p}"
