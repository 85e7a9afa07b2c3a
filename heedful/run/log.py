"""The records of a training: metrics.jsonl, log.txt, samples, and curves for TensorBoard."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import MissingError, pip_install
from heedful.run.folder import METRICS
from heedful.run.job import Measurement
from heedful.store import files

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

NOTES = "log.txt"
WHEN = ("step", "epoch", "seconds", "averaged")  # the keys of a row that are no measurements


class Log:
    """The log of the run in `out`, which begins or continues after `step`."""

    def __init__(self, out: Path, *, step: int, tensorboard: bool) -> None:
        self.out = out
        self.board = _board(out, step) if tensorboard else None

    def add(self, row: Mapping[str, int | float]) -> None:
        """Appends a line; `row` has a "step"."""
        files.append_line(self.out / METRICS, json.dumps(row, allow_nan=False))
        if self.board is not None:
            for name in row.keys() - set(WHEN):
                self.board.add_scalar(name, row[name], int(row["step"]))
            self.board.flush()

    def note(self, text: str) -> None:
        """Appends lines for people; half a character, as of a file's name in another encoding, is escaped."""
        for line in text.splitlines():
            files.append_line(self.out / NOTES, line.encode(errors="backslashreplace").decode())

    def keep(self) -> None:
        """Flushes the lines to disk: a checkpoint is of no use without them."""
        if (self.out / METRICS).is_file():
            files.fsync_file(self.out / METRICS)

    def measured(self, step: int, found: Measurement, *, averaged: int = 0) -> None:
        """Logs a measurement at a step, or of the mean of `averaged` checkpoints, and writes its sample."""
        mean = {"averaged": averaged} if averaged else {}
        self.add({"step": step, "valid_loss": found.loss, **found.scores, **mean})
        files.make_folder(self.out / "samples")
        place = self.out / "samples" / (f"step-{step}-averaged" if averaged else f"step-{step}")
        if isinstance(found.sample, str):
            files.write_text(place.with_suffix(".txt"), found.sample)
        else:
            files.write_bytes(place.with_suffix(".png"), found.sample)

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def check_tensorboard() -> None:
    """Raises MissingError where TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        what = "TensorBoard is not installed"
        raise MissingError(what, where="train.tensorboard", fix=pip_install("tensorboard"))


def _board(out: Path, step: int) -> "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(out / "tensorboard"), purge_step=step + 1)
