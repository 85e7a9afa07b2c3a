"""Settings of the C library for freed memory."""

import ctypes
import os
import sys
from contextlib import suppress

# Constants of glibc's <malloc.h>, and the environment variables that set the same.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
SETTINGS = {
    "MALLOC_TRIM_THRESHOLD_": (TRIM_THRESHOLD, 1 << 29),
    "MALLOC_MMAP_THRESHOLD_": (MMAP_THRESHOLD, 1 << 29),
    "MALLOC_TOP_PAD_": (TOP_PAD, 1 << 26),
}


def keep_freed_memory() -> None:
    """Makes glibc keep up to half a gigabyte of freed memory. By default it returns large freed blocks to the system,
    which clears them and maps them in again in every training step, with a page fault for each 4 KiB. Environment
    variables take precedence; without glibc nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for variable, (name, value) in SETTINGS.items():
            if variable not in os.environ:
                mallopt(name, value)
