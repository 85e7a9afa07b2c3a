"""Looking inside a model: who looked at whom, or at what, as a picture."""

from collections.abc import Mapping
from pathlib import Path

from heedful.errors import InputError
from heedful.run.task import Looked, NamedWeights, Served, Task
from heedful.tasks import TASKS
from heedful.tasks.load import load_model, row_of_model, row_of_run

KINDS = ("png", "svg", "html", "json")


def refuse_blind(run: Path) -> None:
    """Raises InputError for a run whose model cannot be looked into, MissingError where there is none."""
    row = row_of_run(run)
    if row.inside.look is None:
        raise blind(row, str(run))


def look(run: Path, text: str, kind: str, options: object, *, device: str = "cpu") -> Looked:
    """What a model looked at while it read `text`, or the picture in that file; `kind` is one of KINDS, and `options`
    are of the kind that the task's row names."""
    refuse_blind(run)
    return look_into(load_model(run, device=device), text, kind, options)


def look_into(served: Served, given: str, kind: str, options: object) -> Looked:
    """The same of a model that is loaded already. Raises InputError for one that cannot be looked into."""
    row = row_of_model(served)
    if row.inside.look is None:
        raise blind(row, "task.json")
    return row.inside.look()(served, given, kind, options)


def weights_of(served: Served, given: str, options: object) -> Mapping[str, NamedWeights]:
    """What such a picture is drawn from, by the names of the layers."""
    row = row_of_model(served)
    if row.inside.attention is None:
        known = ", ".join(each.name for each in TASKS.values() if each.inside.attention and not each.saved_as)
        what = f"a model for {row.name!r}, which gives no weights of attention"
        raise InputError(what, where="task.json", fix=f"ask one for {known}")
    return row.inside.attention()(served, given, options)


def blind(row: Task, where: str) -> InputError:
    known = ", ".join(each.name for each in TASKS.values() if each.inside.look is not None and not each.saved_as)
    return InputError(f"a model for {row.name!r}", where=where, fix=f"look at one for {known}")
