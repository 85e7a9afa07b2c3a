"""The choice of a language on the pages of a model that has several."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from heedful.serve.app import make_app
from serving import hosted, opened, running, translator

TOKENS = {"de": 40, "fr": 91, "en": 142}
LANGUAGES = {"tokens": TOKENS, "target": "before", "directions": ["en>de", "en>fr", "fr>en"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ "several" has German unless asked, "any" nothing, and "plain" is a model of one direction."""
    folder = tmp_path_factory.mktemp("runs")
    translator(folder / "several", "en", "de", seed=2, languages=LANGUAGES, before=[40])
    translator(folder / "any", "en", "", seed=2, languages={"tokens": TOKENS, "target": "before"}, before=[])
    translator(folder / "plain", "en", "fr")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    with running(make_app(hosted(*(folder / name for name in ("several", "any", "plain"))))) as address:
        yield address


def said(folder: Path, text: str, *way: str, name: str = "several") -> str:
    return opened(folder / name).directed(*way).translate(text)


def test_what_is_translated_to_is_chosen_and_kept(page: Page, served: str, folder: Path) -> None:
    page.goto(f"{served}/translate#text=ko+la")
    source, target = (page.get_by_role("combobox", name=name, exact=True) for name in ("From", "To"))
    shown = page.locator("#target")
    expect(shown).to_have_text(said(folder, "ko la", "en", "de"))
    expect(target.locator("option")).to_have_text(["German", "French"])
    page.get_by_label("Model").press("Tab")
    expect(source).to_be_focused()
    source.press("Tab")
    expect(target).to_be_focused()
    target.press("ArrowDown")
    expect(shown).to_have_text(said(folder, "ko la", "en", "fr"))
    expect(page.locator("#to")).to_have_text("French")
    expect(shown).to_have_attribute("lang", "fr")
    page.reload()  # the address keeps it
    expect(shown).to_have_text(said(folder, "ko la", "en", "fr"))
    expect(target).to_have_value("fr")
    source.select_option("fr")
    expect(target.locator("option")).to_have_text(["English"])
    expect(shown).to_have_text(said(folder, "ko la", "fr", "en"))
    expect(page.locator("#from")).to_have_text("French")


def test_all_that_is_asked_of_a_translation_is_of_its_language(page: Page, served: str, folder: Path) -> None:
    asked: list[dict[str, Any]] = []
    page.on("request", lambda request: asked.append(json.loads(request.post_data or "{}")))
    page.goto(f"{served}/translate#text=ko+la&to=fr&best=3")
    page.locator("#target .said").first.click()
    expect(page.locator(".others button").first).to_be_visible()
    expect(page.locator("#more ol li").first).to_contain_text(said(folder, "ko la", "en", "fr"))
    page.keyboard.press("Escape")
    page.locator("#source").fill("ko la\nba de")
    expect(page.locator("#target")).to_have_text(
        f"{said(folder, 'ko la', 'en', 'fr')}\n{said(folder, 'ba de', 'en', 'fr')}", use_inner_text=True
    )
    questions = [body for body in asked if "model" in body]
    assert len(questions) >= 4
    assert {(body["from_language"], body["to"]) for body in questions} == {("en", "fr")}


def test_looking_inside_is_of_the_language(page: Page, served: str, folder: Path) -> None:
    asked: list[dict[str, Any]] = []
    page.on("request", lambda request: asked.append(json.loads(request.post_data or "{}")))
    page.goto(f"{served}/translate#text=ko+la&to=fr")
    page.get_by_role("link", name="Look inside this translation").click()
    expect(page.locator("#heading")).to_contain_text(said(folder, "ko la", "en", "fr"))
    expect(page.get_by_role("combobox", name="To", exact=True)).to_have_value("fr")
    page.locator("input[value=walk]").check(force=True)
    expect(page.locator(".queries-of-walk")).to_be_visible()
    page.locator("input[value=steps]").check(force=True)
    page.get_by_label("Beam as a tree").select_option("3")
    expect(page.locator("#picture")).to_contain_text("A beam of 3")
    questions = [body for body in asked if "model" in body]
    assert sum("beam" in body.get("options", {}) for body in questions) == 1
    assert {(body["from_language"], body["to"]) for body in questions} == {("en", "fr")}
    page.get_by_role("combobox", name="To", exact=True).select_option("de")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator("#heading")).to_contain_text(said(folder, "ko la", "en", "de"))


def test_a_model_of_one_direction_has_no_choice(page: Page, served: str, folder: Path) -> None:
    page.goto(f"{served}/translate#model=several&text=ko&to=fr")
    expect(page.get_by_role("combobox", name="To", exact=True)).to_be_visible()
    page.get_by_label("Model").select_option("plain")
    expect(page.locator("#target")).to_have_text(said(folder, "ko", name="plain"))
    expect(page.get_by_role("combobox", name="To", exact=True)).to_be_hidden()
    expect(page.get_by_role("combobox", name="From", exact=True)).to_be_hidden()
    assert "to=" not in page.url


def test_a_model_without_a_default_is_asked_when_one_is_chosen(page: Page, served: str, folder: Path) -> None:
    page.goto(f"{served}/translate#model=any&text=ko")
    target = page.get_by_role("combobox", name="To", exact=True)
    expect(target.locator("option")).to_have_text(["Choose one", "German", "French"])
    expect(page.locator("#trouble")).to_be_hidden()
    target.select_option("fr")
    expect(page.locator("#target")).to_have_text(said(folder, "ko", "en", "fr", name="any"))


def test_cards_tell_the_directions(page: Page, served: str) -> None:
    told = {one["name"]: one["targets"] for one in httpx.get(f"{served}/api/models").json()["models"]}
    assert told["several"] == {"en": ["de", "fr"], "fr": ["en"]}
    assert told["plain"] is None
    page.goto(served)
    card = page.locator(".card").filter(has=page.get_by_role("heading", name="several", exact=True))
    expect(card).to_contain_text("translates English to German, English to French, French to English.")


@pytest.mark.parametrize("view", ["translate", "look"])
def test_the_choice_is_for_everyone(loose: Page, accessible: Callable[[Page], None], served: str, view: str) -> None:
    loose.set_viewport_size({"width": 320, "height": 800})
    loose.goto(f"{served}/{view}")
    expect(loose.get_by_role("combobox", name="To", exact=True)).to_be_visible()
    assert loose.evaluate("document.documentElement.scrollWidth") <= 320
    accessible(loose)
