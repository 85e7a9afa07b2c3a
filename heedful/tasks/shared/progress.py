"""Shows the progress of a training: a changing line at a terminal, a plain line now and then elsewhere."""

import errno
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.metrics.names import in_words
from heedful.tasks.shared.cli import printable

if TYPE_CHECKING:
    from heedful.run.events import Event, Finished, Trained

EVERY = 15  # seconds between two plain lines


@contextmanager
def outliving_the_terminal() -> Iterator[None]:
    """If the terminal has been closed, output inside this block is dropped, and the work continues."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        sys.stderr = io.StringIO()


class ProgressLine:
    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.score = ""

    def say(self, text: str) -> None:
        with outliving_the_terminal():
            self.console.print(printable(text, keep="\n\t"), markup=False)

    def follow(self, events: "Iterator[Event]") -> "Finished | None":
        """Shows the events of a training, and returns the last one; None if the training did not finish."""
        from heedful.run.events import Finished, Measured, Note, Trained

        self.score = ""
        status = self.console.status("") if self.console.is_terminal else None
        try:
            if status is not None:
                with outliving_the_terminal():
                    status.start()
            last = 0.0
            for event in events:
                match event:
                    case Note(text):
                        self.say(text)
                    case Trained() as now:
                        if status is not None:
                            status.update(self._line(now))
                        elif now.step.seconds - last >= EVERY or now.step.step == 1:
                            last = now.step.seconds
                            self.say(self._line(now))
                    case Measured() as now:
                        self.score = "  ".join(in_words(name, value) for name, value in now.scores.items())
                        mark = "  best" if now.best else ""
                        self.say(f"step {now.step:,}  valid loss {now.valid_loss:.3f}  {self.score}{mark}")
                    case Finished() as now:
                        return now
        finally:
            if status is not None:
                with outliving_the_terminal():
                    status.stop()
        return None

    def told(self, finished: "Finished", out: Path) -> None:
        """Prints the scores of a finished training, and where to read more."""
        for name, each in finished.scores.items():
            numbers = [in_words(key, value) for key, value in each.items() if not isinstance(value, str)]
            self.say(f"{name}: {', '.join(numbers)}")
        self.say(f"{out}: after {finished.minutes:.1f} minutes of training; {out}/README.md tells the rest")

    def _line(self, now: "Trained") -> str:
        left = (
            "" if now.seconds_left is None else f"{int(now.seconds_left) // 60}:{int(now.seconds_left) % 60:02} left  "
        )
        return (
            f"step {now.step.step:,}  loss {now.step.loss:.3f}  lr {now.lr:.1e}  "
            f"{now.rate:,.0f} {now.counted}/s  {left}{self.score}"
        )
