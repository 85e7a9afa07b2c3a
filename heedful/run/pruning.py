"""A pruned run: its weights, and a training of it that has done no step yet."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.run.card import environment
from heedful.run.folder import load_weights, parameters
from heedful.run.job import Job
from heedful.run.recipe import to_yaml
from heedful.run.resume import Progress, copy_frozen, save_state
from heedful.run.state import new_state, precision_of
from heedful.store import files
from heedful.training.loop import ALONE
from heedful.training.pruning import Masks, masks_by_pattern, masks_by_share


@torch.no_grad()
def pruned(model: nn.Module, *, share: float, pattern: str) -> Masks:
    """Sets the smallest weights of the model to zero, this share of them or by a pattern, and returns which stay.
    Raises InputError."""
    masks = masks_by_pattern(model, pattern) if pattern else masks_by_share(model, share)
    weights = dict(model.named_parameters())
    for name, mask in masks.items():
        weights[name].masked_fill_(~mask, 0.0)
    return masks


def write_beginning(out: Path, job: Job[Any, Any, Any], weights: dict[str, Tensor], device: torch.device) -> None:
    """Makes of the run in `out`, which has these weights, one that can be trained on: its first checkpoint, and the
    files that a training has from the start."""
    recipe = job.recipe
    precision, _ = precision_of(recipe, None, device)
    state = new_state(recipe, job, device, precision, begins=False)
    load_weights(state.average.model.get_submodule(job.saved), weights, where=str(out))
    copy_frozen(state)
    state.optimizer.load_masters(parameters(state.average.model))
    save_state(out, state, Progress(), job, precision=precision, ranks=ALONE)
    files.write_json(out / "environment.json", environment(device, precision))
    files.write_json(out / "data.json", job.facts())
    files.write_text(out / "recipe.yaml", to_yaml(recipe))
