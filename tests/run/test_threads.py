"""How threads wait beside other programs."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from heedful.cli import main
from heedful.run.threads import BUSY, CHOSEN, STAT, Others, Waits

pytestmark = pytest.mark.skipif(not STAT.is_file(), reason="only Linux tells what the others do")


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def alive() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_busy_program_is_seen_and_this_one_is_not() -> None:
    others = Others()
    most = len(others.cores) - 0.5
    for _ in range(8):  # other programs come and go
        others.busy()
        end = time.perf_counter() + 1
        while time.perf_counter() < end:
            pass
        mine = others.busy()
        if mine <= most:
            break
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in others.cores]
    try:
        time.sleep(0.5)
        others.busy()
        time.sleep(1)
        beside = others.busy()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert beside > BUSY
    assert mine <= most or len(others.cores) == 1


def test_idle_threads_are_held_only_while_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    found = 2.0
    monkeypatch.setattr(Others, "busy", lambda self: found)
    with threads(2):
        torch.ones(1 << 17).sum()  # makes the threads that work
        before = alive()
        waits = Waits()
        waits.look()
        assert waits.brief
        assert alive() >= before + max(2, len(Others().cores) - 2)
        held = alive()
        waits.look()
        assert alive() == held
        found = 0.0
        waits.look()
        assert not waits.brief
        assert _falls_to(before)
        found = 2.0
        with waits, Waits() as inner:
            assert _becomes(lambda: waits.brief)
            assert inner.others is not None
            assert not inner.brief  # one watch is enough
        assert not waits.brief
        assert _falls_to(before)


def test_a_way_to_wait_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Others, "busy", lambda self: 2.0)
    monkeypatch.setenv("GOMP_SPINCOUNT", "300000")
    with threads(2):
        waits = Waits()
        waits.look()
        assert not waits.brief
    monkeypatch.delenv("GOMP_SPINCOUNT")
    with threads(1):
        waits = Waits()
        waits.look()
        assert not waits.brief


def test_every_command_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[bool] = []

    def command(**how: object) -> None:
        inside.append(Waits._outer is not None)

    monkeypatch.setattr("heedful.cli.heed", command)
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    main()
    assert inside == [True]
    assert Waits._outer is None


def _falls_to(count: int) -> bool:
    """libgomp's threads end a moment after the one that they belong to."""
    return _becomes(lambda: alive() <= count)


def _becomes(true: Callable[[], bool]) -> bool:
    end = time.perf_counter() + 10
    while not true() and time.perf_counter() < end:
        time.sleep(0.01)
    return true()
