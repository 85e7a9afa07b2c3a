"""Pictures in a browser: what is drawn over them, their tables and files, and how they may be given."""

import base64
import csv
import io
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy
import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from heedful.serve.app import make_app
from serving import hosted, running

MODELS = ("classify-images", "describe", "detect", "match", "paint", "questions", "segment")
ASKED = {"questions": "&question=what+is+it%3F"}
HOSTILE = ["<img src=x onerror=alert(1)>.png", "=1+1.png", "\u202egnp.exe.png", "猫.png", "a'b\"c.png"]
DROP = """([data, kind, name]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)), carried = new DataTransfer();
  carried.items.add(new File([bytes], name, { type: "image/png" }));
  const options = { bubbles: true, cancelable: true };
  const event = kind === "paste" ? new ClipboardEvent(kind, { ...options, clipboardData: carried })
    : new DragEvent(kind, { ...options, dataTransfer: carried });
  return !document.body.dispatchEvent(event);
}"""


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Path]) -> Iterator[str]:
    """The address of a server of models that read pictures."""
    folder = tmp_path_factory.mktemp("seeing") / "runs"
    for name in MODELS:
        shutil.copytree(run_of(name), folder / name)
    with running(make_app(hosted(*sorted(folder.iterdir())), runs=folder)) as address:
        yield address


def noise(seed: int = 0, *, size: tuple[int, int] = (48, 40)) -> bytes:
    pixels = numpy.random.default_rng(seed).integers(0, 255, (*size, 3), dtype=numpy.uint8)
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, "PNG")
    return made.getvalue()


def file(name: str = "noise.png", content: bytes | None = None, kind: str = "image/png") -> dict:
    return {"name": name, "mimeType": kind, "buffer": noise() if content is None else content}


def given(page: Page, address: str, *files: dict) -> None:
    page.goto(address)
    page.locator("#files").set_input_files([*files])


def saved(page: Page, name: str) -> Path:
    with page.expect_download() as told:
        page.locator(".card").first.get_by_role("button", name=name, exact=True).click()
    return Path(told.value.path())


def image_of(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def rows_of(path: Path) -> list[list[str]]:
    return [*csv.reader(io.StringIO(path.read_text()))]


def answering(page: Page, verb: str, *answers: dict) -> None:
    page.route(f"**/api/{verb}", lambda route: route.fulfill(json={"model": "m", "answers": [*answers]}))


@pytest.mark.parametrize("model", MODELS)
def test_every_kind_has_a_table_a_csv_and_a_png(page: Page, seeing: str, model: str) -> None:
    given(
        page,
        f"{seeing}/pictures#model={model}{ASKED.get(model, '')}&texts=a+cat%0Aa+dog",
        file("one.png"),
        file("two.png"),
    )
    cards = page.locator(".card")
    expect(cards.locator("h2")).to_have_text(["one.png", "two.png"])
    cards.first.locator("summary").click()
    table = cards.first.locator("table.twin")
    expect(table).to_be_visible()
    shown = [row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()]
    assert [[cell.strip() for cell in row] for row in shown] == rows_of(saved(page, "CSV"))
    assert image_of(saved(page, "PNG")).format == "PNG"
    expect(page.locator("#busy")).to_be_empty()


def test_a_mask_has_the_colours_of_its_legend(page: Page, seeing: str) -> None:
    values = numpy.zeros((48, 40), numpy.uint8)
    values[:, 30:], values[:24, :30] = 7, 200
    made = io.BytesIO()
    Image.fromarray(values).save(made, "PNG")
    labels = [{"label": name, "value": value, "share": 0.3} for name, value in (("a", 0), ("b", 7), ("c", 200))]
    mask = f"data:image/png;base64,{base64.b64encode(made.getvalue()).decode()}"
    answering(page, "segment", {"input": "", "labels": labels, "mask": mask})
    given(page, f"{seeing}/pictures#model=segment&opacity=1", file())
    swatches = page.locator(".swatch")
    expect(swatches).to_have_count(3)
    legend = [swatches.nth(i).evaluate("node => getComputedStyle(node).backgroundColor") for i in range(3)]
    expect(page.locator("canvas.over")).to_have_attribute("width", "40")
    drawn = """(canvas, [x, y]) => {
      const [red, green, blue] = canvas.getContext("2d").getImageData(x, y, 1, 1).data;
      return `rgb(${red}, ${green}, ${blue})`;
    }"""
    over = page.locator("canvas.over")
    assert [over.evaluate(drawn, place) for place in ([5, 40], [35, 5], [5, 5])] == legend
    assert len({*legend}) == 3
    picture = numpy.asarray(image_of(saved(page, "PNG")).convert("RGB"))
    assert "rgb({}, {}, {})".format(*picture[12 * 40 + 5, 12 * 5 + 5]) == legend[0]
    page.locator("#opacity").fill("0")
    assert over.evaluate("node => node.style.opacity") == "0"
    assert "opacity=0" in page.url


def test_a_class_has_one_colour_in_all_pictures(page: Page, seeing: str) -> None:
    one = {"label": "circle", "score": 0.9, "box": [1, 1, 20, 20]}
    other = {"label": "square", "score": 0.8, "box": [5, 5, 30, 30]}
    answering(page, "detect", {"input": "", "boxes": [one, other]}, {"input": "", "boxes": [other]})
    given(page, f"{seeing}/pictures#model=detect", file("a.png"), file("b.png"))
    expect(page.locator("svg.over text", has_text="square")).to_have_count(2)
    square, circle, again = (each.get_attribute("stroke") for each in page.locator("svg.over rect").all())
    assert square == again != circle


def test_the_names_of_boxes_do_not_lie_on_each_other(page: Page, seeing: str) -> None:
    boxes = [{"label": "circle", "score": 0.9, "box": [1 + n, 8, 20, 40]} for n in range(4)]
    answering(page, "detect", {"input": "", "boxes": boxes})
    given(page, f"{seeing}/pictures#model=detect", file())
    expect(page.locator("svg.over text")).to_have_count(4)
    heights = sorted(float(each.get_attribute("y") or 0) for each in page.locator("svg.over text").all())
    size = float(page.locator("svg.over text").first.get_attribute("font-size") or 0)
    assert min(after - before for before, after in pairwise(heights)) >= size


@pytest.mark.parametrize("box", [[0, 0, 40, 48], [35, 0, 40, 3], [38, 40, 40, 48], [0, 47, 1, 48]])
def test_a_name_stands_inside_of_the_picture(page: Page, seeing: str, box: list[float]) -> None:
    answering(page, "detect", {"input": "", "boxes": [{"label": "triangle", "score": 0.9, "box": box}]})
    given(page, f"{seeing}/pictures#model=detect", file())
    measured = "node => { const box = node.getBBox(); return [box.x, box.y, box.x + box.width, box.y + box.height]; }"
    left, top, right, bottom = page.locator("svg.over text").evaluate(measured)
    assert min(left, top) >= 0
    assert right <= 40
    assert bottom <= 48


def test_the_least_probability_asks_nothing_again(page: Page, seeing: str) -> None:
    boxes = [{"label": "a", "score": score, "box": [1, 1, 9, 9]} for score in (0.9, 0.4, 0.1)]
    answering(page, "detect", {"input": "", "boxes": boxes})
    given(page, f"{seeing}/pictures#model=detect", file())
    expect(page.locator("svg.over rect")).to_have_count(1)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.locator("#threshold").fill("0.3")
    expect(page.locator("svg.over rect")).to_have_count(2)
    assert len(rows_of(saved(page, "CSV"))) == 3
    assert asked == []


def test_pictures_are_made_of_nothing_and_once_more(page: Page, seeing: str) -> None:
    page.goto(f"{seeing}/pictures#model=paint")
    expect(page.get_by_role("button", name="Once more")).to_be_disabled()
    page.get_by_role("button", name="Make new ones").click()
    made = page.locator(".made")
    expect(made).to_have_count(8)
    first = made.first.get_attribute("src")
    page.get_by_role("button", name="Make new ones").click()
    expect(made.first).not_to_have_attribute("src", first or "")
    page.locator("#files").set_input_files([file()])
    expect(made).to_have_count(4)
    completed = [each.get_attribute("src") for each in made.all()]
    page.get_by_role("button", name="Once more").click()
    expect(made.first).not_to_have_attribute("src", completed[0] or "")
    size = made.first.evaluate("node => [4 * node.naturalWidth, node.naturalHeight]")
    assert [*image_of(saved(page, "PNG")).size] == size


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_a_picture_may_be_dropped_anywhere_or_pasted(page: Page, seeing: str, kind: str) -> None:
    page.goto(f"{seeing}/pictures#model=classify-images")
    expect(page.locator("#model")).to_have_value("classify-images")
    page.wait_for_load_state("networkidle")
    data = base64.b64encode(noise()).decode()
    prevented = page.evaluate(DROP, [data, kind, "given.png"])
    assert prevented or kind == "paste"  # else a browser would leave the page for the file
    expect(page.locator(".card h2")).to_have_text("given.png")


def test_more_than_are_shown_and_what_is_none_is_said(page: Page, seeing: str) -> None:
    given(page, f"{seeing}/pictures#model=classify-images", *(file(f"{i}.png") for i in range(10)))
    expect(page.locator(".card")).to_have_count(8)
    expect(page.locator("#trouble")).to_have_text("The first 8 of 10 pictures are shown.")
    page.locator("#files").set_input_files([file(), file("notes.txt", b"words", "text/plain")])
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator("#trouble")).to_have_text("1 of 2 files are no pictures.")
    page.locator("#files").set_input_files([file()])
    expect(page.locator("#trouble")).to_be_hidden()


def test_a_kind_that_the_browser_cannot_show_is_still_answered(page: Page, seeing: str) -> None:
    made = io.BytesIO()
    Image.open(io.BytesIO(noise())).save(made, "TIFF")
    for model in ("classify-images", "detect", "segment"):
        given(page, f"{seeing}/pictures#model={model}", file("scan.tif", made.getvalue(), "image/tiff"))
        expect(page.locator(".card .frame")).to_contain_text("cannot show")
        expect(page.get_by_role("button", name="CSV")).to_be_visible()
        expect(page.get_by_role("button", name="PNG")).to_have_count(0)
        page.goto("about:blank")


def wait_until_held(page: Page, held: list[Route]) -> None:
    """Until the first request has come to where it waits: one that is given up before never comes there."""
    for _ in range(3000):
        if held:
            return
        page.wait_for_timeout(10)
    raise AssertionError("no request came")


def test_an_older_answer_is_given_up(page: Page, seeing: str) -> None:
    held: list[Route] = []

    def first_waits(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    given_up: list[str | None] = []
    page.on("requestfailed", lambda request: given_up.append(request.failure))
    page.route("**/api/classify", first_waits)
    given(page, f"{seeing}/pictures#model=classify-images", file("old.png"))
    expect(page.locator("#busy")).to_have_text("Looking at the picture …")
    wait_until_held(page, held)
    page.locator("#files").set_input_files([file("new.png"), file("newer.png")])
    expect(page.locator(".card h2")).to_have_text(["new.png", "newer.png"])
    assert given_up == ["net::ERR_ABORTED"]


def test_of_the_patches_the_one_that_was_chosen_last_is_shown(page: Page, seeing: str) -> None:
    page.goto(f"{seeing}/look?model=classify-images")
    page.locator("#file").set_input_files([file()])
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator(".large-map")).to_be_visible()
    held: list[Route] = []
    given_up: list[str | None] = []
    page.on("requestfailed", lambda request: given_up.append(request.failure))
    page.route("**/api/view", lambda route: route.continue_() if held else held.append(route))
    page.locator(".large-map").press("ArrowRight")
    wait_until_held(page, held)
    page.locator(".large-map").press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("what patch 1 looked at")
    assert given_up == ["net::ERR_ABORTED"]


def test_answers_of_another_model_do_not_stay(page: Page, seeing: str) -> None:
    given(page, f"{seeing}/pictures#model=classify-images", file())
    expect(page.locator(".card")).to_have_count(1)
    page.locator("#model").select_option("match")
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#busy")).to_contain_text("Type the texts")
    page.locator("#texts").fill("a cat\n\n a dog ")
    page.locator("#drop").click(trial=True)
    page.locator("#texts").blur()
    expect(page.locator(".card .bars bdi")).to_have_count(2)


def refused(route: Route) -> None:
    route.fulfill(status=400, json={"error": {"message": "noise.png: not a picture", "fix": "choose another"}})


def test_what_the_server_refuses_is_said_and_nothing_stale_is_shown(loose: Page, seeing: str) -> None:
    page = loose
    given(page, f"{seeing}/pictures#model=classify-images", file())
    expect(page.locator(".card")).to_have_count(1)
    page.route("**/api/classify", refused)
    page.locator("#files").set_input_files([file("noise.png", b"no picture")])
    expect(page.locator("#trouble")).to_have_text("noise.png: not a picture: choose another")
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#busy")).to_be_empty()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(page: Page, seeing: str, name: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    answering(
        page, "classify", {"input": name, "labels": [{"label": name, "score": -1.25}, {"label": "b", "score": 2}]}
    )
    given(page, f"{seeing}/pictures#model=classify-images", file(name))
    expect(page.locator(".card h2")).to_have_text(name)
    expect(page.locator(".card img")).to_have_count(1)
    expect(page.locator(".card .bars bdi").first).to_have_text(name)
    rows = rows_of(saved(page, "CSV"))
    assert rows[1] == [f"'{name}" if name.startswith("=") else name, "-1.2500"]  # a number stays one


@pytest.mark.parametrize("model", MODELS)
def test_no_serious_fault_where_pictures_are_shown(
    loose: Page, accessible: Callable[[Page], None], seeing: str, model: str
) -> None:
    given(
        loose,
        f"{seeing}/pictures#model={model}{ASKED.get(model, '')}&texts=a+cat%0Aa+dog&threshold=0.05",
        file("a.png"),
        file("b.png"),
    )
    expect(loose.locator(".card details")).to_have_count(2)
    loose.locator(".card summary").first.click()
    accessible(loose)


@pytest.mark.parametrize("model", MODELS)
def test_it_fits_any_width_with_pictures(page: Page, seeing: str, model: str) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    wide = file("a" * 120 + ".png", noise(size=(20, 400)))
    given(
        page,
        f"{seeing}/pictures#model={model}{ASKED.get(model, '')}&texts={'word' * 40}%0Ab&threshold=0.05",
        wide,
        file(),
    )
    expect(page.locator(".card details")).to_have_count(2)
    page.locator(".card summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size({"width": 3840, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 3840


def test_a_picture_that_was_chosen_before_the_script_was_there(page: Page, seeing: str) -> None:
    page.route("**/api/models", lambda route: (page.locator("#files").set_input_files([file()]), route.continue_()))
    page.goto(f"{seeing}/pictures#model=classify-images")
    expect(page.locator(".card h2")).to_have_text("noise.png")
