"""Low-rank adapters: tuning keeps a model's matrices, and learns a product of two thin matrices beside each (Hu et al.
2021, LoRA, section 4.1). Only the thin ones need gradients and optimizer memory. The linear maps are swapped from
outside, and the saved model has the products added to its matrices.

B inputs, K input width, N output width, r rank.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import InputError

DOWN, UP = ".lora_a", ".lora_b"  # behind the name of a map


@dataclass(frozen=True, kw_only=True)
class LoRAConfig:
    rank: int
    alpha: float  # the product counts alpha / rank times
    targets: tuple[str, ...]  # maps of attention and MLP, inside blocks

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


class LowRankLinear(nn.Linear):
    """x W^T + scale x A^T B^T, where W and the bias stay as they are. B begins as zeros, so that at first nothing is
    changed."""

    def __init__(self, linear: nn.Linear, rank: int, scale: float) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features, self.scale = linear.in_features, linear.out_features, scale
        self.weight, self.bias = linear.weight, linear.bias
        self.lora_a = nn.Parameter(linear.weight.new_empty(rank, self.in_features))
        self.lora_b = nn.Parameter(linear.weight.new_zeros(self.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


def adapt(model: nn.Module, config: LoRAConfig, *, new: Collection[str] = ()) -> None:
    """Freezes the model and adds an adapter to each of its blocks' maps that `config` names. The parts `new` (a head
    that the model did not have) are trained completely.

    Raises InputError where the model has none of these maps.
    """
    found = [
        (module, name, child)
        for path, module in model.named_modules()
        for name, child in module.named_children()
        if ".blocks." in f".{path}." and name in config.targets and isinstance(child, nn.Linear)
    ]
    if not found:
        raise InputError(f"no {', '.join(config.targets)} in the blocks of this model", fix="leave out --lora")
    for parameter_name, parameter in model.named_parameters():
        parameter.requires_grad_(_is_in(parameter_name, new))
    for module, name, child in found:
        setattr(module, name, LowRankLinear(child, config.rank, config.scale))


def adapters(tensors: Mapping[str, Tensor], *, new: Collection[str] = ()) -> dict[str, Tensor]:
    """The model's tensors that are adapters or belong to the parts `new`, by name."""
    return {name: tensor for name, tensor in tensors.items() if name.endswith((DOWN, UP)) or _is_in(name, new)}


@torch.no_grad()
def merged(tensors: Mapping[str, Tensor], config: LoRAConfig) -> dict[str, Tensor]:
    """The tensors of the model without adapters: each product is added to its matrix."""
    whole = {name: tensor for name, tensor in tensors.items() if not name.endswith((DOWN, UP))}
    for name in _adapted(tensors):
        product = tensors[name + UP].float() @ tensors[name + DOWN].float()
        weight = whole[f"{name}.weight"]
        whole[f"{name}.weight"] = (weight.float() + config.scale * product).to(weight.dtype)
    return whole


def _is_in(name: str, parts: Collection[str]) -> bool:
    return any(f"{name}.".startswith(f"{part}.") for part in parts)


def _adapted(names: Iterable[str]) -> list[str]:
    """The maps that have an adapter."""
    return [name.removesuffix(DOWN) for name in names if name.endswith(DOWN)]
