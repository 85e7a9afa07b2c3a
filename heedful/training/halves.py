"""Computes the two halves of a batch at the same time, each in a thread of its own.

Threads that share every matrix product wait for each other thousands of times a step, and all of them wait for one that
has lost its core to another program. Halves of a batch wait once. Each half has its own gradients; these are added in a
fixed order, so that the result does not depend on which half is done first.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from types import TracebackType
from typing import TypeVar

import torch

from heedful.core import kernels

T = TypeVar("T")

FEWEST = 4  # rows of a batch that is halved: of three rows, one half would have twice as many as the other


class Halves:
    """Two threads, each with half of torch's threads. The second one ends with the `with`. Raises ValueError for an odd
    number of threads."""

    def __init__(self, threads: int) -> None:
        if threads % 2:
            raise ValueError(f"{threads} threads have no halves")
        self.all = threads
        # torch keeps a number of threads for each thread, but the library that multiplies has one for all.
        self._other = ThreadPoolExecutor(1, "half", torch.set_num_threads, (threads // 2,))

    @classmethod
    def where_useful(cls, device: torch.device) -> "Halves | None":
        """None where threads do not share products, or their number is odd."""
        threads = torch.get_num_threads()
        return cls(threads) if kernels.shares_products(device) and threads % 2 == 0 else None

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Inside this block torch uses half of its threads."""
        torch.set_num_threads(self.all // 2)
        try:
            yield
        finally:
            torch.set_num_threads(self.all)

    def both(self, half: Callable[[int], T]) -> tuple[T, T]:
        """`half(0)` and `half(1)`, at the same time. An exception of either is raised when both have ended."""
        other = self._other.submit(copy_context().run, half, 1)
        try:
            one = half(0)
        finally:
            wait([other])
        return one, other.result()

    def __enter__(self) -> "Halves":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._other.shutdown()
