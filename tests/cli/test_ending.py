"""What ends a command from outside takes with it what is unfinished."""

import os
import signal
from pathlib import Path

import pytest

from commands import heed
from heedful import cli
from heedful.run.folder import filled_then_renamed
from heedful.store import files

ENDED = (signal.SIGTERM, signal.SIGHUP)


class NobodyAsked(BaseException):
    """The signal has met what stood there before the command."""


@pytest.fixture(autouse=True)
def before():
    """Signals that a command leaves alone would end the tests."""

    def raise_it(number: int, _: object) -> None:
        raise NobodyAsked(number)

    kept = {number: signal.signal(number, raise_it) for number in ENDED}
    yield raise_it
    for number, handler in kept.items():
        signal.signal(number, handler)


def ended_in_the_midst(number: int, out: Path, monkeypatch: pytest.MonkeyPatch, *, verb: str = "info") -> int:
    """The exit code of a command to which a signal comes while it fills a folder."""

    def fill(**_: object) -> None:
        with filled_then_renamed(out) as growing:
            files.write_text(growing / "half.txt", "half")
            os.kill(os.getpid(), number)

    monkeypatch.setattr(cli.heed.commands[verb], "callback", fill)
    return heed(verb, "run") if verb == "info" else heed(verb, "run", "texts.txt", "--out", out)


@pytest.mark.parametrize("number", ENDED)
def test_nothing_half_written_is_left(number, before, tmp_path, monkeypatch, capsys):
    assert ended_in_the_midst(number, tmp_path / "out", monkeypatch) == 128 + number
    assert capsys.readouterr().err == f"{signal.Signals(number).name}: ended\n"
    assert list(tmp_path.iterdir()) == []
    assert [signal.getsignal(each) for each in ENDED] == [before, before]


def test_ctrl_c_that_a_library_makes_an_error_of_is_ctrl_c(monkeypatch, capsys):
    def export(**_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(cli.heed.commands["info"], "callback", export)
    assert heed("info", "run") == 130
    assert capsys.readouterr().err == ""


def test_what_continues_says_so(tmp_path, monkeypatch, capsys):
    assert ended_in_the_midst(signal.SIGTERM, tmp_path / "out", monkeypatch, verb="back-translate") == 143
    assert capsys.readouterr().err == "interrupted; the same command continues\n"


def test_what_runs_under_nohup_stays(tmp_path, monkeypatch):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert ended_in_the_midst(signal.SIGHUP, tmp_path / "out", monkeypatch) == 0
    assert (tmp_path / "out" / "half.txt").read_text() == "half"


def test_a_second_signal_lets_it_tidy_up(tmp_path, monkeypatch, capsys):
    """As systemd sends SIGHUP after SIGTERM."""
    removed = files.remove_tree

    def remove(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        removed(path)

    monkeypatch.setattr(files, "remove_tree", remove)
    assert ended_in_the_midst(signal.SIGTERM, tmp_path / "out", monkeypatch) == 143
    assert list(tmp_path.iterdir()) == []


def test_another_error_of_what_was_broken_off_is_not_told(tmp_path, monkeypatch, capsys):
    def broken_off(**_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException as error:
            raise ValueError("a library's") from error

    monkeypatch.setattr(cli.heed.commands["info"], "callback", broken_off)
    assert heed("info", "run") == 143
    assert capsys.readouterr().err == "SIGTERM: ended\n"
