"""One trainer to a run folder, and no stale lock ever."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from heedful.errors import InputError, StorageError
from heedful.store import files
from heedful.store.lock import NAME, held_alone, one_after_another, run_lock
from waiting import PATIENCE

ROOT = Path(__file__).parents[2]
OWNER = r"""
import os, subprocess, sys
from pathlib import Path
from heedful.store.lock import run_lock
with run_lock(Path(sys.argv[1])):
    # One write a line: two processes share the pipe.
    worker = "import os, time; os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
    if "fork" in sys.argv and not os.fork():
        exec(worker)
    if "program" in sys.argv:
        subprocess.Popen([sys.executable, "-c", worker], close_fds=False)
    os.write(1, b"held\n")
    sys.stdin.read()
"""
RACER = """
import sys
from pathlib import Path
from heedful.errors import InputError
from heedful.store.lock import run_lock
sys.stdin.readline()
try:
    with run_lock(Path(sys.argv[1])):
        print("in", flush=True)
        sys.stdin.read()
except InputError as error:
    print("refused", flush=True)
"""


def start(script: str, run: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(run), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@contextmanager
def owner(run: Path) -> Iterator[subprocess.Popen[str]]:
    with start(OWNER, run) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_trainer_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        with pytest.raises(InputError) as caught, run_lock(tmp_path):
            pass
        assert f"another trainer (pid {process.pid} on {socket.gethostname()} since 2" in str(caught.value)
        assert f"`kill {process.pid}`" in caught.value.fix
        assert caught.value.exit_code == 2
    with run_lock(tmp_path), pytest.raises(InputError, match=f"pid {os.getpid()} "), run_lock(tmp_path):
        pass


def test_the_lock_ends_with_its_block_even_by_an_error(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(KeyError), run_lock(tmp_path):
            raise KeyError
    with run_lock(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["fork", "program"])
def test_the_lock_of_a_killed_trainer_is_taken_over_even_while_its_workers_live(
    kind: str, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    with start(OWNER, tmp_path, kind) as process:
        assert process.stdout is not None
        worker = int(max((process.stdout.readline() for _ in range(2)), key=lambda line: line[:1].isdigit()))
        try:
            with pytest.raises(InputError), run_lock(tmp_path):
                pass
            process.kill()
            process.wait()
            os.kill(worker, 0)  # the worker lives
            with run_lock(tmp_path):
                assert f"pid {os.getpid()} " in (tmp_path / NAME).read_text()
            tally("R11 two trainers on one run", 1)
        finally:
            os.kill(worker, signal.SIGKILL)


def test_what_an_old_owner_wrote_does_not_lock(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("pid 1 on elsewhere since 2020-01-01 00:00:00\n" * 9)
    with run_lock(tmp_path):
        assert (tmp_path / NAME).read_text().startswith(f"pid {os.getpid()} on ")
        assert "elsewhere" not in (tmp_path / NAME).read_text()


@pytest.mark.parametrize("note", [b"", b"\x1b[2J pid 7", b"\xff" * 300, b"pid 1 on \x1b since 2020"])
def test_a_strange_note_is_not_repeated(note: bytes, tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.write(note)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError) as caught, run_lock(tmp_path):
            pass
    assert str(caught.value).endswith("another trainer (its name not yet written) is writing here")
    assert caught.value.fix.isprintable()


def test_a_lock_that_cannot_be_had_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError), run_lock(tmp_path / "none"):
        pass
    (tmp_path / "outside").write_text("kept")
    (tmp_path / NAME).symlink_to("outside")
    with pytest.raises(StorageError), run_lock(tmp_path):
        pass
    assert (tmp_path / "outside").read_text() == "kept"


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.full)])
def test_of_trainers_that_start_at_once_one_gets_in(
    rounds: int, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    for _ in range(rounds):
        racers = [start(RACER, tmp_path) for _ in range(4)]
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        answers = [racer.stdout.readline() for racer in racers if racer.stdout is not None]
        for racer in racers:
            racer.communicate()
        assert sorted(answers) == ["in\n", *["refused\n"] * 3]
        tally("R11 two trainers on one run", 3)


@pytest.mark.parametrize("what", ["replaced", "removed"])
def test_whoever_waits_for_a_file_gets_the_one_that_is_there_then(tmp_path: Path, what: str) -> None:
    """And not the one that it began to wait for: two would be in the block at once."""
    path, waiting = tmp_path / "file", threading.Event()

    def wait() -> str:
        waiting.set()
        with one_after_another(path):
            with pytest.raises(InputError, match="another command is writing here"), held_alone(path):
                pass
            return path.read_text()

    with ThreadPoolExecutor(1) as pool:
        with one_after_another(path):
            second = pool.submit(wait)
            assert waiting.wait(PATIENCE)
            if what == "removed":
                path.unlink()
            else:
                files.write_text(path, "new")
        assert second.result(PATIENCE) == ("" if what == "removed" else "new")


def test_an_error_in_the_block_is_its_own_and_opens_the_lock(tmp_path: Path) -> None:
    for error in (FileNotFoundError, BlockingIOError):
        for _ in range(2):
            with pytest.raises(error), held_alone(tmp_path / "file"):
                raise error
    with pytest.raises(StorageError), one_after_another(tmp_path / "none" / "file"):
        pass
