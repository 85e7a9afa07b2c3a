"""Looking inside a model: who looked at whom, or at what, as a picture."""

from pathlib import Path

from heedful.errors import InputError
from heedful.run.task import Looked
from heedful.tasks import TASKS
from heedful.tasks.load import load_model, row_of_run

KINDS = ("png", "svg", "html")


def refuse_blind(run: Path) -> None:
    """Raises InputError for a run whose model cannot be looked into, MissingError where there is none."""
    row = row_of_run(run)
    if row.look is None:
        known = ", ".join(each.name for each in TASKS.values() if each.look is not None and not each.saved_as)
        raise InputError(f"a model for {row.name!r}", where=str(run), fix=f"look at one for {known}")


def look(run: Path, text: str, kind: str, options: object, *, device: str = "cpu") -> Looked:
    """What a model looked at while it read `text`, or the picture in that file; `kind` is one of KINDS, and `options`
    are of the kind that the task's row names."""
    refuse_blind(run)
    row = row_of_run(run)
    assert row.look is not None
    return row.look()(load_model(run, device=device), text, kind, options)
