"""The mean of a training's last checkpoints (Vaswani et al. 2017, section 6.1)."""

from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from heedful.errors import HeedError
from heedful.store import files
from heedful.store.checkpoint import load_first, place_of, steps_of
from heedful.store.migrations import named_before, renamed
from heedful.training.loop import TrainState


def planned_steps(out: Path, every: int | None) -> list[int]:
    """The steps of the run's planned checkpoints, the newest first. A checkpoint that was saved because of a signal is
    not among them, so that the mean does not depend on how often a training was interrupted."""
    return [step for step in steps_of(out) if _is_planned(place_of(out, step), step, every)]


def _is_planned(checkpoint: Path, step: int, every: int | None) -> bool:
    if every is not None:
        return step % every == 0
    with suppress(HeedError, KeyError):  # a damaged checkpoint is left out of the mean
        return bool(files.read_json(checkpoint / "state.json")["progress"].get("due_step", step) == step)
    return False


@torch.no_grad()
def mean_of_last(out: Path, state: TrainState, count: int, every: int | None) -> tuple[list[Tensor], int]:
    """The mean of the current weights, or of the pieces of them that this rank holds, and of those in the sound
    checkpoints that were planned before, every `every` steps; of `count` weights in all, or as many as there are. Also
    returns their number."""
    total = {name: master.detach().clone() for name, master in state.optimizer.named_masters().items()}
    before = load_first(out, [step for step in planned_steps(out, every) if step < state.step], count - 1)
    wanted = None if state.placement is None else state.placement.wanted(state.average.model)
    for checkpoint in before:
        number = checkpoint.json("state.json").get("format", 1)
        within = None if wanted is None else named_before(wanted, number)
        tensors = renamed(checkpoint.tensors("weights.safetensors", within), number)
        for name, tensor in total.items():
            tensor.add_(tensors[name].to(tensor.device))
    return [tensor / (1 + len(before)) for tensor in total.values()], 1 + len(before)
