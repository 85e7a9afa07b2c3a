"""Nothing that a merge left undecided is kept: a browser passes over it in a style sheet without a word."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("heedful", "tests", "docs", "recipes", "benchmarks")
KINDS = (".css", ".html", ".js", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml")
MARKS = ("<" * 7 + " ", "|" * 7 + " ", ">" * 7 + " ")


def undecided(text: str) -> list[int]:
    """The numbers of the lines at which a merge stopped."""
    return [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(MARKS)]


def test_no_merge_is_left_undecided() -> None:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    files = [path for path in [*inside, *ROOT.iterdir()] if path.suffix in KINDS and path.is_file()]
    assert any(path.suffix == ".css" for path in files)
    found = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in undecided(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("mark", MARKS)
def test_what_a_merge_leaves_is_seen(mark: str) -> None:
    assert undecided(f"a\n{mark}main\nb\n") == [2]
