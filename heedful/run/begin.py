"""What a training needs before its first step: a folder that it can use, a job, and the newest checkpoint."""

import secrets
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.data.parts import Parts
from heedful.errors import HeedError, InputError, MissingError, NonFiniteError, RankError, counted
from heedful.run.card import environment
from heedful.run.division import Division, chosen_division
from heedful.run.events import Note
from heedful.run.job import Job
from heedful.run.learnt import LEARNT, write_learnt
from heedful.run.log import check_tensorboard
from heedful.run.plan import maybe_short, too_large
from heedful.run.prepared import PREPARED, begun_in, is_prepared, need_same_inputs
from heedful.run.recipe import AUTO, Recipe, to_yaml
from heedful.run.resume import changed_since, same_recipe
from heedful.run.sizing import sized_job, with_begun_preset
from heedful.run.state import precision_of
from heedful.run.task import Task
from heedful.run.tokenizers import need_no_other
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, load_newest, versions
from heedful.training.precision import Precision
from heedful.training.ranks import Ranks

LARGE = 1 << 25  # bytes of data whose reading takes a while


@dataclass(frozen=True)
class Begun:
    """A training that can take its next step, on one rank."""

    recipe: Recipe  # with the preset that was chosen
    job: Job[Any, Any, Any]
    newest: Checkpoint | None  # to continue from; None: begin anew
    precision: Precision
    division: Division
    notes: list[Note]
    warning: str = ""  # that memory is too little


def checked(recipe: Recipe, out: Path, *, resume: bool) -> tuple[Recipe, bool]:
    """The recipe, with the preset of the run in `out` if one has begun there, and whether one has. Raises InputError,
    MissingError or StorageError where `out` cannot be used."""
    files.need_access(out)
    recipe = with_begun_preset(recipe, out)
    if recipe.train.tensorboard:
        check_tensorboard()
    begun = (out / "recipe.yaml").is_file()
    if resume and not begun:
        raise MissingError("there is no run to continue", where=str(out), fix="leave out --resume to begin one")
    if begun:
        same_recipe(recipe, out)
    else:
        need_no_other(out, besides=[PREPARED] if begun_in(out / PREPARED) else [])
    return recipe, begun


def reading(recipe: Recipe) -> str:
    """A note to print before the data are read; "" where reading is quick."""
    size = 0 if is_prepared(recipe.data.path) else data_size(recipe)
    apart = ", which are not part of the budget" if recipe.train.minutes is not None else ""
    return f"reading {size / 1e6:,.0f} MB of data: the first step may be minutes away{apart}" if size >= LARGE else ""


def data_size(recipe: Recipe) -> int:
    """The bytes of the recipe's files, as far as these are plainly named."""
    given: str | tuple[str, ...] = recipe.data.path
    size = 0
    for path in map(Path, [given] if isinstance(given, str) else given):
        with suppress(OSError, ValueError):  # a pattern, or no file
            size += sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
    return size


def prepare(task: Task, recipe: Recipe, out: Path, *, begun: bool) -> Iterator[Note]:
    """Prepares the data of a training into its folder, where they are large and the task can. A run that was `begun`
    without that continues without it. Raises InputError, MissingError or StorageError."""
    folder = out / PREPARED
    if is_prepared(folder):
        need_same_inputs(folder)
        return
    given = recipe.data.path
    if task.prepares is None and is_prepared(given):
        what = f"prepared data, which heed train {task.name} does not read"
        raise InputError(what, where=str(given), fix="give the files that they were prepared from")
    if task.prepares is None or begun or data_size(recipe) < LARGE or is_prepared(given):
        return
    preparation = task.prepares()(recipe)
    if not preparation.refused:
        yield Note(preparation.told(folder))
        preparation.into(folder)


def as_notes(lines: Iterable[str], corpus: Parts[Any], *, begun: bool) -> list[Note]:
    """Lines on the data, of which those on how files were read are details; in a training that had `begun`, all."""
    return [Note(line, detail=begun or line in corpus.taken) for line in lines]


def make_job(
    task: Task, recipe: Recipe, corpus: Parts[Any] | None, begun: Path | None, device: torch.device
) -> Job[Any, Any, Any]:
    """The task's job. Chooses a preset where the recipe leaves it open. `begun`: the folder of the run that is
    continued."""
    if task.job is None:
        raise InputError(f"models for {task.name!r} are imported, and not trained here", fix="train another task")
    if recipe.preset != AUTO:
        job = task.job()(recipe, corpus, begun)
    else:
        job, told = sized_job(task, recipe, corpus, device)
        job.notes.append(told)
    if job.teacher is not None:
        job.teacher.check(job.config, job.spec(), job.tokenizer_hash)
    return job


def begin(
    task: Task,
    recipe: Recipe,
    out: Path,
    corpus: Parts[Any] | None,
    job: Job[Any, Any, Any] | None,
    ranks: Ranks,
    device: torch.device,
    told: Collection[Note] = (),
) -> Begun:
    """Prepares a training. The first rank has made its `job` already, and writes the first files of a new run; the
    other ranks make theirs after that. `told` are notes that were printed before. Raises NonFiniteError where all
    checkpoints have weights that are not finite."""
    damaged: list[str] = []
    if job is not None:
        notes = [note for note in as_notes(job.notes, job.corpus, begun=job.begun is not None) if note not in told]
        newest = _newest(out, damaged)
        notes += map(Note, damaged if newest is None else [*damaged, *changed_since(newest, job.recipe, out)])
        precision, why = precision_of(job.recipe, newest, device)
        threads = torch.get_num_threads()
        how = f"training in {precision} on {device.type} with {counted(threads, 'thread')}: {why}"
        notes.append(Note(how, detail=True))
        short = maybe_short(task, job, precision, device, ranks)
        before = 0 if newest is None else newest.json("state.json").get("shares", 0)
        division = chosen_division(job, ranks, device, short, before)
        if before and division.shares != before:
            what = f"this run was begun with {before} shares of a batch, whose gradients were added in one order"
            notes.append(Note(f"{what}: from here on weights may differ from that in their last bits"))
        if newest is None:
            _write_first_files(out, job, environment(device, precision))
        ranks.share([precision, *division])
        need_one_folder(out, ranks)
        need_same(_facts_of(job), ranks)
        warning = too_large(short, division.shard, job.recipe)
        return Begun(job.recipe, job, newest, precision, division, notes, warning)
    precision, *divided = ranks.share()  # by now the first rank has checked everything and begun the run
    need_one_folder(out, ranks)
    try:
        recipe = with_begun_preset(recipe, out)
        job = make_job(task, recipe, corpus, out, device)
        need_same(_facts_of(job), ranks)
    except RankError:
        raise
    except HeedError as error:
        need_same({"error": str(error)}, ranks)
        raise
    return Begun(recipe, job, _newest(out, damaged), precision, Division(*divided), [])


def need_one_folder(out: Path, ranks: Ranks) -> None:
    """Raises RankError, on all ranks, where one does not see the files that the first one writes into `out`, or runs
    other versions."""
    if ranks.size == 1:
        return
    mark = out / f"{files.TEMPORARY}{secrets.token_hex(8)}"
    if ranks.first:
        files.write_text(mark, "")
    sees = (out / ranks.share(mark.name)).is_file()
    everyone = ranks.collect({"host": socket.gethostname(), "sees": sees, "versions": versions()})
    if ranks.first:
        files.remove_tree(mark)
    for number, each in enumerate(everyone):
        rank = f"rank {number}, on {each['host']},"
        if not each["sees"]:
            fix = "give --out on a file system that all ranks share"
            raise RankError(f"{rank} does not see what rank 0 writes", where=str(out), fix=fix)
        for name, version in each["versions"].items():
            if version != (first := everyone[0]["versions"][name]):
                what = f"{rank} has {name} {version}, and rank 0, on {everyone[0]['host']}, has {first}"
                raise RankError(what, fix="install the same on all of them")


def _facts_of(job: Job[Any, Any, Any]) -> dict[str, str]:
    """What must be the same on all ranks."""
    return {
        "training data": job.fingerprint,
        "validation data": job.valid_fingerprint,
        "a tokenizer": job.tokenizer_hash,
    }


def need_same(facts: dict[str, str], ranks: Ranks) -> None:
    """Raises RankError, on all ranks, where the facts of one are not the first one's, or it has an error instead."""
    everyone = ranks.collect({"host": socket.gethostname(), "facts": facts})
    for number, each in enumerate(everyone):
        rank, has = f"rank {number}, on {each['host']}", each["facts"]
        if "error" in has:
            raise RankError(f"{rank}: {has['error']}", fix="give it what rank 0 has")
        for name, value in everyone[0]["facts"].items():
            if has[name] != value:
                what = f"{rank} has {name} other than rank 0, on {everyone[0]['host']}"
                raise RankError(what, fix="let --data be the same files everywhere")


def _newest(out: Path, notes: list[str]) -> Checkpoint | None:
    """The newest good checkpoint. Raises NonFiniteError where all of them have weights that are not finite."""
    newest = load_newest(out, notes.append, finite=True)
    broken = load_newest(out, lambda line: None)
    if broken is not None and (newest is None or newest.step < broken.step):
        what = f"{broken.path}: weights that are not finite, left out"
        if newest is None:
            raise NonFiniteError(what, fix="choose another --out and a lower train.lr")
        notes.append(what)
    return newest


def _write_first_files(out: Path, job: Job[Any, Any, Any], machine: dict[str, object]) -> None:
    """Writes the files that a run's folder has from the start. The recipe comes first: with it, the run can be
    continued."""
    facts = job.facts()  # reads the data once more, so before anything is written
    files.write_text(out / "recipe.yaml", to_yaml(job.recipe))
    files.write_json(out / "environment.json", machine)
    files.write_json(out / "data.json", facts)
    if job.learnt_before:
        files.write_bytes(out / LEARNT, job.learnt_before)
    else:
        write_learnt(out, job.trained_on())
    for name, data in job.tokenizers().items():
        files.write_bytes(out / name, data)
