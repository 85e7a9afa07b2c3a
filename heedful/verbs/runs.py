"""All runs of a folder, side by side, and how each went."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import HeedError, MissingError
from heedful.run.folder import read_saved
from heedful.store import files
from heedful.store.lock import is_held
from heedful.tasks.load import row_saved_as
from heedful.verbs.info import headlines

MOST_POINTS = 1000  # of a curve
MOST_TEXT = 1 << 20  # bytes of a file that is shown
METRICS, RECIPE, CARD = "metrics.jsonl", "recipe.yaml", "README.md"
MARKS = ("task.json", RECIPE, METRICS)  # any of which makes a folder a run

Row = dict[str, float | None]


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """A record of each run in a folder, by name. What cannot be read of one is told in its `trouble`."""
    found = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [_record(run) for run in found if any((run / mark).is_file() for mark in MARKS)]


def _record(run: Path) -> dict[str, Any]:
    made: dict[str, Any] = {"name": run.name, "task": None, "parameters": None, "training": is_held(run), "scores": {}}
    try:
        if (run / "task.json").is_file():
            saved = read_saved(run)
            row = row_saved_as(saved.about.get("task"), saved.about, where=run)
            made |= {"task": row.name, "parameters": saved.parameters, "scores": headlines(run)}
        last = curve_of(run)[-1:]
        made |= {"steps": last[0]["step"] if last else None}
        finished = files.read_json(run / "scores.json") if (run / "scores.json").is_file() else {}
        made |= {"minutes": finished.get("minutes"), "finished": bool(finished)}
    except (HeedError, KeyError, TypeError, AttributeError) as error:
        made["trouble"] = str(error) if isinstance(error, HeedError) else "its files are not those of a run"
    return made


def read_one(folder: Path, name: str) -> dict[str, Any]:
    """A run as a whole: its record, curve, recipe, card and scores. Raises MissingError for a name that is no run's,
    and StorageError."""
    named = {record["name"]: record for record in list_runs(folder)}
    if name not in named:
        raise MissingError(f"no run is called {name[:100]!r}", where=f"{folder}/", fix="list the runs")
    run = folder / name
    texts = {"recipe": _text(run / RECIPE), "card": _text(run / CARD)}
    scores = files.read_json(run / "scores.json").get("scores") if (run / "scores.json").is_file() else {}
    return {**named[name], **texts, "all_scores": scores, "curve": thinned(curve_of(run))}


def curve_of(run: Path) -> list[Row]:
    """The measurements of a run, each with its step; a line that is being written is left out. Raises StorageError."""
    if not (run / METRICS).is_file():
        return []
    rows = [files.parse_json(line.encode(), where=run / METRICS) for line in files.read_whole_lines(run / METRICS)]
    return [{key: _number(value) for key, value in row.items()} for row in rows if isinstance(row, Mapping)]


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known and isinstance(value, int | float) else None


def thinned(rows: list[Row]) -> list[Row]:
    """At most so many of the rows of training, evenly, with the first and the last; all that were measured."""
    plain = [i for i, row in enumerate(rows) if "valid_loss" not in row]
    if len(plain) <= MOST_POINTS:
        return rows
    kept = {plain[round(i * (len(plain) - 1) / (MOST_POINTS - 1))] for i in range(MOST_POINTS)}
    return [row for i, row in enumerate(rows) if i in kept or "valid_loss" in row]


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    return files.read_bytes(path, limit=MOST_TEXT).decode("utf-8", "replace")
