"""The types are right: mypy's word for it."""

import subprocess
import sys
from pathlib import Path


def test_what_is_written_and_what_a_user_writes(root: Path) -> None:
    """The package, the benchmarks, and what tests/typed.py says of the public functions."""
    words = [sys.executable, "-m", "mypy", "heedful", "benchmarks", "tests/typed.py"]
    found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_name_that_is_not_there_is_told_by_a_type_checker(root: Path, tmp_path: Path) -> None:
    rooms = {"": "Translater", ".core": "Masc", ".decode": "bean", ".look": "heatmaps"}
    script = tmp_path / "script.py"
    script.write_text("".join(f"from heedful{room} import {name}\n" for room, name in rooms.items()))
    words = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(script)]
    found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    for name in rooms.values():
        assert f'has no attribute "{name}"' in found.stdout
