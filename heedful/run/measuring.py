"""How much measuring a training for so many minutes can afford, and whether it was long enough to mean something.

The model may be measured for a fifth as long as it trains. So it is measured on as large a share of the validation
data as lets it be measured several times within that, and then as often as that allows, up to ten times.
"""

import time
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn

SHARE = 0.2  # seconds of measuring for each of training
TIMES = 5  # that the model should be measured, at least
SMALLEST = 1 / 64  # share of the validation data
FEWEST, FEW = 100, 500  # steps below which a model has learnt little, and that are few for less than one pass


@runtime_checkable
class Measurable(Protocol):
    """What is needed of a job: what it measures on, a share of that, and the measurement."""

    valid: Any

    def portion(self, valid: Any, share: float) -> Any: ...
    def measure(self, model: Any) -> object: ...


class Affordable(NamedTuple):
    share: float  # of the validation data
    cost: float  # seconds of a measurement on it, about
    spent: float  # seconds that it took to find that out


def affordable_share(job: Measurable, model: nn.Module, minutes: float) -> Affordable:
    """What measuring a training of so many minutes can be: `model` is measured on larger and larger shares of the
    validation data. Leaves `job.valid` as it was."""
    whole, room = job.valid, SHARE * 60 * minutes / TIMES
    share, begin = SMALLEST, time.perf_counter()
    try:
        while True:
            job.valid = job.portion(whole, share)
            before = time.perf_counter()
            job.measure(model)
            spent = time.perf_counter() - before
            if share == 1 or 4 * spent > room:
                break
            share = min(1.0, 4 * share)
    finally:
        job.valid = whole
    chosen = max(SMALLEST, min(1.0, share * room / spent))
    return Affordable(chosen, spent * chosen / share, time.perf_counter() - begin)


def beside(minutes: float, share: float) -> str:
    """What a training for so many minutes takes beside them, measured on this share of the validation data."""
    part = "all" if share == 1 else f"{share:.1%}"
    return (
        f"{minutes:g} minutes of training; measuring on the way, on {part} of the validation data, takes at most a "
        "fifth more; then the best model is scored on all of the test data"
    )


def too_little(steps: int, epochs: float, loss: float, chance: float | None, *, started: bool) -> str:
    """Why scores mean little after so many steps and passes over the data; "" where nothing says so. `loss` is of the
    best model on the validation data, `chance` as `Job.chance`; `started`: with another run's model."""
    if chance is not None and loss >= chance:
        return f"a loss of {loss:.2f} is no better than {chance:.2f}, which knowing only how often what is right gives"
    if not started and (steps < FEWEST or (epochs < 1 and steps < FEW)):
        return f"{steps:,} steps, {epochs:.2g} times the data, are few for a model that begins with nothing"
    return ""
