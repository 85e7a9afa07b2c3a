"""The types are right: mypy's word for it."""

import subprocess
import sys
from pathlib import Path

import pytest

NOT_THERE = {"": "Translater", ".core": "Masc", ".decode": "bean", ".look": "heatmaps"}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """What a type checker says of a script with names that are not there, and of all else: the package, the benchmarks,
    and what tests/typed.py says of the public functions. All in one run, which is most of a minute."""
    script = tmp_path_factory.mktemp("names") / "script.py"
    script.write_text("".join(f"from heedful{room} import {name}\n" for room, name in NOT_THERE.items()))
    words = [sys.executable, "-m", "mypy", "--no-error-summary", "heedful", "benchmarks", "tests/typed.py", str(script)]
    root = Path(__file__).parents[2]
    found = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stdout + found.stderr  # 2: it could not look
    lines = found.stdout.splitlines()
    own = [line for line in lines if line.partition(":")[0].endswith(script.name)]
    return own, [line for line in [*lines, *found.stderr.splitlines()] if line not in own]


def test_what_is_written_and_what_a_user_writes(errors: tuple[list[str], list[str]]) -> None:
    assert not errors[1], "\n".join(errors[1])


def test_a_name_that_is_not_there_is_told_by_a_type_checker(errors: tuple[list[str], list[str]]) -> None:
    told = "\n".join(errors[0])
    for name in NOT_THERE.values():
        assert f'has no attribute "{name}"' in told
