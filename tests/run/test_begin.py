"""Ranks that do not agree are named before the first step."""

from pathlib import Path
from typing import Any

import pytest

from heedful.errors import RankError
from heedful.run import begin
from heedful.training.ranks import Ranks
from together import on_ranks


def told(folder: Path, check: Any) -> list[str]:
    """What each of three ranks is told."""

    def work(ranks: Ranks) -> str:
        try:
            check(ranks)
        except RankError as error:
            return str(error)
        return ""

    (folder / "ranks").mkdir()
    return on_ranks(folder / "ranks", 3, work)


def test_a_rank_that_sees_another_folder(tmp_path: Path) -> None:
    for name in ("run", "other"):
        (tmp_path / name).mkdir()
    places = [tmp_path / "run", tmp_path / "run", tmp_path / "other"]
    said = told(tmp_path, lambda ranks: begin.need_one_folder(places[ranks.rank], ranks))
    assert all("rank 2, on " in each and "does not see what rank 0 writes" in each for each in said)
    assert [*(tmp_path / "run").iterdir()] == []


def test_a_rank_that_has_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(ranks: Ranks) -> None:
        monkeypatch.setattr(begin, "versions", lambda: {"torch": f"2.{13 - ranks.rank % 2}", "python": "3.11"})
        begin.need_one_folder(tmp_path, ranks)

    for each in told(tmp_path, check):
        assert "rank 1, on " in each
        assert "has torch 2.12, and rank 0, on " in each


def test_a_rank_that_has_other_data_or_none(tmp_path: Path) -> None:
    first = {"training data": "a", "a tokenizer": "b"}
    others = ({"training data": "c"}, {"error": "x.tsv: no such file"})
    for number, (other, what) in enumerate(
        zip(others, ("training data other than", "x.tsv: no such file"), strict=True)
    ):
        (tmp_path / str(number)).mkdir()
        facts = [first, first, first | other if number == 0 else other]
        said = told(tmp_path / str(number), lambda ranks, facts=facts: begin.need_same(facts[ranks.rank], ranks))
        assert all("rank 2, on " in each and what in each for each in said)


def test_ranks_that_agree(tmp_path: Path) -> None:
    def check(ranks: Ranks) -> None:
        begin.need_one_folder(tmp_path, ranks)
        begin.need_same({"training data": "a"}, ranks)

    assert told(tmp_path, check) == [""] * 3
