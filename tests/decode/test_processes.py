"""Work that is shared by processes: the same results, in order; what goes wrong in one is told in a line."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from heedful.decode.processes import Processes
from heedful.errors import HeedError, InputError
from waiting import PATIENCE, becomes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


def refusing(item: int) -> int:
    if item == 3:
        raise InputError("a three", where="here", fix="take another")
    return item


def test_results_come_in_order_from_processes_of_one_thread() -> None:
    def work(item: int) -> tuple[int, int, int]:
        time.sleep(0.01 * (5 - item))
        return item, os.getpid(), torch.get_num_threads()

    shared = Processes(work, 2)
    try:
        items, processes, threads = zip(*shared.map(range(5)), strict=True)
    finally:
        shared.close()
    assert items == (0, 1, 2, 3, 4)
    assert os.getpid() not in processes
    assert set(threads) == {1}


def test_what_work_raises_is_raised_here_and_the_processes_go_on() -> None:
    shared = Processes(refusing, 2)
    try:
        with pytest.raises(InputError, match="here: a three") as raised:
            shared.map(range(5))
        assert raised.value.fix == "take another"
        assert shared.map([1, 2]) == [1, 2]
    finally:
        shared.close()


def test_closing_leaves_no_thread_behind() -> None:
    """One that still looks after the processes when Python ends is found half closed, and says so."""
    before = set(threading.enumerate())
    for _ in range(5):
        shared = Processes(refusing, 2)
        shared.map([1, 2])
        shared.close()
        assert set(threading.enumerate()) == before


def test_a_process_that_is_killed_is_told_of() -> None:
    shared = Processes(lambda item: os.kill(os.getpid(), signal.SIGKILL), 2)
    try:
        with pytest.raises(HeedError, match="killed"):
            shared.map(range(3))
    finally:
        shared.close()


def test_closing_ends_the_processes_whatever_they_are_at(tmp_path: Path) -> None:
    def work(begun: Path) -> None:
        begun.touch()
        time.sleep(10 * PATIENCE)

    shared = Processes(work, 2)
    children = shared.children
    assert len(children) == 2
    with ThreadPoolExecutor(1) as other:
        mapped = other.submit(shared.map, [tmp_path / "one", tmp_path / "other"])
        both_begun = becomes(lambda: len(list(tmp_path.iterdir())) == 2)
        shared.close()
        assert both_begun
        # The pool's own thread waits for them too: one is told late.
        assert becomes(lambda: not any(child.is_alive() for child in children))
        with pytest.raises((HeedError, CancelledError)):
            mapped.result(PATIENCE)


def test_no_process_outlives_a_parent_that_is_killed() -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if not parent:
        try:
            os.close(reading)
            os.write(writing, b" ".join(str(child.pid).encode() for child in Processes(int, 2).children))
            os.close(writing)
            time.sleep(10 * PATIENCE)
        finally:
            os._exit(1)  # it is a copy of the whole test run
    os.close(writing)
    children = [int(pid) for pid in os.read(reading, 100).split()]
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert len(children) == 2
    assert becomes(lambda: not any(map(_runs, children)))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
