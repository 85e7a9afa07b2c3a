"""Strategies that divide a training among ranks: fixed shares of each batch, the optimizer in pieces, or the model too.

`FixedShares` gives the same bits on any number of ranks; with `divided` each rank steps some of the parameters, and has
the optimizer's state, the float32 weights and the average of these alone (Rajbhandari et al. 2020, ZeRO, stage 1).
`FullySharded` divides weights and gradients too, by torch's FSDP2: each block is gathered while it computes.
"""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from heedful.core.block import Block
from heedful.core.kernels import seed_numbers
from heedful.core.seeds import counter_seed
from heedful.errors import InputError
from heedful.training.halves import Halves
from heedful.training.loop import Gradients, Sums, Trainable, TrainState, device_of, loss_of_rows, row_count
from heedful.training.loss import Loss, Sum, added
from heedful.training.optim import Optimizer, norm_of, trained_parameters
from heedful.training.placement import Placement, Rows
from heedful.training.ranks import Ranks, TreeSum, lost_ranks

M_MMAP_THRESHOLD = -3  # of mallopt
SHARES = 8  # of a batch, for 1, 2, 4 or 8 ranks


def shares_fit(shares: int, ranks: int) -> bool:
    """Whether so many ranks can sum so many shares in the one order of `TreeSum`."""
    each = shares // ranks
    return shares % ranks == 0 and (ranks == 1 or each & (each - 1) == 0)


def owners(sizes: Mapping[str, int], ranks: int) -> dict[str, int]:
    """The rank that owns each parameter, so that all have about as much: the largest parameters are given away first,
    each to the rank that has the least."""
    loads, ranks_by_name = [0] * ranks, dict[str, int]()
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        rank = ranks_by_name[name] = loads.index(min(loads))
        loads[rank] += sizes[name]
    return ranks_by_name


def norm_of_pieces(optimizer: Optimizer, names: Sequence[str], ranks: Ranks, holders: int, count: int) -> float:
    """The norm of the gradients of all parameters divided by `count`, of which the first `holders` ranks hold
    pieces."""
    gradients = {name: master.grad for name, master in optimizer.named_masters().items() if master.grad is not None}
    norms = torch.stack(torch._foreach_norm([*gradients.values()])).tolist() if gradients else []
    here = dict(zip(gradients, norms, strict=True))
    everyone = ranks.gather([here.get(name, 0.0) for name in names])[:holders]
    return norm_of(torch.tensor([math.hypot(*pieces) for pieces in zip(*everyone, strict=True)]), count)


class FixedShares:
    """Each batch is computed in shares, whose gradients are added in float32 in one order: the same bits on all numbers
    of ranks that `shares_fit`. With `divided`, each rank steps some of the parameters, for all."""

    def __init__(self, model: nn.Module, ranks: Ranks, shares: int, *, divided: bool) -> None:
        self.ranks, self.shares, divided = ranks, shares, divided and ranks.size > 1
        named = trained_parameters(model)
        owner = owners({name: parameter.numel() for name, parameter in named.items()}, ranks.size)
        self.names = [*named]  # in the model's order; all else is in the order of the owners
        self.params = {name: named[name] for name in sorted(named, key=owner.__getitem__)}
        self.owned = [[name for name in self.params if owner[name] == rank] for rank in range(ranks.size)]
        self.sizes = [sum(named[name].numel() for name in names) for names in self.owned]
        rows = {name: [Rows(owner[name], 0, len(each) if each.ndim else 1)] for name, each in named.items()}
        self.placement = Placement(rows, ranks) if divided else None
        self._summed: Tensor | None = None  # the gradients of this rank's shares

    def pieces(self) -> dict[str, Tensor]:
        """The parameters that this rank steps."""
        return {name: self.params[name] for name in self.names if self.placement is None or name in self.placement.here}

    def halves(self, group: Sequence[Any]) -> bool:
        return True  # whatever the ranks: as many threads compute a share on each number of them

    def gradients(self, task: Trainable, state: TrainState, group: Sequence[Any], sides: Halves | None) -> Gradients:
        each = self.shares // self.ranks.size
        tree, numbers, beside = TreeSum(), list[tuple[float, float, int]](), dict[str, Sum]()
        together = sides.both if sides is not None and each % 2 == 0 else None
        for share in range(self.ranks.rank * each, (self.ranks.rank + 1) * each, 2 if together else 1):
            computed = partial(self._share, task, state, group, share)
            for flat, sums in together(computed) if together else [computed(0)]:
                tree.add(flat)
                numbers.append(sums.numbers())
                beside = added(beside, sums.beside)
        self._summed = tree.result()
        return Gradients(numbers, beside)

    def _share(
        self, task: Trainable, state: TrainState, group: Sequence[Any], share: int, side: int
    ) -> tuple[Tensor, Sums]:
        """The gradients of a share of each batch in turn, or of the one beside it, and the sums of its losses."""
        share += side
        device, params = device_of(state), [*self.params.values()]
        flat, sums = torch.zeros(sum(self.sizes), device=device), Sums(device)
        seed_numbers(counter_seed(state.seed, "step", state.step, share), device)
        for number, batch in enumerate(group, state.batch):
            if share < row_count(batch):
                loss = loss_of_rows(task, state, number, batch, share, self.shares)
                gradients = torch.autograd.grad(loss.total, params, allow_unused=True)
                for place, gradient in zip(self._parts(flat, [*self.params]), gradients, strict=True):
                    if gradient is not None:
                        place.add_(gradient)
                sums.add(loss)
        return flat, sums

    def _parts(self, flat: Tensor, names: Sequence[str]) -> list[Tensor]:
        """The parts of a vector of these parameters, in their shapes."""
        params = [self.params[name] for name in names]
        parts = flat.split([parameter.numel() for parameter in params])
        return [part.view_as(parameter) for part, parameter in zip(parts, params, strict=True)]

    def sum(self, optimizer: Optimizer) -> None:
        assert self._summed is not None
        flat, self._summed = self._summed, None
        names, piece = [*self.params], self.ranks.sum_pieces(flat, self.sizes)
        if self.placement is not None:
            names, flat = self.owned[self.ranks.rank], piece
        elif self.ranks.size > 1:
            pieces = flat.split(self.sizes)
            pieces[self.ranks.rank].copy_(piece)
            for source, each in enumerate(pieces):
                self.ranks.broadcast([each], source)
        masters = optimizer.named_masters()
        for name, gradient in zip(names, self._parts(flat, names), strict=True):
            masters[name].grad = gradient

    def norm(self, optimizer: Optimizer, count: int) -> float:
        if self.placement is None:
            return optimizer.norm(count)
        return norm_of_pieces(optimizer, self.names, self.ranks, self.ranks.size, count)

    def publish(self) -> None:
        if self.placement is not None:
            for source, names in enumerate(self.owned):
                self.ranks.broadcast([self.params[name].detach() for name in names], source)


class FullySharded:
    """Each rank holds some rows of every parameter in float32, with their gradients, optimizer and average, and has
    the weights of a block in `dtype` while it computes (Zhao et al. 2023, FSDP). Each of several machines has all rows.

    Raises InputError for a model with a parameter that has no rows.
    """

    shares = 0

    def __init__(self, model: nn.Module, ranks: Ranks, dtype: torch.dtype) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

        if scalar := next((name for name, each in model.named_parameters() if not each.ndim), ""):
            what = f"this model's {scalar} is one number, which cannot be in pieces"
            raise InputError(what, where="train.shard", fix="--set train.shard=optimizer")
        _return_freed_memory()
        self.ranks = ranks
        alike = len({together for (together,) in ranks.gather([float(ranks.together)])}) == 1
        holders = ranks.together if alike and ranks.together > 1 else ranks.size
        machines = ranks.size // holders
        shape, axes = ((machines, holders), ("replicate", "shard")) if machines > 1 else ((holders,), ("shard",))
        mesh = init_device_mesh(next(model.parameters()).device.type, shape, mesh_dim_names=axes)
        policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
        sizes = {name: len(parameter) for name, parameter in trained_parameters(model).items()}
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.data = buffer.to(dtype)
        for module in model.modules():
            if isinstance(module, Block):
                fully_shard(module, mesh=mesh, mp_policy=policy)
        losses: Any = _Losses(model)
        self.whole: Any = fully_shard(losses, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        for module in losses.modules():
            if isinstance(module, FSDPModule):  # a sum, not a mean; and by an operation that gloo has
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
        each = {name: -(-size // holders) for name, size in sizes.items()}
        rows = {
            name: [
                Rows(rank, min(size, rank * each[name]), min(size, (rank + 1) * each[name]))
                for rank in range(holders)
                if rank * each[name] < size
            ]
            for name, size in sizes.items()
        }
        self.placement, self.holders = Placement(rows, ranks, twin=ranks.rank % holders), holders
        self.params: dict[str, Any] = trained_parameters(model)

    def pieces(self) -> dict[str, Tensor]:
        """The rows of the parameters that this rank steps."""
        return {name: self.params[name].detach().to_local() for name in self.placement.here}

    def halves(self, group: Sequence[Any]) -> bool:
        return False

    def gradients(self, task: Trainable, state: TrainState, group: Sequence[Any], sides: Halves | None) -> Gradients:
        sums, rank, size = Sums(device_of(state)), self.ranks.rank, self.ranks.size
        seed_numbers(counter_seed(state.seed, "step", state.step, rank), device_of(state))
        last = state.batch + len(group) - 1
        for number, batch in enumerate(group, state.batch):
            self.whole.set_requires_gradient_sync(number == last)
            has = rank < row_count(batch)  # a rank without rows computes others, for nothing: all gather each block
            share = rank if has else 0
            self.whole.loss_of = partial(loss_of_rows, task, state, number, batch, share, size)
            with lost_ranks(within=True):
                (self.whole() * float(has)).backward()
            if has:
                sums.add(self.whole.loss)
        return Gradients([sums.numbers()], sums.beside)

    def sum(self, optimizer: Optimizer) -> None:
        masters = optimizer.named_masters()
        for name, parameter in self.params.items():
            if name in masters:
                gradient = parameter.grad
                masters[name].grad = torch.zeros_like(masters[name]) if gradient is None else gradient.to_local()
            parameter.grad = None

    def norm(self, optimizer: Optimizer, count: int) -> float:
        return norm_of_pieces(optimizer, [*self.params], self.ranks, self.holders, count)

    def publish(self) -> None:
        pass  # what the optimizer steps are the rows themselves


class _Losses(nn.Module):
    """A model whose forward pass is that of a loss, whichever of its methods this calls and whichever weights it
    reads: all weights outside of blocks are there meanwhile."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.loss_of: Callable[[], Loss]
        self.loss: Loss  # the last one

    def forward(self) -> Tensor:
        self.loss = self.loss_of()
        return self.loss.total


def _return_freed_memory() -> None:
    """Makes glibc give back what a block took as soon as it is freed. It would keep it, once a large tensor was freed,
    and what gathered blocks left took as much memory as the whole model."""
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 17)
