"""What a checkpoint of a training holds, and how a training continues from one.

It holds everything that a step depends on: float32 weights, optimizer, average, the position in the data, the
measurements so far. Random numbers need no state: they come from counters (`training/loop.py`).
"""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.core.config import from_json, to_json
from heedful.errors import InputError, StorageError
from heedful.models import kind_of_config
from heedful.run.folder import METRICS, load_weights
from heedful.run.job import Job
from heedful.run.recipe import R, Recipe, read_yaml, recipe_text, to_yaml, validated
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, Part, save_checkpoint
from heedful.store.migrations import FORMAT, migrated, named_before, renamed
from heedful.training.loop import Step, TrainState
from heedful.training.loss import Sum, added
from heedful.training.optim import trained_parameters
from heedful.training.ranks import Ranks

# Keys of `train` that may change when a run is continued.
FREE = {"steps", "epochs", "minutes", "eval_every", "patience", "save_every", "keep", "non_finite"}
FREE |= {"average_last", "tensorboard", "shard"}
# Keys of paths, which may have moved: what is learnt from and validated on is held to what it was by its content.
PATHS = {"data.path", "data.valid", "data.test", "data.mix", "data.synthetic", "start_from", "distil.teacher"}
# Keys that are in what a checkpoint holds.
FIXED = {"train.seed", "train.optimizer", "train.precision"}
BRING_BACK = "bring back the recipe.yaml that this run was begun with, or choose another --out"
POSITION = ("seed", "step", "epoch", "batch", "tokens", "seconds", "left_out")
REMEMBERED = "remembered.safetensors"  # of a job whose batches come of the model
MARGIN = 1 << 24  # bytes beside the checkpoints: plots, samples, metrics


@dataclass
class Progress:
    """What a run remembers between steps, besides the training's own state."""

    best: float | None = None  # the rank of the model that is kept, its loss, and its step
    best_loss: float = 0.0
    best_step: int = 0
    best_averaged: bool = False  # whether that model is the mean of the last checkpoints
    averaged: int = 0  # the step at which that mean was last measured
    worse: int = 0  # measurements since the best one
    tenth: int = 0  # of the training, at the last step
    due_step: int = 0  # the last step at which a measurement was due, made or not
    measured: int = 0  # the step of the last measurement
    saved: int = 0  # the step of the last checkpoint
    due: bool = False  # a measurement that a signal interrupted, still to be made
    share: float = 0.0  # of the validation data that is measured on; 0: not chosen yet
    measuring: float = 0.0  # seconds of all measurements so far
    cost: float = 0.0  # seconds of the last one
    loss: float = 0.0  # summed since the last line of metrics.jsonl
    count: int = 0
    beside: dict[str, Sum] = field(default_factory=dict)  # the same for `Loss.beside`

    def add(self, step: Step) -> None:
        """Adds a step's loss and further sums, for the next line of metrics.jsonl."""
        self.loss, self.count = self.loss + step.loss * step.count, self.count + step.count
        self.beside = added(self.beside, step.beside)

    def exceeded_by(self, rank: float, loss: float, floor: float) -> bool:
        """Whether a model is better than the best so far: by its rank, or where neither is above `Job.floor`, by its
        loss."""
        if self.best is None:
            return True
        return loss < self.best_loss if max(rank, self.best) <= floor else rank > self.best

    def means(self) -> dict[str, float]:
        """The means of what was added since the last call."""
        found = {
            "train_loss": self.loss / max(1, self.count),
            **{name: own.mean for name, own in sorted(self.beside.items())},
        }
        self.loss, self.count, self.beside = 0.0, 0, {}
        return found

    def measures(self, step: Step, every: int | None) -> bool:
        """Whether a measurement is due now: every `every` steps, or ten times in all."""
        if every is not None:
            due = step.step % every == 0
        else:
            before, self.tenth = self.tenth, int(step.progress * 10)
            due = self.tenth > before
        self.due_step = step.step if due else self.due_step
        return due

    def saves(self, step: int, every: int | None) -> bool:
        """Whether to save after this step: every `every` steps, or whenever a measurement is due."""
        return step % every == 0 if every is not None else self.due_step == step


def begun_recipe(kind: type[R], out: Path) -> R:
    """The recipe of the run in `out`, of this class."""
    where = str(out / "recipe.yaml")
    return validated(kind, read_yaml(recipe_text(out), where=where), where=where)


def same_recipe(recipe: Recipe, out: Path) -> None:
    """Raises InputError where the recipe is not that of the run in `out`, apart from what may change."""
    where, text = str(out / "recipe.yaml"), recipe_text(out)
    data = read_yaml(text, where=where)
    task = data.get("task") if isinstance(data, dict) else None
    same_task = task == recipe.task
    saved = validated(type(recipe), data, where=where).model_dump(mode="json") if same_task else {"task": task}
    if changed := _changed(saved, recipe):
        key = "task" if "task" in changed else next(iter(changed))
        old, new = changed[key]
        what = f"this run was begun with {key} = {old!r}, not {new!r}"
        raise InputError(what, where=str(out), fix="choose another --out, or the same recipe to continue")


def _changed(saved: dict[str, Any], recipe: Recipe) -> dict[str, tuple[object, object]]:
    """What differs of what may not, by its key: what was saved, and what this recipe says."""
    free = {f"train.{key}" for key in FREE}
    found = differences(saved, recipe.model_dump(mode="json"))
    return {key: both for key, both in found.items() if key not in free and not (key in PATHS and _moved(*both))}


def changed_since(checkpoint: Checkpoint, recipe: Recipe, out: Path) -> list[str]:
    """What recipe.yaml says otherwise than at this checkpoint, where somebody has written into it, in a line. Raises
    InputError for a key that cannot change under way."""
    saved = checkpoint.json("state.json").get("recipe")  # older ones do not say
    if saved is None:
        return []
    both_have = flat(saved).keys() & flat(recipe.model_dump(mode="json")).keys()  # recipes gain and lose keys
    changed = {key: both for key, both in _changed(saved, recipe).items() if key in both_have}
    for key in changed.keys() & FIXED:
        old, new = changed[key]
        raise InputError(f"this run was begun with {key} = {old!r}, not {new!r}", where=str(out), fix=BRING_BACK)
    said = ", ".join(f"{key} = {new!r} (was {old!r})" for key, (old, new) in changed.items())
    return [f"recipe.yaml was changed since step {checkpoint.step:,}: from here on {said}"] if said else []


def _moved(old: object, new: object) -> bool:
    """Whether paths differ only in their folders."""
    return _names(old) == _names(new)


def _names(paths: Any) -> list[str]:
    return [Path(path).name for path in ([paths] if isinstance(paths, str) else paths or [])]


def keep_recipe(recipe: Recipe, out: Path) -> None:
    """Writes recipe.yaml again if the budget or the folders of the data have changed."""
    if begun_recipe(type(recipe), out) != recipe:
        files.write_text(out / "recipe.yaml", to_yaml(recipe))


def flat(data: dict, prefix: str = "") -> dict[str, object]:
    """Nested keys joined by dots."""
    out: dict[str, object] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def differences(old: dict, new: dict) -> dict[str, tuple[object, object]]:
    """What differs between two nested dicts: by dotted keys, sorted, both values, None for a missing one."""
    one, other = flat(old), flat(new)
    both = {key: (one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())}
    return {key: (was, now) for key, (was, now) in both.items() if was != now}


def save_state(
    out: Path, state: TrainState, progress: Progress, job: Job[Any, Any, Any], *, precision: str, ranks: Ranks
) -> None:
    """Writes the checkpoint of this step; where the ranks hold pieces of the state, all of them write it together, and
    otherwise the first one does. Raises StorageError."""
    placement = state.placement
    if placement is None and not ranks.first:
        return
    held = {
        "weights": {name: master.detach() for name, master in state.optimizer.named_masters().items()},
        "average": state.average.weights(frozen=ranks.first),
        "optimizer": state.optimizer.state(),
    }
    contents: dict[str, Any] = {}
    if placement is None:
        contents = {f"{name}.safetensors": tensors for name, tensors in held.items()}
    elif placement.writes:
        begins = {name: rows.begin for name, rows in placement.here.items()}
        part = f"{ranks.rank + 1}-of-{ranks.size}"
        contents = {f"{name}-{part}.safetensors": Part(tensors, begins) for name, tensors in held.items()}
    if ranks.first and (made := job.remembered()):
        contents[REMEMBERED] = made
    finite = _all_finite([tensor for tensors in held.values() for tensor in tensors.values()])
    if ranks.first:
        contents["state.json"] = _facts(state, progress, job, precision)
    facts = {"world_size": ranks.size}
    save_checkpoint(out, state.step, contents, finite=finite, facts=facts, writers=None if placement is None else ranks)


def _facts(state: TrainState, progress: Progress, job: Job[Any, Any, Any], precision: str) -> dict[str, Any]:
    """The content of state.json."""
    shares = 0 if state.strategy is None else state.strategy.shares
    return {
        "precision": precision,
        "data": job.fingerprint,
        "valid": job.valid_fingerprint,
        "tokenizers": job.tokenizer_hash,
        **({"teacher": job.teacher.hash} if job.teacher else {}),
        "format": FORMAT,
        "recipe": job.recipe.model_dump(mode="json"),
        "kind": kind_of_config(getattr(job.config, job.saved) if job.saved else job.config),
        "model": to_json(job.config),
        **({"saved": job.saved} if job.saved else {}),
        "position": {key: getattr(state, key) for key in POSITION},
        "progress": asdict(progress),
        **({"shares": shares} if shares else {}),
    }


def _all_finite(tensors: Sequence[Tensor]) -> bool:
    """Whether all numbers are finite, by the largest of each tensor."""
    by_device: dict[torch.device, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.numel():
            by_device.setdefault(tensor.device, []).append(tensor)
    largest = [norm for own in by_device.values() for norm in torch._foreach_norm(own, math.inf)]
    return all(math.isfinite(norm.item()) for norm in largest)


def restore(state: TrainState, checkpoint: Checkpoint, job: Job[Any, Any, Any], out: Path) -> Progress:
    """Restores `state` from the checkpoint, and returns its progress. Raises InputError where the data or the tokenizer
    are others than then, and where the preset now means another model."""
    facts = checkpoint.json("state.json")
    number = facts.get("format", 1)
    if "model" in facts:
        model = migrated(facts["model"], number)
        begun = to_json(from_json(type(job.config), model, where=f"{checkpoint.path}/state.json: model"))
        for key, (old, new) in differences(begun, to_json(job.config)).items():
            what = f"this run was begun with {key} = {old!r}, and its preset now has {new!r}"
            fix = "continue with the heedful of its environment.json, or choose another --out"
            raise InputError(what, where=str(out), fix=fix)
    for key, found, what in (
        ("data", job.fingerprint, "the training data is not the data"),
        ("valid", job.valid_fingerprint, "the validation data is not the data"),
        ("tokenizers", job.tokenizer_hash, "the tokenizer is not the one"),
        ("teacher", job.teacher.hash if job.teacher else "", "the teacher is not the one"),
    ):
        if facts.get(key, found) != found:  # older checkpoints do not say what was validated on
            fix = "choose another --out, or bring the old files back"
            raise InputError(f"{what} that this run was begun with", where=str(out), fix=fix)
    _need_same_spec(out, job)
    wanted = None if state.placement is None else named_before(state.placement.wanted(state.average.model), number)
    weights, average, optimizer = (
        renamed(checkpoint.tensors(f"{name}.safetensors", wanted), number)
        for name in ("weights", "average", "optimizer")
    )
    if wanted is None:
        load_weights(state.average.model, average, where=str(checkpoint.path))
    else:
        for name, tensor in state.average.weights(frozen=True).items():
            tensor.copy_(average[name])
    copy_frozen(state)
    state.optimizer.zero()
    state.optimizer.load_masters(weights)
    state.optimizer.load_state(optimizer)
    if state.strategy is not None:
        state.strategy.publish()
    if REMEMBERED in checkpoint.manifest["files"]:
        job.remember(checkpoint.tensors(REMEMBERED))
    for key in POSITION:
        setattr(state, key, facts["position"][key])
    return from_json(Progress, facts["progress"], where=str(checkpoint.path / "state.json: progress"), largest=None)


def _need_same_spec(out: Path, job: Job[Any, Any, Any]) -> None:
    """Raises InputError where task.json differs from the one that the job would write, as after an edit of recipe.yaml:
    the next best model would be described differently from the one that is kept."""
    path = out / "task.json"
    if path.is_file():
        spec = json.loads(json.dumps(job.spec()))
        for key, (old, new) in differences(files.read_json(path), spec).items():
            if old is not None:  # older files do not say all
                what = f"this run was begun with {key} = {old!r}, not {new!r}"
                raise InputError(what, where=str(path), fix=BRING_BACK)


@torch.no_grad()
def copy_frozen(state: TrainState) -> None:
    """Copies the frozen parameters, which only the average holds, into the model."""
    kept = dict(state.average.model.named_parameters())
    for name, parameter in state.model.named_parameters():
        if not parameter.requires_grad:
            parameter.copy_(kept[name])


def forget_after(out: Path, step: int, *, measured: bool, averaged: bool) -> None:
    """Removes the lines of later steps from metrics.jsonl: they will be written again.

    `measured`: whether the measurement at this step has been made; `averaged`: whether that of the mean of the last
    checkpoints has.
    """
    path = out / METRICS
    if not path.is_file():
        return
    lines = files.read_whole_lines(path)
    rows = [files.parse_json(line.encode(), where=path) for line in lines]
    kept = [
        line
        for line, row in zip(lines, rows, strict=True)
        if row["step"] < step
        or (row["step"] == step and ("valid_loss" not in row or (averaged if "averaged" in row else measured)))
    ]
    if len(kept) < len(lines):
        files.write_text(path, "".join(f"{line}\n" for line in kept))


def best_row(out: Path, progress: Progress) -> dict[str, Any]:
    """The line of metrics.jsonl about the model that is kept. Raises StorageError where it is missing."""
    for row in files.read_json_lines(out / METRICS):
        if row["step"] == progress.best_step and "valid_loss" in row and ("averaged" in row) == progress.best_averaged:
            return row
    what = f"the measurement of step {progress.best_step:,}, whose model is kept, is not there"
    raise StorageError(what, where=str(out / METRICS), fix="bring the file back from a copy, or choose another --out")


def needed_space(weights: int, learning: int, keep: int, held: int = 0) -> int:
    """The bytes that a training writes besides what its folder `held`, by the bytes of all weights and of those that
    learn, in float32."""
    checkpoint = weights + 3 * learning  # the average, the weights that learn, and two moments of each
    return max(checkpoint, (keep + 1) * checkpoint + 2 * weights - held) + MARGIN


def check_space(out: Path, state: TrainState, keep: int) -> None:
    """Raises StorageError where the disk has no room for what this training will write."""
    weights = sum(parameter.numel() for parameter in state.average.model.parameters()) * 4
    learning = sum(parameter.numel() for parameter in trained_parameters(state.model).values()) * 4
    held = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    needed = needed_space(weights, learning, keep, held)
    files.need_space(out, needed, fix="free some, choose another --out, or --set train.keep=1")
    if not os.access(out, os.W_OK):
        raise StorageError("this folder cannot be written to", where=str(out), fix="choose another --out")
