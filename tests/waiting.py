"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable

PATIENCE = 120  # seconds: more than a machine that is stalled takes, so that only what never comes is given up


def becomes(true: Callable[[], bool]) -> bool:
    """Whether it is true, or is so before long."""
    until = time.monotonic() + PATIENCE
    while not (found := true()) and time.monotonic() < until:
        time.sleep(0.005)
    return found
