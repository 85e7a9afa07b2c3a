"""Curves of runs in a browser, live, over minutes, by the keyboard and as files; and words of answers that differ."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, Route, expect

from heedful.store.lock import run_lock

NAMES = ["a,b", "100%", "<img src=x onerror=alert(1)>", "q?x=1#y&z", "\u202eevil"]


@pytest.fixture
def copied(runs_folder: Path) -> Iterator[list[Path]]:
    """Runs that a test adds to those that are listed, gone after it."""
    made: list[Path] = []
    yield made
    for run in made:
        shutil.rmtree(run, ignore_errors=True)


def begun(folder: Path, name: str, copied: list[Path]) -> Path:
    run = folder / name
    copied.append(run)
    run.mkdir()
    (run / "recipe.yaml").write_text("task: fill\n")
    return run


def measured(run: Path, **row: float) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def test_a_run_is_followed_until_it_has_ended(page: Page, served: str, runs_folder: Path, copied: list[Path]) -> None:
    run = begun(runs_folder, "now", copied)
    measured(run, step=1, valid_loss=4.0)
    cells = page.locator("#pictures tbody tr")
    with run_lock(run):
        page.goto(f"{served}/runs#runs=now")
        expect(page.locator("#list td.live")).to_have_text("training")
        expect(page.locator(".plot circle")).to_have_count(1)
        page.locator("#pictures summary").click()
        expect(cells).to_have_count(1)
        measured(run, step=2, valid_loss=3.0)
        expect(cells).to_have_count(2)
        expect(page.locator("#told pre").first).to_have_text("There is none yet.")
    measured(run, step=3, valid_loss=2.0)  # what is written last is seen as well
    (run / "README.md").write_text("# It has ended\n")
    (run / "scores.json").write_text(json.dumps({"steps": 3, "minutes": 1.5, "scores": {}}))
    expect(cells).to_have_count(3)
    expect(page.locator("#told pre").first).to_have_text("# It has ended")
    expect(page.locator("#list tr", has_text="now").locator("td.state")).to_have_text("finished")


def test_a_curve_is_of_what_was_measured(page: Page, served: str, runs_folder: Path, copied: list[Path]) -> None:
    run = begun(runs_folder, "mean", copied)
    measured(run, step=1, epoch=0, seconds=2.0, train_loss=5.0)
    measured(run, step=1, valid_loss=4.0, averaged=3)  # of the mean of three checkpoints
    page.goto(f"{served}/runs#runs=mean")
    expect(page.locator("#measure option")).to_have_text(["train loss", "valid loss"])


def test_nothing_is_asked_again_where_no_run_trains(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    expect(page.locator("#list tbody tr").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert asked == []


@pytest.mark.parametrize("name", NAMES)
def test_a_link_to_a_run_of_any_name(page: Page, served: str, runs_folder: Path, copied: list[Path], name: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    run = begun(runs_folder, name, copied)
    for step in (1, 2):
        measured(run, step=step, valid_loss=5.0 - step)
    page.goto(f"{served}/runs")
    page.locator("#list tbody tr", has=page.get_by_text(name, exact=True)).locator("input").check()
    expect(page.locator("#curves .legend bdi")).to_have_text([name])
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#curves .legend bdi")).to_have_text([name])
    assert page.locator("#curves img").count() == 0


def test_a_run_that_cannot_be_read_hides_no_other(
    page: Page, served: str, runs_folder: Path, copied: list[Path]
) -> None:
    run = begun(runs_folder, "broken", copied)
    (run / "metrics.jsonl").write_text("{bad\n")
    page.goto(f"{served}/runs#runs=broken,fill")
    expect(page.locator("#told .wrong")).to_contain_text("not valid JSON")
    expect(page.locator("#curves .legend")).to_contain_text("broken (not measured)")
    expect(page.locator(".plot polyline")).to_have_count(2)


def test_over_minutes_every_measurement_has_its_own(
    page: Page, served: str, runs_folder: Path, copied: list[Path]
) -> None:
    run = begun(runs_folder, "slow", copied)
    for step in (1, 2, 3, 4):
        measured(run, step=step, valid_loss=1.0 / step)
    (run / "scores.json").write_text(json.dumps({"steps": 4, "minutes": 8, "scores": {}}))
    page.goto(f"{served}/runs#runs=slow&over=minutes")
    page.locator("#pictures summary").click()
    expect(page.locator("#pictures tbody td:nth-child(2)")).to_have_text(["2", "4", "6", "8"])


def test_the_keyboard_reads_a_curve(page: Page, served: str, runs_folder: Path, copied: list[Path]) -> None:
    run = begun(runs_folder, "read", copied)
    for step in range(1, 30):
        measured(run, step=step, valid_loss=100.0 / step)
    page.goto(f"{served}/runs#runs=read&log=1")
    curve = page.get_by_role("slider", name="valid loss per token of read by steps")
    curve.focus()
    for key, told in (
        ("ArrowRight", "step 1: read 100"),
        ("End", "step 29: read 3.448"),
        ("ArrowLeft", "step 28: read 3.571"),
    ):
        curve.press(key)
        expect(page.locator("#pictures .readout")).to_have_text(told)
        expect(curve).to_have_attribute("aria-valuetext", told)
    curve.press("Escape")
    expect(page.locator("#pictures .readout")).to_be_empty()


def test_the_saved_picture_stands_alone(page: Page, served: str) -> None:
    page.goto(f"{served}/runs#runs=labels,label")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download SVG").click()
    root = ElementTree.fromstring(Path(saved.value.path()).read_text())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"labels", "label", "valid loss per example", "steps"} <= set(texts)
    assert "var(" not in ElementTree.tostring(root, encoding="unicode")
    assert float(root.attrib["width"]) > 0


def test_unknown_values_are_last_either_way(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    expect(page.locator("#list tbody tr").first).to_be_visible()
    column = [*page.locator("#list thead th").all_inner_texts()].index("minutes") + 1
    for _ in range(2):
        page.locator("#list .sort", has_text="minutes").click()
        shown = page.locator(f"#list tbody tr > :nth-child({column})").all_inner_texts()
        known = [text for text in shown if text]
        assert 0 < len(known) < len(shown)
        assert shown[: len(known)] == known


@pytest.mark.parametrize(
    ("one", "other", "marked"),
    [
        ("the cat sat", "the dog sat", [["cat"], ["dog"]]),
        ("a b c", "a b c", [[], []]),
        ("", "new", [[], ["new"]]),
        ("A b. C", "A b, C", [["."], [","]]),
        ("猫が好きです", "犬が好きです", [["猫"], ["犬"]]),
        ("x y", "y x", [["x", " "], [" ", "x"]]),
    ],
)
def test_words_that_differ(page: Page, served: str, one: str, other: str, marked: list[list[str]]) -> None:
    page.goto(f"{served}/runs")
    sides = page.evaluate("async (texts) => (await import('/page/diff.js')).differing(...texts)", [one, other])
    assert ["".join(part["text"] for part in side) for side in sides] == [one, other]
    assert [[part["text"] for part in side if part["differs"]] for side in sides] == marked


def test_long_texts_are_compared_at_once(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    texts = ["same " + " ".join(f"{side}{i}" for i in range(3000)) + " end" for side in "ab"]
    sides = page.evaluate("async (texts) => (await import('/page/diff.js')).differing(...texts)", texts)
    assert ["".join(part["text"] for part in side) for side in sides] == texts
    assert all(not side[0]["differs"] and not side[-1]["differs"] for side in sides)


def test_only_models_that_read_a_text_are_asked_the_same(page: Page, served: str) -> None:
    def pictures_too(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        of = {model["name"]: model for model in told["models"]}
        of["detect"]["verbs"] = {"translate": {"reads": "pictures", "options": []}}
        route.fulfill(response=answer, json=told)

    page.route("**/api/models", pictures_too)
    page.goto(f"{served}/runs")
    page.locator("#first").select_option("en-fr")
    expect(page.locator("#second option")).to_have_text(["rnn"])


def test_no_pair_no_question(page: Page, served: str) -> None:
    page.route("**/api/models", lambda route: route.fulfill(json={"models": []}))
    page.goto(f"{served}/runs")
    expect(page.locator("#list tbody tr").first).to_be_visible()
    expect(page.get_by_role("heading", name="Ask two the same")).to_be_hidden()


def test_no_serious_fault_where_curves_are_shown(
    loose: Page, accessible: Callable[[Page], None], served: str, runs_folder: Path, copied: list[Path]
) -> None:
    run, page = begun(runs_folder, "broken", copied), loose
    (run / "metrics.jsonl").write_text("{bad\n")
    with run_lock(run):
        page.goto(f"{served}/runs#runs=broken,fill,label")
        expect(page.locator("#list td.live")).to_have_text("training")
        expect(page.locator("#told .wrong")).to_be_visible()
        page.get_by_role("slider").first.press("End")
        for summary in page.locator("#curves summary").all():
            summary.click()
        accessible(page)


@pytest.mark.parametrize("width", [320, 3840])
def test_curves_fit_any_width_and_follow_it(
    page: Page, served: str, runs_folder: Path, copied: list[Path], width: int
) -> None:
    name = "long" * 40
    run = begun(runs_folder, name, copied)
    for step in (1, 2):
        measured(run, step=step, valid_loss=1e9 / step)
    page.goto(f"{served}/runs#runs={name},fill")
    expect(page.locator(".plot")).to_be_visible()
    page.set_viewport_size({"width": width, "height": 800})
    drawn = "() => document.querySelector('.plot').viewBox.baseVal.width"
    page.wait_for_function(f"() => ({drawn})() === document.querySelector('#pictures').clientWidth")
    for summary in page.locator("#curves summary").all():
        summary.click()
    page.get_by_role("slider").press("End")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
