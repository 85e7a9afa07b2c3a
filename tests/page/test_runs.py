"""Runs and pictures, in a browser."""

import os
from datetime import datetime
from pathlib import Path

import httpx
import numpy
import pytest
from PIL import Image
from playwright.sync_api import Page, expect


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    pixels = numpy.random.default_rng(0).integers(0, 255, (48, 40, 3), dtype=numpy.uint8)
    Image.fromarray(pixels).save(tmp_path / "<b>noise.png")
    return tmp_path / "<b>noise.png"


def test_runs_are_listed_sorted_and_chosen(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(9)
    page.locator("#list .sort", has_text="parameters").click()
    page.locator("#list .sort", has_text="parameters").click()
    counts = [int(text.replace(",", "")) for text in page.locator("#list tbody td:nth-child(4)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    for name in ("fill", "label"):
        page.locator("#list tbody tr", has=page.get_by_text(name, exact=True)).locator("input").check()
    expect(page.locator(".plot polyline, .plot circle").first).to_be_attached()
    expect(page.locator("#curves .legend bdi")).to_have_text(["fill", "label"])
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#curves .legend bdi")).to_have_count(2)


def test_the_curve_its_table_and_its_file_say_the_same(page: Page, served: str, runs_folder: Path) -> None:
    page.goto(f"{served}/runs#runs=fill&measure=valid_loss")
    page.locator("#pictures summary").click()
    cells = page.locator("#pictures tbody tr")
    expect(cells.first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert len(lines) == cells.count() + 1
    with page.expect_download() as drawn:
        page.get_by_role("button", name="Download SVG").click()
    assert Path(drawn.value.path()).read_text().startswith("<svg")


def test_two_are_asked_the_same(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    page.locator("#first").select_option("en-fr")
    expect(page.locator("#second option")).to_have_count(1)
    page.locator("#question").fill("ko la")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#answers .answer")).to_have_count(2)
    expect(page.locator("#answers mark").first).to_be_visible()


def test_a_picture_and_what_was_found_in_it(page: Page, served: str, noise: Path) -> None:
    page.goto(f"{served}/pictures#model=detect&threshold=0")
    page.locator("#files").set_input_files(noise)
    card = page.locator(".card")
    expect(card.locator("h2")).to_have_text("<b>noise.png")
    expect(card.locator("svg.over rect").first).to_be_attached()
    page.locator("#threshold").fill("1")
    expect(card.locator("svg.over rect")).to_have_count(0)
    expect(card.locator("p").first).to_have_text("Nothing so likely.")
    with page.expect_download() as saved:
        card.get_by_role("button", name="PNG").click()
    with Image.open(saved.value.path()) as made:
        assert made.size == (40 * 12, 48 * 12)  # enlarged, so that names can be read


def test_a_picture_and_texts(page: Page, served: str, noise: Path) -> None:
    page.goto(f"{served}/pictures#model=match&texts=a+red+circle%0Aa+blue+square")
    page.locator("#files").set_input_files([noise, noise])
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator(".card").first.locator(".bars tr")).to_have_count(2)
    page.locator(".card").first.locator("summary").click()
    expect(page.locator(".card").first.locator("table.twin tbody tr")).to_have_count(2)


def test_a_filter_is_kept_in_the_address(page: Page, served: str) -> None:
    page.goto(f"{served}/runs")
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(9)
    page.get_by_label("Filter").fill("LAB class")
    expect(rows).to_have_count(2)
    expect(page.locator("#list caption")).to_contain_text("2 of 9 runs")
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_label("Filter").fill("nothing like it")
    expect(rows).to_have_count(0)


def test_runs_have_the_date_of_their_last_change(page: Page, served: str, runs_folder: Path) -> None:
    os.utime(runs_folder / "fill" / "metrics.jsonl", (4_000_000_000, 4_000_000_000))
    page.goto(f"{served}/runs")
    shown = datetime.fromtimestamp(4_000_000_000).strftime("%Y-%m-%d %H:%M")
    row = page.locator("#list tbody tr", has=page.get_by_text("fill", exact=True).first)
    expect(row.get_by_text(shown)).to_be_visible()
    page.locator("#list .sort", has_text="last changed").click()
    page.locator("#list .sort", has_text="last changed").click()
    expect(page.locator("#list tbody tr").first).to_contain_text("fill")
    os.utime(runs_folder / "fill" / "metrics.jsonl")


def test_what_differs_between_two_recipes(page: Page, served: str) -> None:
    page.goto(f"{served}/runs#runs=label,labels")
    rows = page.locator("#differences tbody tr")
    expect(rows.first).to_be_visible()
    found = (
        httpx.get(f"{served}/api/runs/label").json()["settings"],
        httpx.get(f"{served}/api/runs/labels").json()["settings"],
    )
    differing = [key for key in {**found[0], **found[1]} if found[0].get(key) != found[1].get(key)]
    assert rows.locator("th").all_text_contents() == differing
    assert "train.seed" not in differing
    page.goto(f"{served}/runs#runs=label")
    expect(page.locator("#curves")).to_be_visible()
    expect(page.locator("#differences")).to_be_empty()


def test_losses_of_different_tasks_are_apart_and_axes_have_names(page: Page, served: str) -> None:
    page.goto(f"{served}/runs#runs=label,fill,labels&measure=valid_loss")
    sections = page.locator("#pictures section")
    expect(sections.locator("h2")).to_have_text(["classify", "fill"])
    expect(sections.nth(0).locator(".legend bdi")).to_have_text(["label", "labels"])
    expect(sections.nth(1).locator(".legend bdi")).to_have_text(["fill"])
    expect(sections.nth(0).locator(".axis")).to_have_text(["valid loss per example", "steps"])
    expect(sections.nth(1).locator(".axis")).to_have_text(["valid loss per token", "steps"])
    page.locator("#over").select_option("minutes")
    page.locator("#log").check()
    expect(sections.nth(1).locator(".axis")).to_have_text(["valid loss per token, logarithmic", "minutes"])
    colours = page.locator("#pictures .curve").evaluate_all("all => all.map((each) => each.style.stroke)")
    assert len({*colours}) == 3  # a run has its own, in whichever picture
    with page.expect_download() as saved:
        sections.nth(1).get_by_role("button", name="Download CSV").click()
    assert saved.value.suggested_filename == "fill-valid_loss.csv"
