"""Optimizers with float32 master weights, schedules, and the average of the weights.

A model may hold its parameters in bf16. The optimizer then keeps float32 masters: gradients are added up and
steps are made in float32, and the model gets the rounded result.
"""

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.init import NORMS
from heedful.training.muon import Muon
from heedful.training.optimizers import AdamW
from heedful.training.placement import give_up
from heedful.training.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    optimizer: Literal["adam", "muon"] = "adam"
    lr: float = 1e-3  # at the peak of the schedule
    betas: tuple[float, ...] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    muon_lr: float = 0.02  # of the matrices inside blocks, where the optimizer is muon
    clip: float = 1.0  # the largest norm of the whole gradient; 0: no limit
    schedule: Literal["inverse_sqrt", "cosine", "linear", "constant"] = "inverse_sqrt"
    warmup: int = 400  # steps


def schedule(config: OptimConfig, step: int, progress: float) -> float:
    """The share of the peak learning rate at `step` (from 1), `progress` (0 to 1) through the training.

    Warming up takes `warmup` steps, or a tenth of the training where that is less.
    "inverse_sqrt" is Vaswani et al. 2017, equation 3, which needs no end; the others come down to zero at the end.
    """
    warm = min(1.0, max(step / max(1, config.warmup), progress * 10))
    match config.schedule:
        case "inverse_sqrt":
            return warm * min(1.0, math.sqrt(max(1, config.warmup) / step))
        case "cosine":
            return warm * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        case "linear":
            return warm * (1 - min(1.0, progress))
        case "constant":
            return warm


class Optimizer:
    """Steps the trained parameters of a model, or those `pieces` of them, by name, that this rank steps."""

    def __init__(self, model: nn.Module, config: OptimConfig, pieces: Mapping[str, Tensor] | None = None) -> None:
        self.config = config
        pieces = trained_parameters(model) if pieces is None else pieces
        self.names, self.params = [*pieces], [*pieces.values()]
        self.masters = [p if p.dtype == torch.float32 else p.detach().float() for p in self.params]
        matrices = block_matrices(model) if config.optimizer == "muon" else set()
        others = [master for name, master in self.named_masters().items() if name not in matrices]
        beta1, beta2 = config.betas
        groups = [
            {"params": own, "weight_decay": decay}
            for own, decay in (
                ([master for master in others if master.ndim > 1], config.weight_decay),
                ([master for master in others if master.ndim < 2], 0.0),  # biases and norms
            )
            if own
        ]
        self.parts: list[tuple[torch.optim.Optimizer, float]] = []
        if groups:
            adam = AdamW(
                groups, lr=config.lr, betas=(beta1, beta2), eps=config.eps, weight_decay=config.weight_decay, fused=True
            )
            self.parts.append((adam, config.lr))
        inside = [master for name, master in self.named_masters().items() if name in matrices]
        if inside:
            muon = Muon(inside, lr=config.muon_lr, weight_decay=config.weight_decay)
            self.parts.append((muon, config.muon_lr))
        self.pruned: dict[str, Tensor] = {}  # where weights are zeros and stay so, by name

    def keep_zeros(self, masks: Mapping[str, Tensor]) -> None:
        """From now on the weights where a mask is False are zeros after each step."""
        masters = self.named_masters()
        self.pruned = {name: ~mask.to(masters[name].device) for name, mask in masks.items() if name in masters}

    def collect(self) -> None:
        """Adds the model's gradients to the masters' and frees them, so that nothing is summed in bf16."""
        made, new, sums, more = (list[Tensor]() for _ in range(4))
        for param, master in zip(self.params, self.masters, strict=True):
            if param is master or param.grad is None:
                continue
            if master.grad is None:
                master.grad = torch.empty_like(master)
                made.append(master.grad)
                new.append(param.grad)
            else:
                sums.append(master.grad)
                more.append(param.grad)
            param.grad = None
        if new:
            torch._foreach_copy_(made, new)
        if more:
            torch._foreach_add_(sums, more)

    def collect_both(self, one: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> None:
        """Adds two gradients of each parameter to the masters', in float32, in this order."""
        for master, *found in zip(self.masters, one, other, strict=True):
            parts = [part for part in found if part is not None]
            if parts:  # a new tensor: the gradients of two parameters may be one tensor
                both = parts[0].float() + parts[1] if len(parts) == 2 else parts[0].to(torch.float32, copy=True)
                master.grad = both if master.grad is None else master.grad.add_(both)

    def sum(self, ranks: Ranks) -> None:
        """Adds up the masters' gradients over all ranks; a rank without rows adds nothing."""
        if ranks.size > 1:
            for master in self.masters:
                if master.grad is None:
                    master.grad = torch.zeros_like(master)
            ranks.sum(self._gradients())

    def norm(self, count: int) -> float:
        """The norm, over all parameters, of the summed gradients divided by `count`."""
        return norm_of(torch.stack(torch._foreach_norm(self._gradients())), count)

    def step(self, share: float, norm: float, count: int) -> None:
        """One step at this share of the peak learning rate, by the summed gradients divided by `count`, and clipped by
        their norm."""
        clipped = self.config.clip / norm if self.config.clip and norm > self.config.clip else 1.0
        if gradients := self._gradients():  # a rank that steps no parameter has none
            torch._foreach_mul_(gradients, clipped / count)
        for part, lr in self.parts:
            for group in part.param_groups:
                group["lr"] = lr * share
            part.step()
        with torch.no_grad():
            for name, master in self.named_masters().items():
                if name in self.pruned:
                    master.masked_fill_(self.pruned[name], 0.0)
        rounded = [(p, m) for p, m in zip(self.params, self.masters, strict=True) if p is not m]
        if rounded:
            with torch.no_grad():
                torch._foreach_copy_([p for p, _ in rounded], [m for _, m in rounded])
        self.zero()

    def _gradients(self) -> list[Tensor]:
        return [master.grad for master in self.masters if master.grad is not None]

    def zero(self) -> None:
        for param, master in zip(self.params, self.masters, strict=True):
            param.grad = master.grad = None

    def named_masters(self) -> dict[str, Tensor]:
        """The float32 weights by the names of the model's parameters."""
        return dict(zip(self.names, self.masters, strict=True))

    def state(self) -> dict[str, Tensor]:
        """The optimizers' state: tensors by names PARAMETER/KEY."""
        tensors = {}
        for part, _ in self.parts:
            for name, master in self.named_masters().items():
                for key, value in part.state.get(master, {}).items():
                    tensors[f"{name}/{key}"] = value if isinstance(value, Tensor) else torch.tensor(value)
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Restores what `state` gave. Raises KeyError for a name that is not a parameter's."""
        masters = self.named_masters()
        owner = {id(m): part for part, _ in self.parts for group in part.param_groups for m in group["params"]}
        for name, value in tensors.items():
            parameter, _, key = name.rpartition("/")
            master = masters[parameter]
            owner[id(master)].state[master][key] = value.to(master.device)  # the count of steps too, for a fused step

    def load_masters(self, tensors: dict[str, Tensor]) -> None:
        """Sets the float32 weights, and the model's as their rounded copies."""
        with torch.no_grad():
            for name, param, master in zip(self.names, self.params, self.masters, strict=True):
                master.copy_(tensors[name])
                if param is not master:
                    param.copy_(master)


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: param for name, param in model.named_parameters() if param.requires_grad}


def norm_of(norms: Float[Tensor, "n"], count: int) -> float:
    """The norm of gradients divided by `count`, of which these are the norms."""
    return float(torch.linalg.vector_norm(norms)) / count


def block_matrices(model: nn.Module) -> set[str]:
    """The names of the matrices for Muon: linear maps inside blocks, but no embeddings and not the output."""
    return {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not isinstance(module, NORMS) and ".blocks." in f".{name}"
    }


class Average:
    """An exponential average of the weights, which is the model that is measured and kept (Polyak and Juditsky 1992).

    The decay grows with the steps, so that the first weights are forgotten; with `decay` 0 it is the weights
    themselves, in float32. Frozen float32 parameters are shared with the model, not copied.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        frozen = (param for param in model.parameters() if not param.requires_grad and param.dtype == torch.float32)
        shared = {id(param): nn.Parameter(param.detach(), requires_grad=False) for param in frozen}
        self.model = copy.deepcopy(model, shared).float().eval()  # the memo: these count as copied already
        named = trained_parameters(self.model)
        self.names, self.trained = [*named], list[Tensor](named.values())
        self._all_trained = frozenset(named)
        self.model.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, masters: Iterable[Tensor], step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        if self.trained:
            torch._foreach_lerp_(self.trained, list(masters), 1 - decay)

    def weights(self, *, frozen: bool) -> dict[str, Tensor]:
        """By name the weights that it holds, or its pieces of them; with the `frozen` ones, which it has whole."""
        named = dict(zip(self.names, self.trained, strict=True))
        fixed = {name: param.detach() for name, param in self.model.named_parameters() if name not in self._all_trained}
        return {**named, **fixed} if frozen else named

    def with_weights(self, weights: Sequence[Tensor]) -> nn.Module:
        """The model; or where these are not its trained weights, a copy of it that has them."""
        if weights is self.trained:
            return self.model
        model = copy.deepcopy(self.model)
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, weight in zip(self.names, weights, strict=True):
                parameters[name].copy_(weight)
        return model

    def divide(self, pieces: Mapping[str, Tensor]) -> None:
        """From now on averages only these pieces of weights, by name. Of the model's trained weights the memory is
        given up."""
        give_up(self.trained)
        self.names, self.trained = [*pieces], [*pieces.values()]
