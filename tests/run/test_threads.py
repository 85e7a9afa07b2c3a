"""How threads wait beside other programs."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from heedful.cli import main
from heedful.run.threads import BUSY, CHOSEN, STAT, Others, Waits, _needed
from heedful.training.halves import Halves
from waiting import becomes

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


def test_a_busy_program_is_seen() -> None:
    """By what this system counts itself."""
    others = Others()

    def seen() -> bool:
        others.busy()
        time.sleep(0.7)
        return others.busy() > BUSY

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        beside = becomes(seen)
        busy.kill()
    assert beside


def test_this_program_and_those_that_give_way_are_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the system counts of two cores of three: all that this program takes, and some of others."""
    now = 0.0
    monkeypatch.setattr("heedful.run.threads.STAT", tmp_path / "stat")
    monkeypatch.setattr("heedful.run.threads.time.perf_counter", lambda: now)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})

    def count(user: float = 0, system: float = 0, irq: float = 0, soft: float = 0, not_seen: float = 0) -> None:
        own = os.times()
        first = [own.user + user, not_seen, own.system + system, not_seen, not_seen, irq, soft, 0, 0, 0]
        rows = {"cpu": [9e5] * 10, "cpu0": first, "cpu1": [not_seen and 1.0, *[0] * 9], "cpu2": [not_seen] * 10}
        ticks = {
            name: " ".join(str(round(each * os.sysconf("SC_CLK_TCK"))) for each in row) for name, row in rows.items()
        }
        (tmp_path / "stat").write_text("".join(f"{name} {row}\n" for name, row in ticks.items()) + "intr 7 0\n")

    count()
    others, begun = Others(), time.process_time()
    while time.process_time() < begun + 0.2:
        pass
    count()
    now += 0.2
    assert others.busy() < 0.15
    now += 0.05
    count(user=2, system=1, irq=0.5, soft=0.25, not_seen=70)
    assert others.busy() * 0.05 == pytest.approx(4.75, abs=0.2)


def test_without_a_look_at_the_machine_nothing_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "read_text", refused)
    with Waits() as waits:
        assert waits.others is None


def test_idle_threads_are_held_only_while_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    found = 2.0
    monkeypatch.setattr(Others, "busy", lambda self: found)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    with threads(2):
        torch.ones(1 << 17).sum()  # makes the threads that work
        before = alive()
        waits = Waits()
        waits.look()
        assert waits.brief
        assert alive() >= before + 2
        held = alive()
        waits.look()
        assert alive() == held
        found = 0.0
        waits.look()
        assert not waits.brief
        assert _falls_to(before)
        found = 2.0
        with waits, Waits() as inner:
            assert becomes(lambda: waits.brief)
            assert inner.others is not None
            assert not inner.brief  # one watch is enough
        assert not waits.brief
        assert _falls_to(before)


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), RuntimeError("can't start new thread")])
def test_the_watch_goes_on_where_nothing_more_can_be_opened(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    looks, waits = [0], Waits()

    def look(self: Waits) -> None:
        looks[0] += 1
        if looks[0] < 3:
            raise error

    monkeypatch.setattr(Waits, "look", look)
    monkeypatch.setattr("heedful.run.threads.EVERY", 0.001)
    with waits:
        assert becomes(lambda: looks[0] > 3)


def test_a_watch_that_began_while_threads_were_halved_sees_them_all_later() -> None:
    """A training that measures uses all of them again."""
    with threads(2), ThreadPoolExecutor(1) as watch, Halves(2) as halves:
        with halves.threads():
            assert watch.submit(_needed, 2).result() == 0
        assert watch.submit(_needed, 2).result() == 1


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
    return becomes(lambda: alive() <= count)


INTERRUPTED = """
import threading, time
reached = threading.Event()
class Others:
    cores = {0, 1}
    def busy(self):
        reached.set()
        return 1.0
waits = Waits()
waits.others = Others()
errors = []
threading.excepthook = errors.append
thread = threading.Thread(target=waits.look)
"""


def test_an_import_that_is_interrupted_ends_in_silence(tmp_path: Path) -> None:
    """Ctrl-C while torch is imported, as the thread that watches the machine waits for it."""
    (tmp_path / "torch.py").write_text(
        "import time, __main__\n__main__.thread.start()\n__main__.reached.wait()\n"
        "time.sleep(0.3)\nraise KeyboardInterrupt"
    )
    code = "from heedful.run.threads import Waits\n" + INTERRUPTED
    code += f"import sys\nassert 'torch' not in sys.modules\nsys.path.insert(0, {str(tmp_path)!r})\n"
    code += "try:\n    import torch\nexcept KeyboardInterrupt:\n    thread.join()\nassert not errors, errors\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
