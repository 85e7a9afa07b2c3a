"""A run whose saved model is damaged, or gone, gets one again from its newest sound checkpoint."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from heedful.apply.lora import UP, merged
from heedful.core.config import from_json
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import model_from
from heedful.run.folder import (
    METRICS,
    load_weights,
    parameters,
    read_adapters,
    read_tokenizers,
    tokenizer_files,
    write_adapters,
    write_model,
)
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, load_newest
from heedful.store.lock import run_lock
from heedful.store.migrations import in_todays_format, migrated, renamed
from heedful.store.model import CONFIG, MODEL, read_config, read_model

ASIDE = "model.safetensors.damaged"
FIX = "get the whole folder from a copy, or train it again"


@dataclass(frozen=True)
class Restored:
    """The checkpoint that the model is now of, and the step at which the one that was saved had been measured best, if
    that is known. `same`: whether the weights are those that had been saved. `aside`: where the damaged file was put;
    `removed`: files that were fitted to other weights."""

    out: str
    step: int
    best_step: int | None
    same: bool
    aside: str | None
    removed: tuple[str, ...] = ()


def restore_model(run: Path, warn: Callable[[str], None], *, fitted: Sequence[str] = ()) -> Restored:
    """Writes the averaged weights of the newest sound checkpoint as the run's model. What is damaged is put aside; each
    checkpoint that is left out is told to `warn`. Files of the run that are `fitted` to its weights are removed where
    these are others now. Raises InputError where the model is sound, MissingError where no checkpoint is left,
    StorageError where other files of the run are damaged."""
    files.need_folder(run)
    with run_lock(run):
        try:
            read_model(run)
        except (StorageError, MissingError):
            pass
        else:
            raise InputError("its model is sound", where=str(run), fix=f"use it as it is; heed check {run} says more")
        newest = load_newest(run, warn, finite=True)
        if newest is None:
            raise MissingError("there is no checkpoint to make the model of", where=str(run), fix=FIX)
        return _written(run, newest, fitted)


def _written(run: Path, newest: Checkpoint, fitted: Sequence[str]) -> Restored:
    facts = newest.json("state.json")
    number = facts.get("format", 1)
    config = read_config(run)
    model = model_from(in_todays_format(config))
    saved = facts.get("saved", "")  # the part of the trained model that is the run's
    if "model" in facts:  # the first checkpoints did not say it
        begun = migrated(facts["model"], number)
        begun = begun[saved] if saved else begun
        if model.config != from_json(type(model.config), begun, where=f"{newest.path}/state.json: model"):
            raise StorageError("not the configuration that was trained", where=str(run / CONFIG), fix=FIX)
    tokenizers = read_tokenizers(run)
    if tokenizers is not None:
        known = {tokenizers[0].fingerprint, " ".join(each.fingerprint for each in tokenizers)}
        if facts["tokenizers"] not in known:
            raise StorageError("not the tokenizer that was trained with", where=str(run), fix=FIX)
    about = files.read_json(run / "task.json")
    weights = renamed(newest.tensors("average.safetensors"), number)
    if saved:
        within = f"{saved}."
        weights = {name.removeprefix(within): own for name, own in weights.items() if name.startswith(within)}
    adapted = any(name.endswith(UP) for name in weights)
    if adapted:
        learnt, low_rank = read_adapters(run)
        learnt = {name: weights[name] for name in learnt}
        weights = merged(weights, low_rank)
    load_weights(model, weights, where=str(newest.path))
    aside = None
    if os.path.lexists(run / MODEL):
        free = next(name for name in _names() if not os.path.lexists(run / name))
        files.rename_folder(run / MODEL, run / free)
        aside = str(run / free)
    progress = facts["progress"]
    best = progress.get("best_step")
    same = best == newest.step and not progress.get("best_averaged") and not _measured_after(run, newest.step)
    removed = [] if same else [name for name in fitted if (run / name).is_file()]
    for name in removed:
        files.remove_tree(run / name)
    if adapted:
        write_adapters(run, learnt, low_rank)
    beside = {} if tokenizers is None else tokenizer_files(*tokenizers)
    write_model(run, model, parameters(model), beside | {"task.json": about})
    return Restored(str(run), newest.step, best, same, aside, tuple(removed))


def _names() -> Iterator[str]:
    """What a damaged file may be called: each restoring keeps one more."""
    return (ASIDE if number == 1 else f"{ASIDE}-{number}" for number in count(1))


def _measured_after(run: Path, step: int) -> bool:
    """Whether a later model was measured, which may have been better."""
    rows = files.read_json_lines(run / METRICS)
    return any(row["step"] > step and "valid_loss" in row for row in rows)
