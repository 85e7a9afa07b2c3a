"""Memory that a step gives back is there for the next one."""

import os
import subprocess
import sys

import pytest

from heedful.cli.memory import SETTINGS

FAULTS = """
import ctypes, resource
import torch
from heedful.cli.memory import keep_freed_memory

torch.set_num_threads(1)
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: pages of 4 KiB alone
def step():
    blocks = [torch.zeros(1 << 24) for _ in range(2)]  # 64 MiB each: more than glibc would ever learn to keep
def faults():
    step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(6):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults())
keep_freed_memory()
print(faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's, and elsewhere nothing is done")
def test_no_page_is_faulted_in_again():
    bare = {key: value for key, value in os.environ.items() if key not in SETTINGS}

    def faults(**settings: str) -> list[int]:
        words = [sys.executable, "-c", FAULTS]
        done = subprocess.run(words, env=bare | settings, capture_output=True, text=True, check=True)
        return [*map(int, done.stdout.split())]

    before, kept = faults()
    assert before > 150_000, "6 steps of 128 MiB, 4 KiB at a time"
    assert kept < 50_000, "a block may move once or twice"
    assert min(faults(**dict.fromkeys(SETTINGS, "65536"))) > 150_000, "what the environment says goes first"
