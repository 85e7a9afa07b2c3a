"""Measuring a model on the validation data while it is trained, and keeping the best one; how much of the data a
training of some length can afford to measure on, and whether it was long enough for its scores to mean something.

Measuring may take a fifth of the training's time, unless the recipe says how often to measure. So the model is measured
on the largest share of the validation data that can be measured several times within that. With a budget of minutes it
is then measured as often as the time allows, up to ten times. With one of steps or epochs, how long they take is known
at the first measurement, and the share is one that can be measured all ten times, or in a moment. Where that is all of
the data, as in most trainings, nothing depends on the clock.
"""

import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn

from heedful.errors import NonFiniteError
from heedful.metrics.names import BEFORE, in_words
from heedful.run.card import Scores
from heedful.run.events import Measured
from heedful.run.job import Job, Measurement
from heedful.run.log import Log
from heedful.run.resume import Progress
from heedful.training.loop import NON_FINITE_FIX, TrainState
from heedful.training.signals import Signals

SHARE = 0.2  # seconds of measuring for each second of training
TIMES = 5  # how often the model should be measured, at least, with a budget of minutes
TEN_TIMES = 12  # ten measurements, and what it takes to choose their share
QUICK = 0.25  # seconds of a measurement that every training can afford
SMALLEST = 1 / 1024  # share of the validation data
FEWEST, FEW = 100, 500  # steps below which a model has learnt little; and below which, in less than one epoch
FALLS = 0.01  # share of the loss by which the last measurement is below the one before, where it still falls
FALLING = "its loss was still falling, so to train on makes it better"
LEARNT = 0.25  # a loss below this share of chance's means that the model has learnt, however few the steps


class Validation:
    """Measures the models of the run in `out`, and saves the best of them there.

    A signal ends a measurement by `Leave` and changes nothing: the measurement is made when the run continues.
    """

    def __init__(self, job: Job[Any, Any, Any], out: Path, log: Log, signals: Signals) -> None:
        self.job, self.out, self.log, self.signals = job, out, log, signals
        self.whole = job.amount(job.valid)

    @property
    def part(self) -> float:
        """The part of the validation data that is measured on: the share, or what is the fewest to measure on."""
        return self.job.amount(self.job.valid) / self.whole

    @cached_property
    def floor(self) -> float:
        """That of the job, with the share of the validation data that is measured on."""
        return self.job.floor()

    def choose_share(self, model: nn.Module, progress: Progress, room: float) -> None:
        """Chooses the share of the validation data that can be measured on in `room` seconds; a run that is continued
        keeps its share."""
        if progress.best is not None:  # older runs, which have no share, measured on all
            progress.share = progress.share or 1.0
        if not progress.share:
            with self.signals.giving_up():
                found = affordable_share(self.job, model, room)
            progress.share, progress.cost, progress.measuring = found
        self.take_share(progress.share)

    def take_share(self, share: float) -> None:
        """Measures on this share of the validation data from now on."""
        if share < 1:
            self.job.share, self.job.valid = share, self.job.portion(self.job.valid, share)

    def measure(self, model: nn.Module, state: TrainState, progress: Progress) -> Measured:
        """Measures the average of the weights, and saves it if it is the best so far."""
        found = self._measured(model, state, progress)
        better = progress.exceeded_by(found.rank, found.loss, self.floor)
        progress.worse = 0 if better else progress.worse + 1
        as_good = found.rank == progress.best and found.loss <= progress.best_loss
        return self._recorded(found, model, state, progress, best=better or as_good)

    def measure_mean(self, model: nn.Module, state: TrainState, progress: Progress, count: int) -> Measured:
        """Measures the mean of the last `count` planned checkpoints, and saves it if it is better than any model
        before."""
        found = self._measured(model, state, progress)
        best = progress.exceeded_by(found.rank, found.loss, self.floor)
        return self._recorded(found, model, state, progress, best=best, averaged=count)

    def _measured(self, model: nn.Module, state: TrainState, progress: Progress) -> Measurement:
        """The measurement, whose time is added to `progress`."""
        begin = time.perf_counter()
        try:
            with self.signals.giving_up():
                found = self.job.measure(model)
        except NonFiniteError as error:
            raise NonFiniteError(error.what, where=f"step {state.step}, measured", fix=NON_FINITE_FIX) from None
        progress.cost = time.perf_counter() - begin
        progress.measuring += progress.cost
        return found

    def _recorded(
        self,
        found: Measurement,
        model: nn.Module,
        state: TrainState,
        progress: Progress,
        *,
        best: bool,
        averaged: int = 0,
    ) -> Measured:
        """Logs a measurement, and saves the model if it is the best."""
        self.log.measured(state.step, found, averaged=averaged)
        if best:
            progress.best, progress.best_loss = found.rank, found.loss
            progress.best_step, progress.best_averaged = state.step, averaged > 0
            self.job.write(self.out, model)
        return Measured(state.step, found.loss, found.scores, best, found.sample)


@runtime_checkable
class Measurable(Protocol):
    """What `affordable_share` needs of a job."""

    valid: Any

    def portion(self, valid: Any, share: float) -> Any: ...
    def measure(self, model: Any) -> object: ...


class Affordable(NamedTuple):
    share: float  # of the validation data
    cost: float  # seconds that a measurement on it takes, about
    spent: float  # seconds that finding this out took


def affordable_share(job: Measurable, model: nn.Module, room: float) -> Affordable:
    """The share of the validation data that can be measured on in `room` seconds, found by measuring `model` on larger
    and larger shares, which take at most in proportion. Leaves `job.valid` as it was."""
    whole, share, begin = job.valid, SMALLEST, time.perf_counter()
    try:
        while True:
            job.valid = job.portion(whole, share)
            before = time.perf_counter()
            job.measure(model)
            spent = time.perf_counter() - before
            chosen = share * room / max(spent, 1e-9)
            if chosen >= 1 or 4 * spent > room:
                break
            share = chosen
    finally:
        job.valid = whole
    chosen = max(SMALLEST, min(1.0, chosen))
    return Affordable(chosen, spent * chosen / share, time.perf_counter() - begin)


def measured_on(part: float, minutes: float | None) -> str:
    """A note on what is measured, and on the time that it takes."""
    share = "all" if part == 1 else f"{100 * part:.2g} %"
    of_all = "" if part == 1 else "; --set train.eval_every=N measures on all of them, every N steps"
    if minutes is None:
        return f"measured on {share} of the validation data, which takes at most a fifth of the time{of_all}"
    return f"{minutes:g} minutes, and at most a fifth more to measure, on {share} of the validation data{of_all}"


def still_falling(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the last validation loss of these rows of metrics.jsonl is clearly the smallest."""
    losses = [row["valid_loss"] for row in rows if "valid_loss" in row and "averaged" not in row]
    return len(losses) > 1 and losses[-1] < min(losses[:-1]) * (1 - FALLS)


def no_better_than_before(scores: Scores) -> str:
    """That the first score of the first test set is no higher than it was of the model that the training began with; ""
    where it is, or that is not known."""
    test, own = next(iter(scores.items()), ("", {}))
    name = next((name for name in own if f"{name}{BEFORE}" in own), None)
    if name is None or float(own[name]) > float(own[f"{name}{BEFORE}"]):
        return ""
    now, before = (in_words(each, float(own[each])) for each in (name, f"{name}{BEFORE}"))
    return f"no better than the model that it began with ({now}, {before}, on {test})"


def too_little(steps: int, epochs: float, loss: float, chance: float | None, *, started: bool) -> str:
    """Why the scores mean little after so many steps and epochs; "" where there is no reason to think so. `loss` is
    that of the best model on the validation data, `chance` that of `Job.chance`; `started`: from another run's model.
    """
    if chance is not None and loss >= chance:
        return f"a loss of {loss:.2f} is no better than {chance:.2f}, that of knowing only how frequent each answer is"
    learnt = started or (chance is not None and loss < LEARNT * chance)
    if not learnt and (steps < FEWEST or (epochs < 1 and steps < FEW)):
        return f"{steps:,} steps, {epochs:.2g} times the data, are few for a model that begins with nothing"
    return ""
