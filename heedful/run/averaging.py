"""The mean of a training's last checkpoints (Vaswani et al. 2017, section 6.1)."""

import copy
from pathlib import Path

import torch
from torch import nn

from heedful.store.checkpoint import load_before
from heedful.store.migrations import renamed
from heedful.training.loop import State


@torch.no_grad()
def mean_of_last(out: Path, state: State, count: int) -> tuple[nn.Module, int]:
    """A model with the plain mean of the weights of now and of the sound checkpoints before, `count` in all where there
    are so many, and how many there are."""
    optimizer = state.optimizer
    total = {name: master.detach().clone() for name, master in zip(optimizer.names, optimizer.masters, strict=True)}
    before = load_before(out, state.step, count - 1)
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
