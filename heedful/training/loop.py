"""The one training loop.

`fit` is a generator: it yields after each optimizer step, and its caller logs, measures, saves or stops in the body of
a `for`. All random numbers come from counters, (seed, epoch) for the order of the data and (seed, epoch, batch, row)
for dropout, so that an interrupted training continues with the numbers that it would have had, and each row gets the
same ones on any number of ranks. (On a GPU, dropout depends on step and rank: drawing row by row would be slow there.)

A `Strategy` computes the gradients of a step and sums them over the ranks: `Replicas` here, where each rank holds
everything; others are in `heedful.training.sharding`.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from heedful.core import dropout
from heedful.core.kernels import seed_numbers
from heedful.core.seeds import counter_seed
from heedful.errors import NonFiniteError
from heedful.training.halves import FEWEST, Halves
from heedful.training.loss import Loss, Sum, added
from heedful.training.optim import Average, Optimizer, schedule
from heedful.training.placement import Placement
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


class Gradients(NamedTuple):
    """What `Strategy.gradients` tells of this rank's rows: of each of its shares of them the total of `Loss`, its extra
    and its count; and their further sums."""

    shares: Sequence[tuple[float, float, int]]
    beside: Mapping[str, Sum]


@runtime_checkable
class Strategy(Protocol):
    """How the work of a step, and what it needs, are divided among ranks."""

    @property
    def shares(self) -> int:
        """In how many shares each batch is computed, whatever the number of ranks; 0: one for each rank."""

    @property
    def placement(self) -> Placement | None:
        """What each rank holds of weights, optimizer and average; None: all of them."""

    def halves(self, group: Sequence[Any]) -> bool:
        """Whether the threads of a rank may compute two halves of its rows of these batches at the same time."""

    def gradients(self, task: Trainable, state: "TrainState", group: Sequence[Any], sides: Halves | None) -> Gradients:
        """Computes the gradients of this rank's rows of the batches."""

    def sum(self, optimizer: Optimizer) -> None:
        """Gives the optimizer's masters their gradients, summed over all ranks."""

    def norm(self, optimizer: Optimizer, count: int) -> float:
        """The norm, over all parameters, of the summed gradients divided by `count`."""

    def publish(self) -> None:
        """Gives each rank the weights that others have changed."""


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
    strategy: Strategy | None = None  # None: `Replicas`

    def __post_init__(self) -> None:
        for companion in self.companions.values():
            companion.eval().requires_grad_(False)

    @property
    def placement(self) -> Placement | None:
        return None if self.strategy is None else self.strategy.placement

    def whole(self, weights: Sequence[Tensor] | None = None) -> AbstractContextManager[nn.Module]:
        """Inside this block the first rank has the average's model; with these weights, or the pieces of them that each
        rank holds, instead of `average.trained`. All ranks enter it."""
        weights = self.average.trained if weights is None else weights
        if self.placement is None:
            return nullcontext(self.average.with_weights(weights))
        pieces = dict(zip(self.average.names, weights, strict=True))
        return self.placement.gathered(self.average.model, pieces)


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
    strategy = state.strategy or Replicas(ranks)
    task = task if isinstance(task, CachingTask) else CachingTask(task)
    sides = Halves.where_useful(device_of(state)) if halves else None
    with sides or nullcontext():
        begin = time.perf_counter()
        while (found := _next_batches(task, state, budget, accumulate)) is not None:
            group, progress = found
            halved = sides if strategy.halves(group) else None
            with halved.threads() if halved else nullcontext():
                made = _step(task, state, group, progress, begin, strategy, ranks=ranks, signal=signal, sides=halved)
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
    strategy: Strategy,
    *,
    ranks: Ranks,
    signal: Callable[[], int],
    sides: Halves | None,
) -> Step | Skipped:
    """One step; its time is counted from `begin`."""
    shares, beside = strategy.gradients(task, state, group, sides)
    now = time.perf_counter()
    spent, begin = now - begin, now
    flat = [float(number) for share in shares for number in share]
    everyone = ranks.gather([float(signal()), state.seconds + spent, *flat])
    signals, seconds = ([each[n] for each in everyone] for n in range(2))
    total, extra, tokens = (sum(number for each in everyone for number in each[n::3]) for n in (2, 3, 4))
    count = int(tokens)
    strategy.sum(state.optimizer)
    parts = max(count, 1)  # a batch may have nothing to learn
    mean = total / parts
    norm = strategy.norm(state.optimizer, parts)
    if not math.isfinite(mean) or not math.isfinite(norm):
        error = non_finite(state, mean)
        state.optimizer.zero()
        skipped = [state.epoch, state.batch]
        state.batch += len(group)
        return Skipped(error, skipped)
    state.step += 1
    share = schedule(state.optimizer.config, state.step, progress)
    state.optimizer.step(share, norm, parts)
    strategy.publish()
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


class Replicas:
    """Each rank holds everything and computes its rows of each batch; the gradients are summed over all ranks."""

    shares = 0
    placement = None

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks

    def halves(self, group: Sequence[Any]) -> bool:
        return min(len(self._rows(batch)) for batch in group) >= FEWEST

    def gradients(self, task: Trainable, state: TrainState, group: Sequence[Any], sides: Halves | None) -> Gradients:
        sums = Sums(device_of(state))
        seed_numbers(counter_seed(state.seed, "step", state.step, self.ranks.rank), device_of(state))
        for number, batch in enumerate(group, state.batch):
            if not self._rows(batch):
                continue
            if sides is None:
                losses = [loss_of_rows(task, state, number, batch, self.ranks.rank, self.ranks.size)]
                losses[0].total.backward()
                state.optimizer.collect()
            else:
                losses = self._by_halves(task, state, number, batch, sides)
            for loss in losses:
                sums.add(loss)
        return Gradients([sums.numbers()], sums.beside)

    def sum(self, optimizer: Optimizer) -> None:
        optimizer.sum(self.ranks)

    def norm(self, optimizer: Optimizer, count: int) -> float:
        return optimizer.norm(count)

    def publish(self) -> None:
        pass

    def _rows(self, batch: Any) -> range:
        return range(self.ranks.rank, row_count(batch), self.ranks.size)

    def _by_halves(self, task: Trainable, state: TrainState, number: int, batch: Any, sides: Halves) -> list[Loss]:
        """The losses of the two halves of this rank's rows, as two ranks would compute them."""
        rank, size = self.ranks.rank, self.ranks.size

        def half(side: int) -> tuple[Loss, Sequence[Tensor | None]]:
            loss = loss_of_rows(task, state, number, batch, rank + side * size, 2 * size)
            return loss, torch.autograd.grad(loss.total, state.optimizer.params, allow_unused=True)

        (one, first), (other, second) = sides.both(half)
        state.optimizer.collect_both(first, second)
        return [one, other]


class Sums:
    """The sums of some losses, without their graphs."""

    def __init__(self, device: torch.device) -> None:
        self.total, self.extra, self.count = torch.zeros((), device=device), torch.zeros((), device=device), 0
        self.beside: dict[str, Sum] = {}

    def add(self, loss: Loss) -> None:
        self.total += loss.total.detach()
        self.extra += loss.extra.detach() if isinstance(loss.extra, Tensor) else loss.extra
        self.count += loss.count
        self.beside = added(self.beside, loss.beside)

    def numbers(self) -> tuple[float, float, int]:
        """The total, the extra and the count."""
        return float(self.total), float(self.extra), self.count


def loss_of_rows(task: Trainable, state: TrainState, number: int, batch: Any, share: int, shares: int) -> Loss:
    """The loss of the rows of a share of the batch with this number in its epoch."""
    own = range(share, row_count(batch), shares)
    with dropout.rows([counter_seed(state.seed, state.epoch, number, row) for row in own]):
        return task.loss(state.model, rows_of(batch, share, shares))


def device_of(state: TrainState) -> torch.device:
    return next(state.model.parameters()).device


def non_finite(state: TrainState, loss: float) -> NonFiniteError:
    """The error, which names the first gradient that is not finite, or the loss."""
    for name, master in state.optimizer.named_masters().items():
        if master.grad is not None and not master.grad.isfinite().all():
            what = f"the gradient of {name} is not finite (loss {loss:g})"
            break
    else:
        what = f"the loss is {loss:g}"
        what = f"a gradient of another rank is not finite ({what})" if math.isfinite(loss) else what
    return NonFiniteError(what, where=f"step {state.step + 1}", fix=NON_FINITE_FIX)
