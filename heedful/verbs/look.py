"""Looking inside a model: its attention as a picture."""

from collections.abc import Mapping
from pathlib import Path

from heedful.errors import InputError
from heedful.run.task import Looked, NamedWeights, Served, Task
from heedful.tasks import TASKS
from heedful.tasks.load import load_model, row_of_model, row_of_run

KINDS = ("png", "svg", "html", "json")


def refuse_blind(run: Path) -> None:
    """Raises InputError for a run whose model has no picture of its attention, MissingError where there is no run."""
    row = row_of_run(run)
    if row.inside.look is None:
        raise blind(row, str(run))


def look(run: Path, text: str, kind: str, options: object, *, device: str = "cpu") -> Looked:
    """What a model looks at while it reads `text`, or the picture in that file. `kind` is one of KINDS, and `options`
    are of the class that the task's row names."""
    refuse_blind(run)
    return look_into(load_model(run, device=device), text, kind, options)


def look_into(served: Served, given: str, kind: str, options: object) -> Looked:
    """The same for a loaded model. Raises InputError for a model without such a picture."""
    row = row_of_model(served)
    if row.inside.look is None:
        raise blind(row, "task.json")
    return row.inside.look()(served, given, kind, options)


def weights_of(served: Served, given: str, options: object) -> Mapping[str, NamedWeights]:
    """The attention weights of such a picture, by layer."""
    row = row_of_model(served)
    if row.inside.attention is None:
        known = ", ".join(each.name for each in TASKS.values() if each.inside.attention and not each.saved_as)
        what = f"a model for {row.name!r}, which gives no weights of attention"
        raise InputError(what, where="task.json", fix=f"ask one for {known}")
    return row.inside.attention()(served, given, options)


def blind(row: Task, where: str) -> InputError:
    known = ", ".join(each.name for each in TASKS.values() if each.inside.look is not None and not each.saved_as)
    return InputError(f"a model for {row.name!r}", where=where, fix=f"look at one for {known}")
