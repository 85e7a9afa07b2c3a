"""Shared by the parity tests of vision models."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers.core_model_loading import revert_weight_conversion

from heedful.exchange.hf.keys import KeyReader
from heedful.exchange.hf.rules import Rule, to_theirs


def loud(model: nn.Module, std: float = 0.4) -> None:
    """Draws N(0, std) for every matrix, bias, token and mean of a batch norm, N(1, std) for the scales of norms, and
    variances from 0.5 to 2."""
    for module in model.modules():
        norm = "Norm" in type(module).__name__
        for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if name == "running_var":
                nn.init.uniform_(tensor, 0.5, 2.0)
            elif tensor.is_floating_point():
                nn.init.normal_(tensor, mean=1.0 if norm and name == "weight" else 0.0, std=std)


def check_names(theirs: Any, folder: Path) -> None:
    """The names of their model's tensors are those in the file that it saves."""
    theirs.save_pretrained(folder)
    assert load_file(folder / "model.safetensors").keys() == saved(theirs, theirs.state_dict()).keys()


def check_there_and_back(
    theirs: Any,
    ours: Any,
    rules: Iterable[Rule],
    read: KeyReader[Any],
    told: dict[str, Any],
    *,
    not_ours: Collection[str] = (),
) -> None:
    """A configuration, given as `told`, and weights, converted there and back, are the same. Their model may have the
    tensors `not_ours` in addition."""
    assert read(told) == ours.config
    assert read(theirs.config.to_diff_dict()) == ours.config
    back = to_theirs(rules, {name: weight.detach() for name, weight in ours.named_parameters()})
    expected = saved(theirs, theirs.state_dict())
    assert expected.keys() - back.keys() == {*not_ours}
    assert back.keys() <= expected.keys()
    for name, value in back.items():
        assert torch.equal(expected[name], value), name


def saved(model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of one of their models under the names in their files, which are the Hub's; the names in memory are
    newer."""
    return revert_weight_conversion(model, dict(tensors))
