"""Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"): momentum, orthogonalized.

It is the algorithm of `torch.optim.Muon`. That always multiplies in bfloat16: a CPU that only emulates bfloat16 takes
seconds for what it does in milliseconds in float32.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.kernels import onednn_knows
from heedful.training.optimizers import add_param_group

MOMENTUM = 0.95
TURNS = 5
A, B, C = 3.4445, -4.7750, 2.0315  # a quintic that pulls singular values towards 1, steepest at 0
LEAST = 1e-7  # keeps a gradient of zeros from being divided by zero


class Muon(torch.optim.Optimizer):
    """For matrices only."""

    add_param_group = add_param_group

    def __init__(self, params: Iterable[Tensor], *, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step along the gradients; a closure is not called."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(param)
                momentum = state["momentum_buffer"].lerp_(param.grad, 1 - MOMENTUM)
                ahead = param.grad.lerp(momentum, MOMENTUM)  # Nesterov's
                update = orthogonal(ahead, product_dtype(param.device))
                param.mul_(1 - group["lr"] * group["weight_decay"])
                param.add_(update, alpha=-group["lr"] * max(1, param.shape[0] / param.shape[1]) ** 0.5)


def orthogonal(matrix: Float[Tensor, "N K"], dtype: torch.dtype) -> Float[Tensor, "N K"]:
    """Approximately the nearest matrix with equal singular values, by the Newton-Schulz iteration: they end up between
    0.5 and 1.5."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.to(dtype, copy=True)
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=LEAST))
    for _ in range(TURNS):
        square = x @ x.T
        x = torch.addmm(x, torch.addmm(square, square, square, beta=B, alpha=C), x, beta=A)
    return x.T if tall else x


def product_dtype(device: torch.device) -> torch.dtype:
    """The dtype of the products: bfloat16 where the device supports it."""
    return torch.bfloat16 if device.type != "cpu" or onednn_knows(torch.bfloat16) else torch.float32
