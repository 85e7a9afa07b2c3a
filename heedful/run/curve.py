"""The course of a training, as a picture."""

from pathlib import Path

from heedful.look.draw import curves, to_bytes
from heedful.run.folder import METRICS
from heedful.run.log import WHEN
from heedful.store import files


def training_curve(folder: Path) -> bytes | None:
    """A PNG of the losses and scores that a run's folder has so far; None where it has none."""
    rows = files.read_json_lines(folder / METRICS)
    measured = [key for row in rows if "valid_loss" in row for key in row if key not in (*WHEN, "valid_loss")]
    if not any({"train_loss", "valid_loss"} & row.keys() for row in rows):
        return None
    return to_bytes(curves(rows, scores=[*dict.fromkeys(measured)], title=folder.name), "png")
