"""A run whose saved model or configuration is damaged, or gone, gets it again from its newest sound checkpoint."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from heedful.apply.lora import UP, merged
from heedful.core.config import from_json
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import model_from
from heedful.run.folder import METRICS, load_weights, parameters, read_adapters, write_adapters, write_model
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, load_newest
from heedful.store.lock import run_lock
from heedful.store.migrations import FORMAT, in_todays_format, migrated, renamed
from heedful.store.model import CONFIG, MODEL, read_config, read_model

FIX = "get the whole folder from a copy, or train it again"


@dataclass(frozen=True)
class Restored:
    """The checkpoint that the model is now of, and the step at which the one that was saved had been measured best, if
    that is known. `same`: whether the weights are those that had been saved. `aside`: where the damaged file was put;
    `removed`: files that were fitted to other weights. `weights`, `config`: whether the checkpoint's were written;
    `config_aside`: where the damaged configuration was put."""

    out: str
    step: int
    best_step: int | None
    same: bool
    aside: str | None
    removed: tuple[str, ...] = ()
    weights: bool = True
    config: bool = False
    config_aside: str | None = None


def restore_model(run: Path, warn: Callable[[str], None], *, fitted: Sequence[str] = ()) -> Restored:
    """Writes what is damaged of a run, its configuration or its model: this has the averaged weights of the newest
    sound checkpoint. What was there is put aside; each checkpoint that is left out is told to `warn`. Files of the run
    that are `fitted` to its weights are removed where these are others now. Raises InputError where the model is sound,
    MissingError where no checkpoint is left, StorageError where other files of the run are damaged."""
    files.need_folder(run)
    with run_lock(run):
        if _sound(run):
            raise InputError("its model is sound", where=str(run), fix=f"use it as it is; heed check {run} says more")
        newest = load_newest(run, warn, finite=True)
        if newest is None:
            raise MissingError("there is no checkpoint to make the model of", where=str(run), fix=FIX)
        try:
            read_config(run)
        except (StorageError, MissingError):
            aside = _write_config(run, newest)
            if _sound(run):
                best = newest.json("state.json")["progress"].get("best_step")
                made = Restored(str(run), newest.step, best, same=True, aside=None, weights=False)
            else:
                made = _written(run, newest, fitted)
            return replace(made, config=True, config_aside=aside)
        return _written(run, newest, fitted)


def _sound(run: Path) -> bool:
    try:
        read_model(run)
    except (StorageError, MissingError):
        return False
    return True


def _write_config(run: Path, newest: Checkpoint) -> str | None:
    """Writes the run's configuration as the checkpoint has it, and returns where the damaged one was put. Raises
    StorageError where the checkpoint does not say the kind of its model."""
    facts = newest.json("state.json")
    if "kind" not in facts:
        what = "damaged, and checkpoints of this age do not say what kind of model it was"
        raise StorageError(what, where=str(run / CONFIG), fix=FIX)
    model, saved = migrated(facts["model"], facts["format"]), facts.get("saved", "")
    config = {"format": FORMAT, "kind": facts["kind"], "model": model[saved] if saved else model}
    aside = _put_aside(run / CONFIG)
    files.write_json(run / CONFIG, config)
    return aside


def _put_aside(path: Path) -> str | None:
    """Gives a damaged file, where there is one, a name of its own: each restoring keeps one more."""
    if not os.path.lexists(path):
        return None
    names = (path.with_name(f"{path.name}.damaged{'' if n == 1 else f'-{n}'}") for n in count(1))
    free = next(name for name in names if not os.path.lexists(name))
    files.rename_folder(path, free)
    return str(free)


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
    aside = _put_aside(run / MODEL)
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


def _measured_after(run: Path, step: int) -> bool:
    """Whether a later model was measured, which may have been better."""
    rows = files.read_json_lines(run / METRICS)
    return any(row["step"] > step and "valid_loss" in row for row in rows)
