"""Memory that a step gives back is there for the next one."""

import os
import subprocess
import sys

import pytest

from heedful.cli.memory import SETTINGS

FAULTS = """
import ctypes, resource, statistics, sys
from heedful.cli.memory import keep_freed_memory

libc = ctypes.CDLL(None)
libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: pages of 4 KiB alone
if sys.argv[1] == "kept":
    keep_freed_memory()
def step():
    blocks = [ctypes.c_void_p() for _ in range(2)]
    for block in blocks:  # as torch takes it; 64 MiB: more than glibc would ever learn to keep
        libc.posix_memalign(ctypes.byref(block), ctypes.c_size_t(64), ctypes.c_size_t(1 << 26))
        libc.memset(block, 0, ctypes.c_size_t(1 << 26))
    for block in blocks:
        libc.free(block)
def faulted_in():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(statistics.median(faulted_in() for _ in range(15)))  # in a few steps the heap still grows
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's, and elsewhere nothing is done")
def test_no_page_is_faulted_in_again():
    bare = {key: value for key, value in os.environ.items() if key not in SETTINGS}

    def faults(how: str, **settings: str) -> int:
        words = [sys.executable, "-c", FAULTS, how]
        done = subprocess.run(words, env=bare | settings, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("given back") > 30_000, "a step of 128 MiB, 4 KiB at a time"
    assert faults("kept") < 100
    assert faults("kept", **dict.fromkeys(SETTINGS, "65536")) > 30_000, "what the environment says goes first"
