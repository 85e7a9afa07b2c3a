"""The one training loop.

`fit` is a generator: it yields after each optimizer step, and its caller logs, measures, saves or stops in the body of
a `for`. All random numbers come from counters, (seed, epoch) for the order of the data and (seed, epoch, batch, row)
for dropout, so that an interrupted training continues with the numbers that it would have had, and each row gets the
same ones on any number of ranks. (On a GPU, dropout depends on step and rank: drawing row by row would be slow there.)
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from heedful.core import dropout
from heedful.core.kernels import seed_numbers
from heedful.core.seeds import counter_seed
from heedful.errors import NonFiniteError
from heedful.training.halves import FEWEST, Halves
from heedful.training.loss import Loss, Sum, added
from heedful.training.optim import Average, Optimizer, schedule
from heedful.training.ranks import Ranks

Batch = TypeVar("Batch", bound=tuple[Any, ...])
ALONE = Ranks()
NON_FINITE_FIX = "lower train.lr, train in fp32, or continue with --set train.non_finite=skip"


@runtime_checkable
class Trainable(Protocol):
    """What the loop needs of a task. A batch is a named tuple: its tensors and lists have an entry for each row; its
    other values, numbers or None, belong to the whole batch."""

    def batches(self, epoch: int, model: Any) -> Sequence[Any]:
        """The batches of an epoch, in order. The model, as it is when the epoch begins, may be used to make them."""

    def loss(self, model: Any, batch: Any) -> Loss: ...


def row_count(batch: Sequence[Any]) -> int:
    """How many rows a batch has."""
    return next(len(part) for part in batch if isinstance(part, Tensor | list))


def rows_of(batch: Batch, rank: int, ranks: int) -> Batch:
    """The rows of this batch that belong to `rank`: every `ranks`-th one."""
    shared = (part[rank::ranks] if isinstance(part, Tensor | list) else part for part in batch)
    return type(batch)(*shared)


def steps_in(batches: int, accumulate: int) -> int:
    """How many optimizer steps so many batches make; the last step may have fewer batches."""
    return -(-batches // accumulate)


class CachingTask:
    """A task whose batches are made once an epoch."""

    def __init__(self, task: Trainable) -> None:
        self.task = task
        self._made: tuple[int, Sequence[Any]] | None = None

    def batches(self, epoch: int, model: Any) -> Sequence[Any]:
        if self._made is None or self._made[0] != epoch:
            self._made = epoch, self.task.batches(epoch, model)
        return self._made[1]

    def loss(self, model: Any, batch: Any) -> Loss:
        return self.task.loss(model, batch)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When a training ends: as soon as one of these is reached."""

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None

    def progress(self, state: "TrainState", batches: int, accumulate: int) -> float:
        """The share that is used up. `batches`: those of the current epoch; others may have more or fewer."""
        parts = [0.0]
        if self.steps is not None:
            parts.append(state.step / self.steps)
        if self.epochs is not None:
            each = steps_in(batches, accumulate)
            parts.append((state.epoch * each + state.batch // accumulate) / math.ceil(self.epochs * each))
        if self.minutes is not None:
            parts.append(state.seconds / (60 * self.minutes))
        return max(parts)


@dataclass
class TrainState:
    """The state of a training: everything that continuing it needs."""

    model: nn.Module
    optimizer: Optimizer
    average: Average
    seed: int
    step: int = 0
    epoch: int = 0
    batch: int = 0  # how many batches of this epoch are done
    tokens: int = 0
    seconds: float = 0.0  # spent training, measuring and saving left out
    left_out: list[list[int]] = field(default_factory=list)  # [epoch, batch] to skip
    # Frozen models that the loss or the batches need besides the one that learns; they are not saved.
    companions: Mapping[str, nn.Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for companion in self.companions.values():
            companion.eval().requires_grad_(False)


@dataclass(frozen=True)
class Step:
    """One optimizer step."""

    step: int
    epoch: int
    loss: float  # the mean over the count, in nats, without `Loss.extra`
    count: int
    norm: float  # of the gradient, before clipping
    lr: float  # as a share of the peak
    progress: float  # 0 to 1
    seconds: float = field(repr=False)  # of training so far
    signal: int = 0  # that one of the ranks received, shared by all; 0: none
    beside: Mapping[str, Sum] = field(default_factory=dict, repr=False)  # `Loss.beside` of this rank's rows


@dataclass(frozen=True)
class Skipped:
    """A step that was not made, because the loss or a gradient was not finite."""

    error: NonFiniteError
    batch: list[int]  # [epoch, batch]


def fit(
    task: Trainable,
    state: TrainState,
    budget: Budget,
    *,
    accumulate: int = 1,
    ranks: Ranks = ALONE,
    tolerant: bool = False,
    signal: Callable[[], int] = lambda: 0,
    halves: bool = False,
) -> Iterator[Step | Skipped]:
    """Trains until the budget is used up, yielding after each step.

    Where a loss or a gradient is NaN or infinite the weights are not changed: raises NonFiniteError, or, if `tolerant`,
    skips the batches of this step and yields Skipped. The caller may set `state` back before it continues. `signal`
    returns the number of a signal that was received, which the next step reports. With `halves`, for a loss that is a
    sum over rows, the two halves of a batch are computed at the same time where that is faster.
    """
    state.model.train()
    task = task if isinstance(task, CachingTask) else CachingTask(task)
    sides = Halves.where_useful(_device(state)) if halves else None
    with sides or nullcontext():
        begin = time.perf_counter()
        while (found := _next_batches(task, state, budget, accumulate)) is not None:
            group, progress = found
            halved = sides if min(_own_rows(batch, ranks) for batch in group) >= FEWEST else None
            with halved.threads() if halved else nullcontext():
                made = _step(task, state, group, progress, begin, ranks=ranks, signal=signal, sides=halved)
            if isinstance(made, Skipped) and not tolerant:
                raise made.error
            yield made
            begin = time.perf_counter()


def _step(
    task: Trainable,
    state: TrainState,
    group: Sequence[Any],
    progress: float,
    begin: float,
    *,
    ranks: Ranks,
    signal: Callable[[], int],
    sides: Halves | None,
) -> Step | Skipped:
    """One step; its time is counted from `begin`."""
    total, extra, count, beside = _gradients(task, state, group, ranks, sides)
    now = time.perf_counter()
    spent, begin = now - begin, now
    everyone = ranks.gather([total, extra, float(count), float(signal()), state.seconds + spent])
    totals, extras, counts, signals, seconds = zip(*everyone, strict=True)  # of each rank
    state.optimizer.sum(ranks)
    total, extra, count = sum(totals), sum(extras), int(sum(counts))
    parts = max(count, 1)  # a batch may have nothing to learn
    mean = total / parts
    norm = state.optimizer.norm(parts)
    if not math.isfinite(mean) or not math.isfinite(norm):
        error = non_finite(state, mean)
        state.optimizer.zero()
        skipped = [state.epoch, state.batch]
        state.batch += len(group)
        return Skipped(error, skipped)
    state.step += 1
    share = schedule(state.optimizer.config, state.step, progress)
    state.optimizer.step(share, norm, parts)
    state.average.update(state.optimizer.masters, state.step)
    state.batch += len(group)
    state.tokens += count
    spent = seconds[0] + time.perf_counter() - begin
    state.seconds = ranks.gather([spent])[0][0]  # by the first rank's clock: budget and rate are the same on all
    loss, asked = (total - extra) / parts, int(max(signals))
    return Step(state.step, state.epoch, loss, count, norm, share, progress, state.seconds, asked, beside)


def _next_batches(
    task: Trainable, state: TrainState, budget: Budget, accumulate: int
) -> tuple[Sequence[Any], float] | None:
    """The batches of the next step, and the progress before it; None where the budget is used up."""
    while True:
        batches = task.batches(state.epoch, state.model)
        if state.batch >= len(batches):
            state.epoch, state.batch = state.epoch + 1, 0
            continue
        progress = budget.progress(state, len(batches), accumulate)
        if progress >= 1:
            return None
        group = batches[state.batch : state.batch + accumulate]
        if [state.epoch, state.batch] not in state.left_out:
            return group, progress
        state.batch += len(group)


def _gradients(
    task: Trainable, state: TrainState, group: Sequence[Any], ranks: Ranks, sides: Halves | None
) -> tuple[float, float, int, Mapping[str, Sum]]:
    """Adds up the gradients of this rank's rows of the batches. Returns the total of `Loss`, its extra, its count, and
    its further sums."""
    beside: dict[str, Sum] = {}
    device = _device(state)
    (total, extra), count = torch.zeros(2, device=device), 0
    seed_numbers(counter_seed(state.seed, "step", state.step, ranks.rank), device)
    for number, batch in enumerate(group, state.batch):
        if not _own_rows(batch, ranks):
            continue
        if sides is None:
            losses = [_loss(task, state, number, batch, ranks)]
            losses[0].total.backward()
            state.optimizer.collect()
        else:
            losses = _by_halves(task, state, number, batch, ranks, sides)
        for loss in losses:
            total += loss.total.detach()
            extra += loss.extra.detach() if isinstance(loss.extra, Tensor) else loss.extra
            count += loss.count
            beside = added(beside, loss.beside)
    return float(total), float(extra), count, beside


def _own_rows(batch: Any, ranks: Ranks) -> int:
    return len(range(ranks.rank, row_count(batch), ranks.size))


def _loss(task: Trainable, state: TrainState, number: int, batch: Any, ranks: Ranks) -> Loss:
    """The loss of a rank's rows of the batch with this number."""
    own = range(ranks.rank, row_count(batch), ranks.size)
    with dropout.rows([counter_seed(state.seed, state.epoch, number, row) for row in own]):
        return task.loss(state.model, rows_of(batch, ranks.rank, ranks.size))


def _by_halves(task: Trainable, state: TrainState, number: int, batch: Any, ranks: Ranks, sides: Halves) -> list[Loss]:
    """The losses of the two halves of this rank's rows, as two ranks would compute them."""

    def half(side: int) -> tuple[Loss, Sequence[Tensor | None]]:
        loss = _loss(task, state, number, batch, Ranks(ranks.rank + side * ranks.size, 2 * ranks.size))
        return loss, torch.autograd.grad(loss.total, state.optimizer.params, allow_unused=True)

    (one, first), (other, second) = sides.both(half)
    state.optimizer.collect_both(first, second)
    return [one, other]


def _device(state: TrainState) -> torch.device:
    return next(state.model.parameters()).device


def non_finite(state: TrainState, loss: float) -> NonFiniteError:
    """The error, which names the first gradient that is not finite, or the loss."""
    for name, master in state.optimizer.named_masters().items():
        if master.grad is not None and not master.grad.isfinite().all():
            what = f"the gradient of {name} is not finite (loss {loss:g})"
            break
    else:
        what = f"the loss is {loss:g}"
    return NonFiniteError(what, where=f"step {state.step + 1}", fix=NON_FINITE_FIX)
