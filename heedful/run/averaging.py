"""The mean of a training's last checkpoints (Vaswani et al. 2017, section 6.1)."""

import copy
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from heedful.errors import HeedError
from heedful.store import files
from heedful.store.checkpoint import load_first, place_of, steps_of
from heedful.store.migrations import renamed
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
def mean_of_last(out: Path, state: TrainState, count: int, every: int | None) -> tuple[nn.Module, int]:
    """A model with the mean of the current weights and those of the sound checkpoints that were planned before, every
    `every` steps; `count` weights in all, or as many as there are. Also returns their number."""
    total = {name: master.detach().clone() for name, master in state.optimizer.named_masters().items()}
    before = load_first(out, [step for step in planned_steps(out, every) if step < state.step], count - 1)
    for checkpoint in before:
        number = checkpoint.json("state.json").get("format", 1)
        tensors = renamed(checkpoint.tensors("weights.safetensors"), number)
        for name, tensor in total.items():
            tensor.add_(tensors[name].to(tensor.device))
    model = copy.deepcopy(state.average.model)
    own = dict(model.named_parameters())
    for name, tensor in total.items():
        own[name].copy_(tensor / (1 + len(before)))
    return model, 1 + len(before)
