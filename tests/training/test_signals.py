"""Signals as a wish to leave: kept until a safe place, or at once where work can be given up."""

import os
import signal
from collections.abc import Iterator

import pytest

from heedful.training.signals import Leave, Signals


def test_a_signal_is_kept() -> None:
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signals.number == signal.SIGUSR1
        with pytest.raises(Leave), signals.giving_up():
            raise AssertionError("came before, and so nothing is begun")


@pytest.fixture
def heard() -> Iterator[None]:
    """SIGHUP is not ignored, as it is for all that nohup runs."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_work_is_given_up(wish: signal.Signals) -> None:
    with Signals() as signals:
        with pytest.raises(Leave), signals.giving_up():
            os.kill(os.getpid(), wish)
        signals.number = 0
        os.kill(os.getpid(), wish)  # here nothing is given up


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not signals.number
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_library_makes_of_it() -> None:
    def library() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except Leave as leave:
            raise RuntimeError("a call back failed") from leave

    with Signals() as signals, pytest.raises(Leave), signals.giving_up():
        library()


def test_errors_stay() -> None:
    with Signals() as signals, pytest.raises(RuntimeError, match="of its own"), signals.giving_up():
        raise RuntimeError("of its own")


def test_the_second_interrupt_ends_it() -> None:
    def cleans_up() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    with Signals() as signals, pytest.raises(KeyboardInterrupt), signals.giving_up():
        cleans_up()
