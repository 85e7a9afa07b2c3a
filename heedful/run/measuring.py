"""How much measuring a training for so many minutes can afford.

The model may be measured for a fifth as long as it trains. So it is measured on as large a share of the validation
data as lets it be measured several times within that, and then as often as that allows, up to ten times.
"""

import time
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn

SHARE = 0.2  # seconds of measuring for each of training
TIMES = 5  # that the model should be measured, at least
SMALLEST = 1 / 64  # share of the validation data


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
