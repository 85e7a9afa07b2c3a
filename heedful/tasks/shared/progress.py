"""Shows the progress of a training: a bar at a terminal and in a notebook, a plain line now and then elsewhere."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import counted
from heedful.metrics.names import in_words
from heedful.tasks.shared.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from heedful.run.events import Event, Finished, Note, Trained

EVERY = 15  # seconds between two plain lines
FIRST = 6  # lines before the first step, at most
WIDTH = 20  # of the bar, in characters


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
    """Prints to standard error. Before the first step of a training there are few lines, and no details, unless it is
    `verbose`: the run's log.txt has all."""

    def __init__(self, *, verbose: bool = False) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.verbose, self.score, self.lines = verbose, "", 0

    def say(self, text: str) -> None:
        self.lines += 1
        with outliving_the_terminal():
            self.console.print(printable(text, keep="\n\t"), markup=False)

    def follow(self, events: "Iterator[Event]") -> "Finished | None":
        """Shows the events of a training, and returns the last one; None if the training did not finish."""
        from heedful.run.events import Finished, Measured, Note, Trained

        self.score = ""
        bar = self._bar()
        held: list[str] | None = []  # lines that are too many before the first step; None: it is made
        try:
            if bar is not None:
                with outliving_the_terminal():
                    bar.start()
            last = 0.0
            for event in events:
                if held is not None and not isinstance(event, Note):
                    self._release(held)
                    held = None
                match event:
                    case Note() as now:
                        self._note(now, held)
                    case Trained() as now:
                        if bar is not None:
                            bar.update(bar.task_ids[0], completed=now.step.progress, description=self._line(now))
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
            for line in held or ():  # of a training that did not begin
                self.say(line)
            if bar is not None:
                with outliving_the_terminal():
                    bar.stop()
        return None

    def _bar(self) -> "Progress | None":
        """A bar with a changing line; None where it cannot be drawn."""
        from rich.progress import BarColumn, Progress, TextColumn

        in_notebook = self.console.is_jupyter and find_spec("ipywidgets") is not None
        if not (self.console.is_terminal or in_notebook):
            return None
        columns = BarColumn(bar_width=WIDTH), TextColumn("{task.description}", markup=False)
        bar = Progress(*columns, console=self.console, transient=True)
        bar.add_task("", total=1.0)
        return bar

    def _note(self, note: "Note", held: list[str] | None) -> None:
        """Shows a note, or keeps it in `held` where it may be one too many."""
        if note.detail and not self.verbose:
            return
        if held is None or self.verbose or self.lines < FIRST - 1:
            self.say(note.text)
        else:
            held.append(note.text)

    def _release(self, held: list[str]) -> None:
        """The last line before the first step, or how many there would be."""
        if held:
            self.say(held[0] if len(held) == 1 else f"the run's log.txt has {counted(len(held), 'more line')}")

    def told(self, finished: "Finished", out: Path) -> None:
        """Prints the scores of a finished training, what they mean, and what may come next."""
        for name, each in finished.scores.items():
            numbers = [in_words(key, value) for key, value in each.items() if not isinstance(value, str)]
            self.say(f"{name}: {', '.join(numbers)}")
        self.say(f"{out}: after {finished.minutes:.1f} minutes of training; {out}/README.md tells the rest")
        self.say(finished.verdict)
        heed = os.environ.get("HEED", "heed")
        self.say("\n".join(["next:", *(f"  {heed}{line.removeprefix('heed')}" for line in finished.commands)]))

    def _line(self, now: "Trained") -> str:
        left = (
            "" if now.seconds_left is None else f"{int(now.seconds_left) // 60}:{int(now.seconds_left) % 60:02} left  "
        )
        return (
            f"step {now.step.step:,}  loss {now.step.loss:.3f}  lr {now.lr:.1e}  "
            f"{now.rate:,.0f} {now.counted}/s  {left}{self.score}"
        )
