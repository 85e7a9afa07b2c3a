"""Commands that are ended from outside: by Ctrl-C, by where they run, or by what reads their output."""

import errno
import fcntl
import io
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import heedful
from commands import heed
from heedful import cli
from heedful.tasks.shared.progress import ProgressLine
from waiting import PATIENCE

AGAIN = "interrupted; the same command continues\n"
CALLS = {
    "train": ["--data", "pairs.tsv"],
    "demo": [],
    "distil": ["teacher", "--data", "pairs.tsv", "--out", "run"],
    "prune": ["run", "--out", "pruned"],
    "loop": ["run", "--prompts", "prompts.txt", "--ranker", "rank.py:rank", "--out", "better"],
    "back-translate": ["run", "texts.txt", "--out", "made.tsv"],
}


def ended_by(error: type[BaseException], monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command in whose midst this is raised."""

    def call(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.heed.commands[words[0]], "callback", call)
    return heed(*words)


@pytest.mark.parametrize("verb", CALLS)
def test_what_continues_says_so(verb, monkeypatch, capsys):
    assert ended_by(KeyboardInterrupt, monkeypatch, verb, *CALLS[verb]) == 130
    assert capsys.readouterr() == ("", AGAIN)


def test_other_commands_end_quietly(monkeypatch, capsys):
    assert ended_by(KeyboardInterrupt, monkeypatch, "info", "run") == 130
    assert capsys.readouterr() == ("", "")


def test_a_terminal_of_another_encoding_is_told_how_to_take_all(monkeypatch, capsys):
    def call(**_: object) -> None:
        "\u201c".encode("latin-1")

    monkeypatch.setattr(cli.heed.commands["info"], "callback", call)
    assert heed("info", "run") == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: the output is in latin-1, which has no '\u201c'",
        "fix: PYTHONIOENCODING=utf-8 heed ...",
    ]


def test_what_is_not_utf_8_is_told_before_the_work(monkeypatch, capsys):
    monkeypatch.setattr(cli.heed.commands["info"], "callback", lambda **words: 1 / 0)
    assert heed("info", "caf\udce9") == 2
    assert capsys.readouterr().err.splitlines() == [
        r"error: byte 4 of 'caf\udce9' (0xe9) is not UTF-8",
        "fix: rename the file, or give the text in UTF-8",
    ]


def test_a_name_that_is_not_utf_8_and_that_a_folder_has_is_told(monkeypatch, capsys):
    monkeypatch.setattr(cli.heed.commands["info"], "callback", lambda **words: "caf\udce9".encode())
    assert heed("info", "run") == 2
    assert capsys.readouterr().err.splitlines() == [
        r"error: a name that is not UTF-8, 'caf\udce9'",
        "fix: rename the file",
    ]


def test_a_current_folder_that_is_gone(tmp_path):
    """Libraries end the process without saying what it is."""
    code = "import os, sys; os.rmdir(os.getcwd()); from heedful.cli import main; sys.argv[1:] = ['info', 'run']; main()"
    path = str(Path(heedful.__file__).parent.parent)
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    told = "error: the current folder has been removed\nfix: cd into one that is there\n"
    assert (found.returncode, found.stdout, found.stderr) == (3, "", told)


class Closed(io.StringIO):
    """A terminal that is not there any more."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_training_outlives_its_terminal(monkeypatch):
    """One that SIGHUP does not end, as after `disown`."""
    monkeypatch.setattr(sys, "stderr", Closed())
    progress = ProgressLine()
    for text in ("a note", "another"):
        progress.say(text)
    assert "another" in sys.stderr.getvalue()


@pytest.mark.parametrize("disowned", [False, True])
def test_a_terminal_that_is_closed_ends_a_training_by_its_signal(disowned: bool, tmp_path: Path) -> None:
    """As `kill -HUP` does; and one that SIGHUP does not end comes to its own end."""
    (tmp_path / "pairs.tsv").write_text("".join(f"a {number}\tb {number}\n" for number in range(40)))
    steps = 60 if disowned else 100_000
    words = ["--data", "pairs.tsv", "--preset", "transformer-tiny", "--set", f"train.steps={steps}", "--out", "run"]
    master, terminal = os.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if disowned else signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "train", "translate", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(heedful.__file__).parent.parent)},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=take_terminal,
    )
    os.close(terminal)
    seen = b""
    while b"step 2 " not in seen:
        seen += os.read(master, 4096)
    os.close(master)
    assert process.wait(PATIENCE) == (0 if disowned else 128 + signal.SIGHUP)
    assert [*(tmp_path / "run" / "checkpoints").iterdir()]
