"""Looking inside, in a browser: what is drawn is what the model did, and every view can be reached by keys."""

import base64
import csv
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy
import pytest
import torch
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import heedful
from heedful.tasks.translate.inside.look import look_at_translation
from serving import opened

TEXT = "ko la ba de fi"
TEXTS = [
    "<script>alert(1)</script> & <b>",
    "שלום עולם",
    "猫が好きです。",
    "a\u202eb\u2066c",
    "{{7*7}} ${x} %s",
    "ko " * 60,
]


def looked(page: Page, served: str, model: str, text: str, more: str = "") -> None:
    page.goto(f"{served}/look?{_query(model=model, text=text)}{more}")
    expect(page.locator("#inside")).to_be_visible()
    expect(page.locator("#picture")).not_to_be_empty()


def _query(**words: str) -> str:
    return urlencode(words)


def test_a_notebook_shows_the_whole_page_in_a_frame(page: Page, runs_folder: Path) -> None:
    """There it has no address that could keep what is chosen."""
    found = heedful.load(runs_folder / "en-fr").look(TEXT, kind="html")
    page.set_content(f"<html><body>{found._repr_html_()}</body></html>")
    frame = page.frame_locator("iframe")
    expect(frame.locator("svg").first).to_be_visible()
    frame.get_by_text("Matrix").click()
    expect(frame.get_by_role("application")).to_be_visible()


def test_two_hundred_weights_of_each_map_are_those_of_the_model(page: Page, served: str, runs_folder: Path) -> None:
    looked(page, served, "en-fr", TEXT)
    weights = look_at_translation(opened(runs_folder / "en-fr"), TEXT).weights
    rng = random.Random(0)
    for layer, own in weights.items():
        cells = [[rng.randrange(size) for size in own.shape] for _ in range(200)]
        # `decoded` and `view` are what all views are drawn from.
        found = page.evaluate(
            """([name, cells]) => {
                const layer = view.layers.find((each) => each.name === name), map = decoded(layer);
                return cells.map(([h, t, s]) => map[(h * layer.T + t) * layer.S + s]);
            }""",
            [layer, cells],
        )
        wanted = [float(own[h, t, s]) for h, t, s in cells]
        assert found == pytest.approx(wanted, abs=5e-4)


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_the_table_beside_a_matrix_says_the_same(page: Page, served: str, runs_folder: Path, kind: str) -> None:
    looked(page, served, "en-fr", TEXT, f"#view=matrix&kind={kind}&layer=0&head=1")
    page.locator("#twin summary").click()
    cells = page.locator("#table tbody td").all_inner_texts()
    names = {"cross": "cross_attention", "encoder": "encoder.blocks.0.self", "decoder": "decoder.blocks.0.self"}
    weights = look_at_translation(opened(runs_folder / "en-fr"), TEXT).weights
    own = next(each for name, each in weights.items() if names[kind] in name)[1]
    wanted = own.flatten().tolist()
    allowed = [(cell, value) for cell, value in zip(cells, wanted, strict=True) if cell]
    assert len(allowed) > 20
    assert [float(cell) for cell, _ in allowed] == pytest.approx([value for _, value in allowed], abs=1.5e-3)


def test_touching_a_token_previews_and_choosing_it_pins(page: Page, served: str) -> None:
    looked(page, served, "en-fr", TEXT)
    token = page.locator(".queries .token").first
    token.hover()
    expect(page.locator("#numbers h3")).to_contain_text("looks at")
    page.mouse.move(0, 0)
    expect(page.locator("#numbers h3")).to_have_count(0)
    token.click()
    assert "q=0" in page.url
    page.reload()
    expect(page.locator(".queries .token").first).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("q=0"))


@pytest.mark.parametrize("view", ["flow", "heads", "matrix", "steps", "walk"])
def test_every_view_by_keys_alone(page: Page, served: str, view: str) -> None:
    looked(page, served, "en-fr", TEXT)
    page.locator("#views input:checked").focus()
    for _ in range(["flow", "heads", "matrix", "steps", "walk"].index(view)):
        page.keyboard.press("ArrowRight")
    expect(page.locator(f'body[data-view="{view}"]')).to_have_count(1)
    if view == "walk":
        expect(page.locator(".walk-card")).to_have_count(7)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('[id]')?.id ?? ''"))
    assert {"twin", "downloads"} <= {name if name != "table" else "twin" for name in reached}
    assert reached & {"picture", "large"}


def test_a_step_shows_what_was_likely_and_another_can_be_forced(page: Page, served: str) -> None:
    looked(page, served, "en-fr", TEXT, "#view=steps&step=0")
    expect(page.locator("#numbers .bars tr")).to_have_count(10)
    before = page.locator(".step bdi").all_inner_texts()
    page.locator("#numbers .token").nth(3).click()
    expect(page.locator(".step.forced")).to_have_count(1)
    assert page.locator(".step bdi").all_inner_texts()[0] != before[0]
    page.get_by_role("button", name="Back to what the model said").click()
    expect(page.locator(".step bdi").first).to_have_text(before[0])
    page.locator("#options input").nth(1).fill("2")
    page.locator("#options input").nth(1).press("Tab")
    expect(page.locator("#numbers h3")).to_contain_text("before and after")
    cut = page.locator("#numbers .bars td:last-child").all_inner_texts()
    assert sum("cut" in each for each in cut) == 8


def test_a_beam_is_a_tree_and_any_beginning_can_be_forced(page: Page, served: str) -> None:
    looked(page, served, "en-fr", TEXT, "#view=steps&step=0")
    page.locator("#options select").select_option("4")
    nodes = page.locator(".tree .token")
    expect(page.locator(".tree .token.dead").first).to_be_attached()
    expect(page.locator(".tree .token.best").first).to_be_attached()
    assert "fell out" in (page.locator(".tree .token.dead").first.get_attribute("title") or "")
    assert nodes.count() > 10
    page.locator(".tree .token:enabled").nth(3).click()
    expect(page.locator(".step.forced").first).to_be_visible()


def test_a_walk_computes_the_weights_again(page: Page, served: str) -> None:
    looked(page, served, "writer", TEXT, "#view=walk&layer=0&head=1&q=3")
    card = page.locator(".walk-card").nth(5)
    expect(card).to_contain_text("differ by at most")
    said = re.search(r"at most (\S+) from", card.inner_text())
    assert said is not None
    assert float(said[1]) < 1e-6
    expect(page.locator(".walk-card").nth(4)).to_contain_text("not allowed")


def test_a_walk_shows_what_the_products_are_made_of(page: Page, served: str) -> None:
    looked(page, served, "writer", TEXT, "#view=walk&layer=0&head=1&q=3")
    expect(page.locator(".walk-card").nth(2).locator("canvas")).to_have_count(page.locator(".token").count())
    off = page.evaluate(
        """() => {
            const { q, k, products } = walked.found;
            return Math.max(...k.map((key, i) => Math.abs(sum(key.map((value, j) => value * q[j])) - products[i])));
        }"""
    )
    assert off < 1e-3


def test_a_cell_in_every_head(page: Page, served: str, runs_folder: Path) -> None:
    """What each head gives to the key that is looked at most; one that is chosen is shown."""
    looked(page, served, "en-fr", TEXT, "#view=matrix&kind=cross&layer=0&head=0&q=1&k=2")
    lines = page.locator("#numbers .bars").last.locator("tr")
    own = look_at_translation(opened(runs_folder / "en-fr"), TEXT).weights
    weights = next(each for name, each in own.items() if "cross_attention" in name)[:, 1, 2]
    expect(lines).to_have_count(len(weights))
    order = weights.argsort(descending=True).tolist()
    for line, head in zip(lines.all_inner_texts(), order, strict=True):
        assert line.startswith(f"0.{head} ")
        assert float(line.split()[-1]) == pytest.approx(float(weights[head]), abs=6e-3)
    lines.filter(has_text="0.1 ").locator("button").click()
    assert "head=1" in page.url
    expect(page.locator("#numbers .chosen .token").last).to_be_focused()


def test_the_whole_model_is_drawn_in_the_colours_of_the_page(page: Page, served: str) -> None:
    looked(page, served, "en-fr", TEXT)
    for scheme, path in (("light", "/api/models/en-fr/figure"), ("dark", "/api/models/en-fr/figure?dark=1")):
        page.emulate_media(color_scheme=scheme)
        page.reload()
        page.locator("#whole summary").click()
        drawn = page.locator("#whole img").evaluate("node => node.decode().then(() => node.currentSrc)")
        assert drawn == served + path


OPENED_AT_ONCE = """
new MutationObserver((_, watching) => {
  const place = document.getElementById("whole");
  if (place) place.open = true, watching.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


def test_the_whole_model_is_drawn_for_who_is_faster_than_the_page(page: Page, served: str) -> None:
    page.add_init_script(OPENED_AT_ONCE)
    looked(page, served, "en-fr", TEXT)
    expect(page.locator("#whole img")).to_have_count(1)


@pytest.mark.parametrize("model", ["en-fr", "rnn", "writer", "fill", "label"])
def test_every_family_can_be_looked_into(page: Page, served: str, model: str) -> None:
    looked(page, served, model, TEXT)
    for name in page.locator("#views label").all_inner_texts():
        if name == "Walk" and model == "rnn":
            continue  # it has no queries, keys and values
        page.locator("#views label", has_text=name).click()
        expect(page.locator("#picture")).not_to_be_empty()


def test_what_has_no_queries_says_so(browser: Browser, served: str) -> None:
    errors: list[str] = []
    context = browser.new_context()  # whose console may tell that the server refused
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    looked(page, served, "rnn", TEXT, "#view=walk")
    expect(page.locator("#picture")).to_contain_text("is no attention of queries, keys and values")
    context.close()
    assert errors == []


@pytest.mark.parametrize("text", TEXTS)
def test_whatever_a_text_holds_is_text(page: Page, served: str, text: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(f"{served}/look?{_query(model='en-fr', text=text)}")
    page.wait_for_load_state("networkidle")
    expect(page.locator("#inside")).to_be_visible()
    assert page.locator("#inside script, #heading b, #heading script").count() == 0
    page.locator("#views label", has_text="Matrix").click()
    expect(page.locator("#picture canvas").first).to_be_visible()


@pytest.mark.parametrize("view", ["flow", "heads", "matrix", "steps", "walk"])
def test_no_serious_fault(loose: Page, accessible: Callable[[Page], None], served: str, view: str) -> None:
    looked(loose, served, "en-fr", TEXT, f"#view={view}&q=1")
    loose.locator("#whole summary").click()
    loose.wait_for_load_state("networkidle")
    accessible(loose)
    loose.set_viewport_size({"width": 320, "height": 800})
    loose.wait_for_function("document.documentElement.scrollWidth <= 320")


def test_the_saved_page_is_whole_and_shows_the_same(page: Page, served: str, tmp_path: Path) -> None:
    looked(page, served, "en-fr", TEXT)
    tokens = page.locator(".flow .token").all_inner_texts()
    with page.expect_download() as saved:
        page.get_by_role("button", name="this page as one file").click()
    saved.value.save_as(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".flow .token").all_inner_texts() == tokens
    page.locator("#views label", has_text="Steps").click()
    expect(page.locator("#numbers .bars tr")).to_have_count(10)
    assert page.locator("#views label", has_text="Walk").count() == 0  # which asks a server
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    _, *rows = csv.reader(io.StringIO(Path(saved.value.path()).read_text()))
    assert all(float(row[4]) < 0 for row in rows), "a number stays one where it is negative"


def test_a_text_that_is_read_has_no_target_and_what_is_too_weak_to_be_drawn_is_told(page: Page, served: str) -> None:
    looked(page, served, "fill", "ba de gi")
    expect(page.locator(".flow h2")).to_have_text(["Text (keys)", "Text (queries)"])
    page.locator("#options input[type=range]").fill("0.5")
    expect(page.locator("#note")).to_contain_text("0 of")
    expect(page.locator("#note")).to_contain_text("lower it to see them")
    looked(page, served, "en-fr", TEXT, "#kind=decoder")
    expect(page.locator(".flow h2").first).to_have_text("Target (keys)")


def test_the_shares_of_a_step_fit_beside_their_bars(page: Page, served: str) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    looked(page, served, "en-fr", TEXT, "#view=steps")
    page.locator("#options input").nth(0).fill("0.9")
    page.locator("#options input").nth(0).press("Tab")
    expect(page.locator("#numbers .bars.wide")).to_be_visible()
    page.locator("#numbers .bars td:last-child").first.evaluate("cell => { cell.textContent = '89.5 % → 89.6 %'; }")
    page.locator("#numbers .bars tr").first.evaluate("row => { row.className = 'chosen'; }")
    cell = "#numbers .bars td:last-child"
    assert page.locator(cell).first.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_maps_over_a_picture(page: Page, served: str, tmp_path: Path) -> None:
    noise = numpy.random.default_rng(0).integers(0, 255, (48, 48, 3), dtype=numpy.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    page.goto(f"{served}/look?model=detect")
    page.locator("#file").set_input_files(tmp_path / "noise.png")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator(".maps .thumb").first).to_be_visible()
    with page.expect_download() as saved:
        page.locator("#image").get_by_role("button", name="CSV").click()
    rows = Path(saved.value.path()).read_text().splitlines()[1:]
    view = json.loads(_view(served, tmp_path / "noise.png"))
    own = torch.frombuffer(bytearray(base64.b64decode(view["maps"][0]["weights"])), dtype=torch.float16)
    assert [float(row.split('","')[3].strip('"')) for row in rows] == pytest.approx(own.tolist(), abs=1e-4)


def test_texts_to_look_for_in_a_picture_are_asked_for(page: Page, served: str, tmp_path: Path) -> None:
    Image.new("RGB", (48, 48)).save(tmp_path / "black.png")
    page.goto(f"{served}/look?model=match")
    page.locator("#file").set_input_files(tmp_path / "black.png")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator("#trouble")).to_have_text("Type the texts to look for, one a line.")


def _view(served: str, file: Path) -> bytes:
    sent = {"file": ("noise.png", io.BytesIO(file.read_bytes()), "image/png")}
    return httpx.post(f"{served}/api/view", files=sent, data={"json": '{"model": "detect"}'}).content
