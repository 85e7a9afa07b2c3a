"""Waits for other threads and processes."""

import time
from collections.abc import Callable

PATIENCE = 120  # seconds: longer than any stall of a machine, so that a wait ends only where the result never comes


def becomes(true: Callable[[], bool]) -> bool:
    """Waits until `true` holds, for PATIENCE seconds at most, and returns whether it does."""
    until = time.monotonic() + PATIENCE
    while not (found := true()) and time.monotonic() < until:
        time.sleep(0.005)
    return found
