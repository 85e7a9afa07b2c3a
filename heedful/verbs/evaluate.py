"""Scores a model on data, by the usual measures of its task."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heedful.errors import InputError, counted
from heedful.metrics.names import in_words
from heedful.run.learnt import TOLD, known_examples, learnt_from, scored_whole, warning
from heedful.run.task import Scored, Served, Task
from heedful.tasks.load import load_model, row_of_model, row_of_run

SHARE = 0.1  # of examples that were trained on: fewer hardly change a score


def evaluate(
    run: Path, options: object, *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Iterator[Scored]:
    """The scores on each test set, one by one. `options` are of the class that the task's row names."""
    _evaluator(row_of_run(run))
    served = load_model(run, device=device, engine=engine, weights=weights)
    yield from scored(served.changed(run=run), options)  # its name in a comparison


def scored(served: Served, options: object) -> Iterator[Scored]:
    """The same for a loaded model. Warns if the run was trained on the file, or on the files of the folder."""
    data: str | None = getattr(options, "data", None)
    path = Path(data or "")
    run: Path | None = getattr(served, "run", None)
    learnt = learnt_from(run, scored_whole(path)) if data else []  # "" would be the current folder
    for found in _evaluator(row_of_model(served))(served, options):
        if learnt and Path(found.name).name == path.name:
            notes = dict.fromkeys((*found.notes, warning(path, run)))  # a translator tells it too
            found = found._replace(notes=(*notes,))
        else:
            found = found._replace(notes=(*found.notes, *_known(run, found)))
        told = ", ".join(in_words(key, value) for key, value in found.scores.items()) if found.told is None else None
        yield found._replace(told=told or found.told)


def _known(run: Path | None, found: Scored) -> Iterator[str]:
    """A warning if many of the examples were trained on, and no note says so already about the whole file."""
    count, number = known_examples(run, found.examples)
    if count and count >= SHARE * number and not any(TOLD in note for note in found.notes):
        yield f"{found.name}: {count:,} of {counted(number, 'example')}: {run} {TOLD} {'it' if count == 1 else 'them'}"


def _evaluator(row: Task) -> Callable[[Any, Any], Iterator[Scored]]:
    if row.evaluate is None:
        what = "an encoder without a head gives nothing that could be scored"
        raise InputError(what, fix="heed train classify --from it")
    return row.evaluate()
