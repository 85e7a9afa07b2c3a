"""Answers put in order in a browser: by keys, by dragging, by buttons."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from heedful.data.text.judgements import judgements_in
from heedful.serve.ranking import make_ranking_app
from heedful.tasks.shared.ranking import Ranking
from serving import running

PROMPTS = ["first <b>", "second", "third"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


@pytest.fixture
def asked(page: Page, out: Path) -> Iterator[Page]:
    ranking = Ranking(out, PROMPTS, lambda prompt: (f"{prompt} a", f"{prompt} b", f"{prompt} c"))
    with running(make_ranking_app(ranking, "ada")) as address:
        page.goto(address)
        expect(page.locator("#prompt")).to_have_text("first <b>")
        yield page


def orders(out: Path) -> list[tuple[tuple[int, ...], ...]]:
    return [one.order for one in judgements_in(out)]


def test_by_keys(asked: Page, out: Path) -> None:
    for key in ("3", "1", "=", "2", "Enter"):
        asked.keyboard.press(key)
    expect(asked.locator("#prompt")).to_have_text("second")
    assert orders(out) == [((2,), (0, 1))]
    asked.keyboard.press("s")
    expect(asked.locator("#prompt")).to_have_text("third")
    asked.keyboard.press("u")
    expect(asked.locator("#prompt")).to_have_text("second")
    assert orders(out) == [((2,), (0, 1))]
    for key in ("2", "3", "Backspace", "1", "Enter"):
        asked.keyboard.press(key)
    expect(asked.locator("#prompt")).to_have_text("third")
    assert orders(out)[1] == ((1,), (0,), (2,))
    asked.keyboard.press("Enter")
    expect(asked.locator("#end")).to_contain_text("All is judged")


def test_by_dragging_and_by_buttons(asked: Page, out: Path) -> None:
    third, first = (asked.locator(f".candidate[data-number='{number}']") for number in (2, 0))
    box = first.bounding_box()
    assert box is not None
    third.drag_to(first, target_position={"x": 100, "y": 3})
    expect(asked.locator(".candidate .number").first).to_have_text("3")
    asked.get_by_label("Answer 2: as good as the one above").click()
    asked.locator("#judge").click()
    expect(asked.locator("#prompt")).to_have_text("second")
    assert orders(out) == [((2,), (0, 1))]
    asked.get_by_label("Answer 3: better").click()
    asked.locator("#judge").click()
    expect(asked.locator("#prompt")).to_have_text("third")
    assert orders(out)[1] == ((0,), (2,), (1,))


def test_another_person_is_asked_from_the_start(asked: Page, out: Path) -> None:
    asked.keyboard.press("Enter")
    expect(asked.locator("#prompt")).to_have_text("second")
    asked.locator("#who").fill("bo")
    asked.locator("#who").press("Tab")
    expect(asked.locator("#prompt")).to_have_text("first <b>")
    asked.locator("#judge").click()
    expect(asked.locator("#prompt")).to_have_text("second")
    assert [one.who for one in judgements_in(out)] == ["ada", "bo"]
