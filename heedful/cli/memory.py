"""What the C library does with memory that is given back to it."""

import ctypes
import os
import sys
from contextlib import suppress

# Names of glibc's <malloc.h>, and what environment variables set them as well.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
SETTINGS = {
    "MALLOC_TRIM_THRESHOLD_": (TRIM_THRESHOLD, 1 << 29),
    "MALLOC_MMAP_THRESHOLD_": (MMAP_THRESHOLD, 1 << 29),
    "MALLOC_TOP_PAD_": (TOP_PAD, 1 << 26),
}


def keep_freed_memory() -> None:
    """glibc hands large freed blocks to the system, which clears them and maps them in again, a page fault for each
    4 KiB, in every step of a training again. From here on it keeps up to half a gigabyte. What the environment says
    goes first; elsewhere than with glibc nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for variable, (name, value) in SETTINGS.items():
            if variable not in os.environ:
                mallopt(name, value)
