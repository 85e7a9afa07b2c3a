"""The types are right: mypy's word for it."""

import subprocess
import sys
from pathlib import Path


def test_what_is_written_and_what_a_user_writes(root: Path) -> None:
    """The package, the benchmarks, and what tests/typed.py says of the public functions."""
    words = [sys.executable, "-m", "mypy", "heedful", "benchmarks", "tests/typed.py"]
    found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
