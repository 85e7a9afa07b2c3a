"""All runs in some folders, and the curves of each."""

import math
import os
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from heedful.errors import HeedError, MissingError, StorageError
from heedful.run.card import names_alone
from heedful.run.folder import METRICS, read_saved
from heedful.run.recipe import read_yaml
from heedful.store import files
from heedful.store.lock import is_held
from heedful.tasks import TASKS
from heedful.tasks.load import row_saved_as
from heedful.verbs.info import headlines

MOST_POINTS = 1000  # of a curve
MOST_TEXT = 1 << 20  # bytes of a file that is shown
MOST_SETTINGS = 1000  # of a recipe
RECIPE, CARD, SCORES = "recipe.yaml", "README.md", "scores.json"
MARKS = ("task.json", RECIPE, METRICS)  # any of which makes a folder a run
WEIGHED = ("config.json", "task.json", "model.safetensors")  # the files that give a run's task and size
NO_RUN = "its files are not those of a run"

Row = dict[str, float | None]


def list_runs(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """A record of each run in these folders, by name. If something cannot be read, its `trouble` says so."""
    return [_record(name, run) for name, run in _runs_in(folders).items()]


def read_one(folders: Sequence[Path], name: str) -> dict[str, Any]:
    """Everything about a run: its record, curve, recipe (as a text, and as `settings` by their keys), card and scores,
    with names of files in place of their paths. If something cannot be read, `trouble` says so. Raises MissingError for
    an unknown name."""
    found = _runs_in(folders)
    if name not in found:
        raise MissingError(f"no run is called {name[:100]!r}", where=f"{folders[0]}/", fix="list the runs")
    run = found[name]
    made = _record(name, run)
    rows = list[Row]()
    try:
        made |= {"recipe": names_alone(_text(run / RECIPE), run), "card": names_alone(_text(run / CARD), run)}
        made["settings"] = settings_of(made["recipe"])
        rows = thinned(timed(curve_of(run), made["minutes"]))
    except HeedError as error:
        made.setdefault("trouble", _sayable(names_alone(str(error), run)))
    return {"recipe": "", "settings": {}, "card": "", **made, "all_scores": _scores(run), "curve": rows}


def settings_of(recipe: str) -> dict[str, Any]:
    """The settings of a recipe, by keys such as "train.lr". Raises InputError for what is not YAML."""
    settings: dict[str, Any] = {}
    todo: list[tuple[str, Any]] = [("", read_yaml(recipe, where=RECIPE))]
    for _ in range(MOST_SETTINGS):  # aliases of YAML may make endlessly many
        if not todo:
            break
        name, value = todo.pop()
        if isinstance(value, Mapping):
            todo += [(f"{name}.{key}".lstrip("."), each) for key, each in reversed([*value.items()])]
        elif name:
            settings[name] = value
    return settings


def curve_of(run: Path) -> list[Row]:
    """The measurements of a run, each with its step; without a line that is just being written. Raises StorageError."""
    rows = files.read_json_lines(run / METRICS)
    if not all(isinstance(row, Mapping) and _number(row.get("step")) is not None for row in rows):
        raise StorageError("a measurement has no step", where=str(run / METRICS), fix="remove its line")
    return [{key: _number(value) for key, value in row.items()} for row in rows]


def timed(rows: Sequence[Row], minutes: float | None = None) -> list[Row]:
    """Each row with its `minutes`. Rows without seconds are interpolated by their steps between the nearest rows that
    have them; the beginning and, if `minutes` are given, the end are known too. None: not known."""
    known = [(0.0, 0.0)]
    last = 0.0 if minutes is None or not rows else rows[-1]["step"] or 0.0
    for row in [*rows, {"step": last, "seconds": None if minutes is None else 60 * minutes}]:
        step, seconds = row["step"] or 0.0, row.get("seconds")
        if seconds is not None and step > known[-1][0] and seconds >= known[-1][1]:
            known.append((step, seconds))
    return [{**row, "minutes": _minute(row, known)} for row in rows]


def _minute(row: Row, known: Sequence[tuple[float, float]]) -> float | None:
    """Interpolated between the two known (step, seconds) around the row, or extrapolated from the last two."""
    if (seconds := row.get("seconds")) is not None:
        return seconds / 60
    if len(known) < 2:
        return None
    step = row["step"] or 0.0
    after = min(bisect_left(known, step, lo=1, key=itemgetter(0)), len(known) - 1)
    (first, began), (second, ended) = known[after - 1], known[after]
    return (began + (ended - began) * (step - first) / (second - first)) / 60


def thinned(rows: Sequence[Row]) -> list[Row]:
    """At most MOST_POINTS rows of training, and as many of measuring, evenly chosen, with the first and the last."""
    kept = set[int]()
    for measured in (False, True):
        own = [i for i, row in enumerate(rows) if ("valid_loss" in row) == measured]
        most = min(len(own), MOST_POINTS)
        kept |= {own[round(i * (len(own) - 1) / max(1, most - 1))] for i in range(most)}
    return [rows[i] for i in sorted(kept)]


def _runs_in(folders: Sequence[Path]) -> dict[str, Path]:
    """The folders of runs, by printable names. A name that was in an earlier folder already has its own folder behind
    it."""
    runs: dict[str, Path] = {}
    for folder in folders:
        with files.storage_errors(folder):
            found = sorted(folder.iterdir()) if folder.is_dir() else []
        for run in found:
            if any(os.path.isfile(run / mark) for mark in MARKS):
                name = _sayable(run.name)
                while name in runs:
                    name += f" ({_sayable(folder.resolve().name)})"
                runs[name] = run
    return runs


def _sayable(text: str) -> str:
    """The text, with U+FFFD for bytes of a path that are not UTF-8."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _record(name: str, run: Path) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "task": None,
        "counted": None,
        "changed": max(filter(None, (_changed(run / file) for file in (*MARKS, SCORES))), default=None),
        "parameters": None,
        "steps": None,
        "minutes": None,
        "training": is_held(run),
        "finished": False,
        "scores": {},
    }
    try:
        made["task"] = _task_of(run)
        rows = timed(curve_of(run))
        made |= {"steps": rows[-1]["step"], "minutes": rows[-1]["minutes"]} if rows else {}
        if (run / "task.json").is_file():
            task, parameters = _task_and_size(run, tuple(_stamp(run / file) for file in WEIGHED))
            made |= {"task": task, "parameters": parameters, "scores": headlines(run)}
        if (run / SCORES).is_file() and not made["training"]:
            told = files.read_json(run / SCORES)
            made |= {"steps": _number(told["steps"]), "minutes": _number(told["minutes"]), "finished": True}
    except HeedError as error:
        made["trouble"] = _sayable(names_alone(str(error), run))
    except (KeyError, TypeError, AttributeError):
        made["trouble"] = NO_RUN
    made["counted"] = TASKS[made["task"]].counted if made["task"] in TASKS else None
    return made


def _task_of(run: Path) -> str | None:
    """The task of a recipe: that of a run which has no model yet."""
    found = re.search(r"(?m)^task: ([\w-]+)$", _text(run / RECIPE))
    return found and found[1]


def _changed(path: Path) -> float | None:
    """When a file was changed last, in seconds since 1970."""
    with suppress(OSError):
        return path.stat().st_mtime
    return None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Identifies a version of a file; it changes if the file is replaced."""
    if not path.is_file():
        return None
    told = path.stat()
    return told.st_ino, told.st_size, told.st_mtime_ns


@lru_cache(maxsize=1024)
def _task_and_size(run: Path, stamps: tuple[tuple[int, int, int] | None, ...]) -> tuple[str, int]:
    """The task of a run's model and the number of its parameters, cached until the files change: this reads all
    weights, and a page may list the runs every second."""
    saved = read_saved(run)
    return row_saved_as(saved.about.get("task"), saved.about, where=run).name, saved.parameters


def _scores(run: Path) -> Any:
    """The scores on all test sets; empty where they cannot be read (the record says so)."""
    try:
        return files.read_json(run / SCORES)["scores"] if (run / SCORES).is_file() else {}
    except (HeedError, KeyError, TypeError):
        return {}


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known and isinstance(value, int | float) else None


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    return files.read_bytes(path, limit=MOST_TEXT).decode("utf-8", "replace")
