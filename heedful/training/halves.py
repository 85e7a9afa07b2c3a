"""Two halves of a batch side by side, each computed by a thread of its own.

Threads that share each product of matrices wait for each other at its end, some thousand times in a step, and all wait
for one whose core another program has. Halves of a batch wait once. Each half has its own gradients, which are added
in one order, so that a training has the same numbers whichever half is done first.
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

FEWEST = 4  # rows that are halved: of three, one half would have twice as many as the other


class Halves:
    """Half of torch's threads for each of two threads, the other of which ends with the `with`. Raises ValueError for
    an odd number of threads."""

    def __init__(self, threads: int) -> None:
        if threads % 2:
            raise ValueError(f"{threads} threads have no halves")
        self.all = threads
        # Each thread has a number of its own, and the library that multiplies one for all.
        self._other = ThreadPoolExecutor(1, "half", torch.set_num_threads, (threads // 2,))

    @classmethod
    def where_useful(cls, device: torch.device) -> "Halves | None":
        """None where threads share nothing, or cannot be halved."""
        threads = torch.get_num_threads()
        return cls(threads) if kernels.shares_products(device) and threads % 2 == 0 else None

    @contextmanager
    def threads(self) -> Iterator[None]:
        """In this block torch uses half of its threads."""
        torch.set_num_threads(self.all // 2)
        try:
            yield
        finally:
            torch.set_num_threads(self.all)

    def both(self, half: Callable[[int], T]) -> tuple[T, T]:
        """`half(0)` and `half(1)`. What either raises is raised when both have ended."""
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
