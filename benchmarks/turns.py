"""Contestants that take turns on one machine, A B C A B C ..., so that what else it does hits all alike.

Each has a process of its own: two OpenMP libraries in one slow each other down. All get the allocator setting that
`heed` gives itself, unless told otherwise.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch

from heedful.cli.memory import keep_freed_memory
from heedful.core.kernels import onednn_knows

Work = Callable[[Any], Any]  # what is asked in a turn, and the answer
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # where the models of all contestants are
BF16 = DEVICE.type == "cuda" or onednn_knows(torch.bfloat16)  # elsewhere it is emulated, a hundred times as slowly


@dataclass
class Contestant:
    """`make(*arguments)` is called in its process; it is a function of a module, and so can be found there."""

    name: str
    make: Callable[..., Work]
    arguments: tuple[Any, ...] = ()
    keeps: bool = True  # the memory that it has freed
    rates: list[float] = field(default_factory=list)  # so many a second

    def start(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self.make, self.arguments, threads, self.keeps))
        self._process.start()
        self._ready = False

    def turn(self, asked: Any) -> tuple[Any, float]:
        """The answer, and the seconds that it took. The first turn waits until it is made: all get ready together."""
        if not self._ready:
            self._pipe.recv()
            self._ready = True
        self._pipe.send(asked)
        return self._pipe.recv()

    def stop(self) -> None:
        self._pipe.send(None)
        self._process.join()

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


def _serve(pipe: Connection, make: Callable[..., Work], arguments: tuple[Any, ...], threads: int, keeps: bool) -> None:
    if keeps:
        keep_freed_memory()
    torch.set_num_threads(threads)
    work = make(*arguments)
    pipe.send(None)
    while (asked := pipe.recv()) is not None:
        begin = time.perf_counter()
        answer = work(asked)
        finish()
        pipe.send((answer, time.perf_counter() - begin))


def finish() -> None:
    """Waits for what an accelerator was told to do."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def machine(threads: int) -> str:
    device = torch.cuda.get_device_name() if DEVICE.type == "cuda" else torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {device}, {threads} threads"


def table(contestants: Iterable[Contestant], unit: str) -> str:
    """The median of each, and its spread."""
    rows = [(each.name, each.rate, min(each.rates), max(each.rates)) for each in contestants]
    width = max(len(name) for name, *_ in rows)
    return "\n".join(
        f"{name:{width}}  {rate:10,.1f} {unit}  ({low:,.1f} to {high:,.1f})" for name, rate, low, high in rows
    )


class Row(NamedTuple):
    """A figure of a machine: ours beside its peers, and the most that the machine allows (None: unknown)."""

    what: str
    unit: str
    ours: Contestant
    peers: Sequence[Contestant]
    limit: float | None = None


def kept(each: Contestant) -> Contestant:
    """As it is now: in the next race it has other rates."""
    return replace(each, rates=[*each.rates])


def ratios(ours: Contestant, peers: Sequence[Contestant]) -> str:
    """The median of ours over that of each peer."""
    return "\n".join(f"{ours.name} / {peer.name}: {ours.rate / peer.rate:.2f}" for peer in peers)
