"""Budgets of minutes that mean the same beside other programs."""

import time
from types import SimpleNamespace
from unittest import mock

from heedful.training import loop


def by_processor_time() -> None:
    """From now on the minutes of a training are of the processor, not of the clock."""
    mock.patch.object(loop, "time", SimpleNamespace(perf_counter=time.process_time)).start()  # all that it asks of time
