"""Work in several processes of one thread each. Small matrix products do not gain from a second thread, but several
processes, which share the weights of this one, do."""

import ctypes
import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from heedful.errors import HeedError

Item = TypeVar("Item")
Result = TypeVar("Result")

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux: what a process gets when its parent dies

_work: Callable[[Any], Any]  # of a process that was forked to do it


class Processes:
    """`count` processes of one thread each, forked from this one as it is now, which do `work` until they are closed.
    They share no later changes with it."""

    def __init__(self, work: Callable[[Item], Result], count: int) -> None:
        self.count = count
        others = multiprocessing.active_children()
        context = multiprocessing.get_context("fork")
        self.pool = ProcessPoolExecutor(count, context, _begin, (work,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: those of torch are idle
            with _told():
                self.pool.submit(int).result()  # it forks at the first task
        self.children = [child for child in multiprocessing.active_children() if child not in others]
        self.idle = True

    def map(self, items: Sequence[Any]) -> list[Any]:
        """The results of `work` for each item, in order. Raises what it raises, and HeedError if a process is
        killed."""
        self.idle = False
        with _told():
            results = list(self.pool.map(_do, items))
        self.idle = True
        return results

    def close(self) -> None:
        """Ends them, whatever they are at. Idle ones are waited for: else the pool's own thread, which looks after
        them, may be found half closed when Python ends."""
        self.pool.shutdown(wait=self.idle, cancel_futures=True)
        for child in self.children:
            child.terminate()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise HeedError("a process that worked for this one was killed", fix="give it more memory") from None


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent says when to stop,
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)  # and its death says so too
    torch.set_num_threads(1)


def _do(item: Any) -> Any:
    return _work(item)
