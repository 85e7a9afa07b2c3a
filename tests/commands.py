"""Calls the command line in this process."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from heedful import cli


def heed(*words: object) -> int:
    """Runs a command and returns its exit code."""
    sys.argv = ["heed", *map(str, words)]
    with pytest.raises(SystemExit) as left:
        cli.main()
    return int(left.value.code or 0)


@contextmanager
def standard_input(data: str | bytes) -> Iterator[None]:
    """Replaces standard input in this block."""
    with tempfile.TemporaryFile() as given:
        given.write(data.encode() if isinstance(data, str) else data)
        given.seek(0)
        kept = os.dup(0)
        os.dup2(given.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)
