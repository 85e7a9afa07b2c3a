"""The model in a run's folder, by what its task.json says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import unknown_key
from heedful.errors import InputError
from heedful.run.folder import task_name
from heedful.run.task import Served, Task
from heedful.tasks import TASKS


def row_of_run(run: Path) -> Task:
    """The row of the task that a folder's model is for. Raises MissingError or InputError where it is none."""
    name, about = task_name(run)
    return row_saved_as(name, about, where=run)


def row_saved_as(name: object, about: Mapping[str, Any], *, where: Path) -> Task:
    rows = [row for row in TASKS.values() if (row.saved_as or row.name) == name]
    for row in rows:
        if row.marked and row.marked in about:
            return row
    found = next((row for row in rows if row.name == name), None)
    if found is None:
        known = ", ".join(row.name for row in TASKS.values() if not row.saved_as)
        raise InputError(f"a model for {name!r}", where=str(where), fix=f"heedful knows {known}")
    return found


def load_model(run: Path, *, device: str = "cpu", engine: str | None = None) -> Any:
    """The model of a run. With the engine "ctranslate2", a translator on a CPU that searches by that library."""
    row = row_of_run(run)
    if engine is None:
        return row.served().load(run, device=device)
    known = sorted({name for each in TASKS.values() for name in each.engines})
    if engine not in known:
        raise unknown_key(engine, known, where="engine")
    load = row.engines[engine]().load if engine in row.engines else None
    if load is None or device != "cpu":
        what = f"the engine {engine!r} serves translators on a CPU, and this is a model for {row.name!r} on {device!r}"
        raise InputError(what, where=str(run), fix="leave out the engine")
    return load(run)


def row_of_model(served: Served) -> Task:
    """The row of a model that is loaded already."""
    return row_saved_as(served.about.get("task"), served.about, where=Path("task.json"))
