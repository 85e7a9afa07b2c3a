"""Pruning by magnitude: the smallest weights of a model's linear maps become zeros, and stay zeros (Han et al. 2015).

What is pruned are the maps inside blocks, of attention and MLP; embeddings and heads stay whole. By share, all of them
together have one threshold, which is better than one for each (Blalock et al. 2020, section 2.3). By pattern, of so
many weights side by side in a row, those of neighbouring inputs, some stay: 2 of 4 is what GPUs can multiply faster
(Mishra et al. 2021, section 3).

N outputs, K inputs of a map.
"""

import re

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.training.optim import block_matrices

Masks = dict[str, Bool[Tensor, "N K"]]  # by parameter; True: the weight stays


def masks_by_share(model: nn.Module, share: float) -> Masks:
    """Leaves out this share of the weights, the smallest of all. Raises InputError where there are none."""
    weights = _prunable(model)
    sizes = torch.cat([weight.detach().abs().flatten() for weight in weights.values()])
    kept = torch.ones_like(sizes, dtype=torch.bool)
    kept[sizes.topk(round(share * len(sizes)), largest=False).indices] = False
    parts = kept.split([weight.numel() for weight in weights.values()])
    return {name: part.view_as(weights[name]) for name, part in zip(weights, parts, strict=True)}


def masks_by_pattern(model: nn.Module, pattern: str) -> Masks:
    """Keeps the largest N of each M weights side by side, by the pattern "N:M". Raises InputError for another pattern,
    and where a map's inputs cannot be parted so."""
    found = re.fullmatch(r"([1-9]\d?):([1-9]\d?)", pattern)
    if found is None or not int(found[1]) < int(found[2]):
        raise InputError(f"{pattern!r} is no pattern", where="--pattern", fix="2:4 keeps two of each four weights")
    keep, among = int(found[1]), int(found[2])
    masks = {}
    for name, weight in _prunable(model).items():
        if weight.shape[1] % among:
            what = f"{name} has {weight.shape[1]:,} inputs, which are no groups of {among}"
            raise InputError(what, where="--pattern", fix="--share 0.5 prunes any model")
        groups = weight.detach().abs().unflatten(1, (-1, among))
        kept = torch.zeros_like(groups, dtype=torch.bool).scatter_(2, groups.topk(keep, dim=2).indices, True)
        masks[name] = kept.flatten(1)
    return masks


def _prunable(model: nn.Module) -> dict[str, Float[Tensor, "N K"]]:
    matrices = block_matrices(model)
    weights: dict[str, Tensor] = {name: weight for name, weight in model.named_parameters() if name in matrices}
    if not weights:
        raise InputError("a model without linear maps in blocks, which alone are pruned", fix="choose another run")
    return weights
