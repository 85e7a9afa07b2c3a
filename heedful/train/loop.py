"""The one training loop.

`fit` is a generator: it yields after each optimizer step, and whoever runs it logs, measures, saves or stops in
the body of a `for`. Everything random comes from counters, (seed, epoch) for the order of the data and (seed,
step) for dropout, so that a training that was interrupted goes on with the numbers it would have had.
"""

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch

from heedful.errors import NonFiniteError
from heedful.train.loss import Loss
from heedful.train.optim import Average, Optimizer, schedule


@runtime_checkable
class Trainable(Protocol):
    """What the loop needs of a task."""

    def batches(self, epoch: int) -> Sequence[Any]: ...
    def loss(self, model: Any, batch: Any) -> Loss: ...


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When training ends: the first of these that is given and reached."""

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None

    def progress(self, state: "State", steps_per_epoch: int) -> float:
        parts = [0.0]
        if self.steps is not None:
            parts.append(state.step / self.steps)
        if self.epochs is not None:
            parts.append(state.step / math.ceil(self.epochs * steps_per_epoch))
        if self.minutes is not None:
            parts.append(state.seconds / (60 * self.minutes))
        return max(parts)


@dataclass
class State:
    """Where a training stands: with the weights and the optimizer, all that going on needs."""

    model: Any  # an nn.Module that the task's loss knows
    optimizer: Optimizer
    average: Average
    seed: int
    step: int = 0
    epoch: int = 0
    batch: int = 0  # how many batches of this epoch are done
    tokens: int = 0
    seconds: float = 0.0  # spent training, measuring and saving left out


@dataclass(frozen=True)
class Step:
    """What one optimizer step was."""

    step: int
    epoch: int
    loss: float  # the mean over what the batch counts, in nats
    count: int
    norm: float  # of the gradient, before clipping
    lr: float  # the share of the peak
    progress: float  # 0 to 1
    seconds: float = field(repr=False)  # of training so far


def fit(task: Trainable, state: State, budget: Budget, *, accumulate: int = 1) -> Iterator[Step]:
    """Trains until the budget is used up, yielding after each step.

    Raises NonFiniteError, before the weights are touched, where a loss or a gradient is NaN or infinite.
    """
    state.model.train()
    device = next(state.model.parameters()).device
    begin = time.perf_counter()
    while True:
        batches = task.batches(state.epoch)
        steps_per_epoch = -(-len(batches) // accumulate)
        while state.batch < len(batches):
            progress = budget.progress(state, steps_per_epoch)
            if progress >= 1:
                return
            torch.manual_seed(counter_seed(state.seed, "step", state.step))
            total, count = torch.zeros((), device=device), 0
            group = batches[state.batch : state.batch + accumulate]
            for batch in group:
                loss = task.loss(state.model, batch)
                loss.total.backward()
                state.optimizer.collect()
                total += loss.total.detach()
                count += loss.count
            norm = state.optimizer.norm(count)
            mean = float(total) / count
            if not math.isfinite(mean) or not math.isfinite(norm):
                raise non_finite(state, mean)
            state.step += 1
            share = schedule(state.optimizer.config, state.step, progress)
            state.optimizer.step(share, norm)
            state.average.update(state.optimizer.masters, state.step)
            state.batch += len(group)
            state.tokens += count
            now = time.perf_counter()
            state.seconds += now - begin
            yield Step(state.step, state.epoch, mean, count, norm, share, progress, state.seconds)
            begin = time.perf_counter()
        state.epoch, state.batch = state.epoch + 1, 0


def counter_seed(*key: object) -> int:
    """A seed for the random numbers that belong to this key, the same on every machine."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def non_finite(state: State, loss: float) -> NonFiniteError:
    """Names what is not finite: the first such gradient, or the loss itself."""
    for name, master in zip(state.optimizer.names, state.optimizer.masters, strict=True):
        if master.grad is not None and not master.grad.isfinite().all():
            what = f"the gradient of {name} is not finite (loss {loss:g})"
            break
    else:
        what = f"the loss is {loss:g}"
    return NonFiniteError(what, where=f"step {state.step + 1}", fix="lower train.lr, or train in fp32")
