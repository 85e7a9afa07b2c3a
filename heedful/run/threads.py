"""How the threads that share a matrix product wait for each other while other programs use the same cores.

libgomp's threads spin for milliseconds before they sleep. On a quiet machine that is fastest; but if the awaited thread
has lost its core to another program, spinning wastes the time of all. libgomp spins only a three-hundredth as long in a
process that has more of its threads than there are cores. So while other programs are busy, this module keeps idle
threads beside the working ones, in trainings and in every command. What is computed, and by how many threads, stays the
same.
"""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar

STAT = Path("/proc/stat")  # of Linux; elsewhere nothing is changed
CHOSEN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # where the environment has one of these, the user has decided
EVERY = 0.25  # seconds between two looks at the machine
BUSY = 0.25  # cores used by others, from which the machine counts as busy
SHARED = 1 << 17  # elements of a sum that torch computes with all its threads


class Others:
    """How many of the cores that this process may use other programs have used since the last call."""

    def __init__(self) -> None:
        self.cores = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        self._last = self._used()

    def busy(self) -> float:
        before, self._last = self._last, self._used()
        every, mine, seconds = (now - then for now, then in zip(self._last, before, strict=True))
        return max(0.0, every - mine) / max(seconds, 1e-9)

    def _used(self) -> tuple[float, float, float]:
        """CPU seconds of all programs (except nice ones) and of this one, and the time of the clock."""
        ticks = 0
        for line in STAT.read_text().splitlines():
            name, *words = line.split()
            if name in self.cores:
                user, _, system, _, _, irq, soft, stolen = map(int, words[:8])
                ticks += user + system + irq + soft + stolen
        own = os.times()
        return ticks / os.sysconf("SC_CLK_TCK"), own.user + own.system, time.perf_counter()


class Waits:
    """Inside a `with`, a background thread makes this process wait only briefly while others are busy. Does nothing
    with one thread, inside another such `with`, or where the environment says how to wait."""

    _outer: ClassVar["Waits | None"] = None

    def __init__(self) -> None:
        chosen = any(name in os.environ for name in CHOSEN)
        self.others: Others | None = None
        with suppress(OSError):
            self.others = Others() if STAT.is_file() and not chosen else None
        self._held: list[Idle] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._stay, daemon=True)

    @property
    def brief(self) -> bool:
        return bool(self._held)

    def look(self) -> None:
        """Adapts to what other programs do now."""
        if self.others is None or "torch" not in sys.modules:
            return
        busy = self.others.busy() > BUSY
        if busy and not self._held:
            for _ in range(_needed(len(self.others.cores))):
                self._held.append(Idle())
        elif self._held and not busy:
            self.end()

    def end(self) -> None:
        for idle in self._held:
            idle.end()
        self._held = []

    def __enter__(self) -> "Waits":
        if self.others is not None and Waits._outer is None:
            Waits._outer = self
            self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if Waits._outer is self:
            self._over.set()
            self._watch.join()
            Waits._outer = None
        self.end()

    def _stay(self) -> None:
        while not self._over.wait(EVERY):
            with suppress(OSError, RuntimeError):  # no more files or threads may be opened: later, perhaps
                self.look()


def _needed(cores: int) -> int:
    """How many idle teams are needed for more threads than there are cores."""
    import torch  # waits for another thread that is importing it

    if sys.modules.get("torch") is not torch:
        return 0  # that import was interrupted
    with ThreadPoolExecutor(1) as new:  # a new thread has the default number of threads
        threads = new.submit(torch.get_num_threads).result()
    return -(-(cores - threads + 1) // (threads - 1)) if threads > 1 else 0


class Idle:
    """A team of as many libgomp threads as torch uses, asleep until `end`."""

    def __init__(self) -> None:
        self._over, made = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._stay, args=(made,), daemon=True)
        self._thread.start()
        made.wait()

    def _stay(self, made: threading.Event) -> None:
        import torch

        torch.ones(SHARED).sum()
        made.set()
        self._over.wait()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
