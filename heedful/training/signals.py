"""SIGINT, SIGTERM, SIGUSR1 and SIGHUP as requests to stop, which a training follows at the next safe place."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

WISHES = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


class Leave(BaseException):
    """Raised by a signal inside a block that may be abandoned (`Signals.giving_up`)."""


class Signals:
    """Inside a `with`, a signal sets `number`, and a second SIGINT raises KeyboardInterrupt.

    SIGHUP stays ignored where it is ignored, as under nohup. Only the main thread receives signals: in another one this
    does nothing.
    """

    def __init__(self) -> None:
        self.number = 0  # of the first signal that came; 0: none yet
        self._giving_up = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            stays = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            wishes = [number for number in WISHES if not (stays and number == signal.SIGHUP)]
            self._before = {number: signal.signal(number, self._take) for number in wishes}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def giving_up(self) -> Iterator[None]:
        """Inside this block a signal raises Leave at once; so does entering it after a signal.

        Any other exception that the block raises after a signal becomes Leave too: a library that was interrupted may
        have turned it into another error. Only a KeyboardInterrupt is raised as it is.
        """
        if self.number:
            raise Leave
        try:
            self._giving_up = True
            yield
        except Exception as error:
            if not self.number:
                raise
            raise Leave from error
        finally:
            self._giving_up = False

    def _take(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.number:
            raise KeyboardInterrupt
        self.number = self.number or number
        if self._giving_up:
            raise Leave
