"""What stands before the first step of a training: a folder that can be used, a job, its newest checkpoint."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.data.parts import Parts
from heedful.errors import InputError, MissingError, NonFiniteError, counted
from heedful.run.card import environment
from heedful.run.folder import need_no_other
from heedful.run.job import Job
from heedful.run.learnt import write_learnt
from heedful.run.log import check_tensorboard
from heedful.run.recipe import AUTO, Recipe, to_yaml
from heedful.run.resume import changed_since, same_recipe
from heedful.run.sizing import sized_job, with_begun_preset
from heedful.run.state import precision_of
from heedful.run.task import Task
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, load_newest
from heedful.training.precision import Precision
from heedful.training.ranks import Ranks

LARGE = 1 << 25  # bytes of data whose reading takes a while


@dataclass(frozen=True)
class Begun:
    """A training that can take its next step, on one rank."""

    recipe: Recipe  # its preset chosen
    job: Job[Any, Any, Any]
    newest: Checkpoint | None  # to continue from; None: from the start
    precision: Precision
    notes: list[str]


def checked(recipe: Recipe, out: Path, *, resume: bool) -> tuple[Recipe, bool]:
    """The recipe with the preset that the run in `out` was begun with, and whether there is such a run. Raises
    InputError, MissingError or StorageError where `out` cannot be used."""
    recipe = with_begun_preset(recipe, out)
    if recipe.train.tensorboard:
        check_tensorboard()
    begun = (out / "recipe.yaml").is_file()
    if resume and not begun:
        raise MissingError("there is no run to continue", where=str(out), fix="leave out --resume to begin one")
    if begun:
        same_recipe(recipe, out)
    else:
        need_no_other(out)
    files.need_access(out)
    return recipe, begun


def reading(recipe: Recipe) -> str:
    """What is told before the data are read; "" where that is soon done."""
    if recipe.train.minutes is not None:
        return "reading the data, which is not part of the minutes"
    given: str | tuple[str, ...] = recipe.data.path
    size = 0
    for path in [given] if isinstance(given, str) else given:
        with suppress(OSError, ValueError):  # of a pattern, or what is no file
            size += Path(path).stat().st_size
    return f"reading {size / 1e6:,.0f} MB of data: the first step may be minutes away" if size >= LARGE else ""


def first_look(task: Task, recipe: Recipe, begun: Path | None) -> tuple[Parts[Any] | None, list[str]]:
    """The data, where they are read before the job is made, and what is told of them then."""
    return (None, []) if task.job is None else task.job().first_look(recipe, begun)


def make_job(
    task: Task, recipe: Recipe, corpus: Parts[Any] | None, begun: Path | None, device: torch.device
) -> Job[Any, Any, Any]:
    """A task's job by a recipe, whose preset it chooses where the recipe leaves it open. `begun`: the folder of a run
    that is continued."""
    if task.job is None:
        raise InputError(f"models for {task.name!r} are imported, and not trained here", fix="train another task")
    if recipe.preset != AUTO:
        return task.job()(recipe, corpus, begun)
    job, told = sized_job(task, recipe, corpus, device)
    job.notes.append(told)
    return job


def begin(
    task: Task,
    recipe: Recipe,
    out: Path,
    corpus: Parts[Any] | None,
    job: Job[Any, Any, Any] | None,
    ranks: Ranks,
    device: torch.device,
    told: Collection[str] = (),
) -> Begun:
    """Writes the first files of a training that begins: on the first rank, which has made its `job`, and `told` some of
    its notes. The others make theirs when that is done. Raises NonFiniteError where there are checkpoints, but of
    broken weights alone."""
    notes: list[str] = []
    if job is not None:
        notes += [note for note in job.notes if note not in told]
        newest = _newest(out, notes)
        notes += [] if newest is None else changed_since(newest, job.recipe, out)
        precision, why = precision_of(job.recipe, newest, device)
        threads = torch.get_num_threads()
        notes.append(f"training in {precision} on {device.type} with {counted(threads, 'thread')}: {why}")
        if newest is None:
            _write_first_files(out, job, environment(device, precision))
        ranks.share(precision)
        return Begun(job.recipe, job, newest, precision, notes)
    precision = ranks.share()  # the first rank has found no fault with anything, and the run is begun
    recipe = with_begun_preset(recipe, out)
    job = make_job(task, recipe, corpus, out, device)
    return Begun(recipe, job, _newest(out, notes), precision, notes)


def _newest(out: Path, notes: list[str]) -> Checkpoint | None:
    """The newest good checkpoint. Raises NonFiniteError where there are some, but of broken weights alone."""
    newest = load_newest(out, notes.append, finite=True)
    broken = load_newest(out, lambda line: None)
    if broken is not None and (newest is None or newest.step < broken.step):
        what = f"{broken.path}: weights that are not finite, left out"
        if newest is None:
            raise NonFiniteError(what, fix="choose another --out and a lower train.lr")
        notes.append(what)
    return newest


def _write_first_files(out: Path, job: Job[Any, Any, Any], machine: dict[str, object]) -> None:
    """Writes what a run's folder holds from its first moment, the recipe first: with it, the run can be continued."""
    facts = job.facts()  # which reads the data once more: nothing is written until all is known
    files.write_text(out / "recipe.yaml", to_yaml(job.recipe))
    files.write_json(out / "environment.json", machine)
    files.write_json(out / "data.json", facts)
    write_learnt(out, job.trained_on())
    for name, data in job.tokenizers().items():
        files.write_bytes(out / name, data)
