"""How weights begin: one named function a scheme, applied to a whole model.

Each sets every linear map (a convolution is one), embedding and norm that it finds, so that what a model begins with
is known from the one line that called it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from heedful.core.attention import Attention
from heedful.core.norm import OffsetRMSNorm
from heedful.core.position import RelativeBuckets
from heedful.errors import InputError

ENDS_A_BRANCH = re.compile(r"(self_attention\.out|mlp(\.experts\.\d+)?\.down)$")  # of a residual
OTHER_CONFIG = "get the config.json that belongs to the weights"
NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)


def xavier(model: nn.Module) -> None:
    """Linear maps uniform with variance 2 / (fan in + fan out) (Glorot and Bengio 2010, equation 16), embeddings with
    standard deviation d_model^-0.5, so that scaled by sqrt(d_model) they have variance 1 (as tensor2tensor did)."""
    _each(model, nn.init.xavier_uniform_, lambda table: nn.init.normal_(table, std=table.shape[1] ** -0.5))


def normal(model: nn.Module, *, std: float = 0.02) -> None:
    """Everything with one standard deviation (Devlin et al. 2019; their code, 0.02)."""
    _each(model, lambda w: nn.init.normal_(w, std=std), lambda w: nn.init.normal_(w, std=std))


def gpt2(model: nn.Module, *, n_layers: int, std: float = 0.02) -> None:
    """As `normal`, but the maps that end a residual branch are smaller by sqrt(2 n_layers), so that the sum over the
    layers keeps its size (Radford et al. 2019, section 2.3)."""
    normal(model, std=std)
    for name, module in model.named_modules():
        if ENDS_A_BRANCH.search(name) and isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=std / (2 * n_layers) ** 0.5)


def t5(model: nn.Module, *, d_model: int) -> None:
    """Linear maps with standard deviation (fan in)^-0.5, those of queries smaller by the root of the head's width, as
    the scores are not scaled; embeddings with 1, position biases with d_model^-0.5 (Raffel et al. 2020; their code)."""
    _each(model, lambda w: nn.init.normal_(w, std=w.shape[1] ** -0.5), lambda w: nn.init.normal_(w, std=1.0))
    for module in model.modules():
        if isinstance(module, Attention):
            nn.init.normal_(module.query.weight, std=(d_model * module.head_dim) ** -0.5)
        elif isinstance(module, RelativeBuckets):
            nn.init.normal_(module.table.weight, std=d_model**-0.5)


@torch.no_grad()
def he(model: nn.Module) -> None:
    """Convolutions alone: normal with variance 2 / fan out (He et al. 2015, equation 14), biases 0."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.weight[0, 0].numel() * module.out_channels / module.groups
            nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)
            if module.bias is not None:
                module.bias.zero_()


@torch.no_grad()
def _each(
    model: nn.Module, linear: Callable[[torch.Tensor], object], embedding: Callable[[torch.Tensor], object]
) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            linear(module.weight)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.Embedding):
            embedding(module.weight)
        elif isinstance(module, NORMS):
            if module.weight is not None:
                module.weight.fill_(0.0 if isinstance(module, OffsetRMSNorm) else 1.0)
            if not isinstance(module, nn.RMSNorm) and module.bias is not None:
                module.bias.zero_()


@contextmanager
def uninitialised(*, most: int | None = None) -> Iterator[None]:
    """In this block, parameters hold whatever was in memory: for models whose weights come from a file. Raises
    InputError where more than `most` of them are made (None: any number).

    It also spares the device "meta" what torch needs to draw numbers there: its compiler, a second to import.
    """
    with _LeaveParameters(most):
        yield


class _LeaveParameters(TorchFunctionMode):
    def __init__(self, most: int | None) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.empty and self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise InputError("a configuration of more weights than there are", fix=OTHER_CONFIG)
        named = kwargs or {}
        target = args[0] if args else named.get("tensor")
        name = getattr(func, "__name__", "")
        in_place = name.endswith("_") and not name.startswith("_")
        return target if in_place and isinstance(target, nn.Parameter) else func(*args, **named)
