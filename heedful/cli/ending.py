"""Makes SIGTERM and SIGHUP end a command as Ctrl-C does, so that half-written files are removed."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from heedful.errors import HeedError


class Ended(BaseException):
    """The signal with this number has arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Ending:
    """Inside a `with` block in the main thread, the first of these signals raises Ended, and later ones do nothing.

    A signal that is ignored stays ignored, such as SIGHUP under nohup. Another exception that leaves the block after a
    signal becomes Ended, and after Ctrl-C KeyboardInterrupt: an interrupted library may raise an error of its own.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal; 0: none yet
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._end)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.number and isinstance(error, Exception):
            raise Ended(self.number) from error
        came = error
        while isinstance(came, Exception) and not isinstance(came, HeedError):
            came = came.__context__
        if isinstance(came, KeyboardInterrupt) and came is not error:
            raise KeyboardInterrupt from error

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self.number:
            self.number = number
            raise Ended(number)
