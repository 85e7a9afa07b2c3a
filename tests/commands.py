"""The command line, called in this process."""

import sys

import pytest

from heedful import cli


def heed(*words: object) -> int:
    """The exit code of a command."""
    sys.argv = ["heed", *map(str, words)]
    with pytest.raises(SystemExit) as left:
        cli.main()
    return int(left.value.code or 0)
