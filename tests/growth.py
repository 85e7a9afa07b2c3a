"""How the time that something takes grows with the length of its input: as an exponent, in processor time."""

import gc
import time
from collections.abc import Callable, Mapping
from math import log
from typing import TypeVar

T = TypeVar("T")

MOST = 1.5  # the largest exponent of what counts as linear: other work on the machine, and memory, make it uneven
LITTLE = 0.05  # seconds: what takes less grows too little to be measured, and to harm
TRIES = 3


def exponent(act: Callable[[T], object], few: T, many: T, *, times: float, little: float = LITTLE) -> float:
    """Returns the exponent by which the processor time grows from an input to one that is `times` as long: 1 if it is
    in proportion, 2 if it is quadratic; 0 where the longer one takes less than `little` seconds. By the shortest time
    of some tries for each, as other work on the machine only adds to it."""
    found = short = long = float("inf")
    for _ in range(TRIES):
        long = min(long, processor_time(act, many))
        if long < little:
            return 0.0
        short = min(short, max(processor_time(act, few), 1e-6))
        found = log(long / short) / log(times)
        if found <= MOST:
            break
    return found


def processor_time(act: Callable[[T], object], given: T) -> float:
    gc.disable()
    begun = time.process_time()
    try:
        act(given)
    finally:
        gc.enable()
    return time.process_time() - begun


def growing(act: Callable[[T], object], made: Mapping[str, Callable[[int], T]], *, most: int) -> dict[str, float]:
    """Returns what grows by more than in proportion, and its exponents. The inputs are made of a part that is repeated:
    first a tenth of `most` times, since what is worse than quadratic would take too long, and then `most` times."""
    slow = dict[str, float]()
    for name, make in made.items():
        for count in (most // 10, most):
            found = exponent(act, make(count // 10), make(count), times=10)
            if found > MOST:
                slow[name] = round(found, 2)
                break
    return slow
