"""What the parity tests of the models that see share."""

from typing import Any

from torch import Tensor, nn
from transformers.core_model_loading import revert_weight_conversion


def loud(model: nn.Module, std: float = 0.4) -> None:
    """N(0, std) in every matrix, bias, token and mean of a batch norm, N(1, std) in the scales of norms; variances from
    0.5 to 2."""
    for module in model.modules():
        norm = "Norm" in type(module).__name__
        for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if name == "running_var":
                nn.init.uniform_(tensor, 0.5, 2.0)
            elif tensor.is_floating_point():
                nn.init.normal_(tensor, mean=1.0 if norm and name == "weight" else 0.0, std=std)


def saved(model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of one of their models under the names that their files have, which are the Hub's: theirs in memory are
    newer."""
    return revert_weight_conversion(model, dict(tensors))
