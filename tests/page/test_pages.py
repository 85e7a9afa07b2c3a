"""Start, Translate and Write, as a person in a browser finds them."""

import re
from collections.abc import Callable
from threading import Semaphore

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from aligning import aligned
from heedful.metrics.names import LABELS, SHARES
from waiting import becomes

VIEWS = ["", "translate", "write", "chat", "pictures", "look", "runs", "docs"]


# A text in a field, letter by letter, faster than a question is asked.
TYPED = """(node, text) => {
  for (const [end] of [...text].entries()) {
    node.value = text.slice(0, end + 1);
    node.dispatchEvent(new Event("input"));
  }
}"""


# The server takes its time to say what it serves.
SLOW = """const asked = window.fetch;
window.fetch = async (address, how) => {
  if (String(address).endsWith("api/models")) await new Promise((done) => setTimeout(done, 1000));
  return asked(address, how);
};"""


def settled(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_names_itself_and_fits_any_width(page: Page, served: str, view: str) -> None:
    page.set_viewport_size({"width": 320, "height": 800})
    settled(page, f"{served}/{view}")
    expect(page.locator("a[aria-current]")).to_have_count(1)
    expect(page.locator("h1").first).not_to_be_empty()
    for width in (320, 380, 3840):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_fault_for_people_who_see_or_move_otherwise(
    loose: Page, accessible: Callable[[Page], None], served: str, view: str
) -> None:
    settled(loose, f"{served}/{view}")
    accessible(loose)


@pytest.mark.parametrize(
    "path", ["nothing", "nothing/<b>here", "nothing/at/all/", "page/nothing.js", "api/runs/nothing", "api/translate"]
)
def test_an_address_that_is_not_there_is_a_page_with_the_way_back(loose: Page, served: str, path: str) -> None:
    loose.set_viewport_size({"width": 320, "height": 800})
    answer = loose.goto(f"{served}/{path}")
    assert answer is not None
    assert answer.status in (404, 405)
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    expect(loose.get_by_role("heading", name="There is nothing here")).to_be_visible()
    expect(loose.locator(".lead code")).to_have_text(f"/{path}")
    assert loose.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # it has its style
    assert loose.evaluate("document.documentElement.scrollWidth") <= 320
    loose.get_by_role("link", name="Translate").click()
    expect(loose.get_by_role("heading", name="Translate")).to_be_visible()


def test_programs_get_json_where_nothing_is(served: str) -> None:
    for accept in ("*/*", "application/json", ""):
        answer = httpx.get(f"{served}/nothing", headers={"Accept": accept})
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")
    posted = httpx.post(f"{served}/nothing", json={}, headers={"Accept": "text/html"})
    assert posted.json()["error"]["message"] == "there is no such route"
    page = httpx.get(f"{served}/nothing", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


def test_all_routes_are_a_page_that_every_page_leads_to(page: Page, served: str) -> None:
    page.goto(served)
    page.get_by_role("link", name="all routes").click()
    paths = httpx.get(f"{served}/openapi.json").json()["paths"]
    routes = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    shown = page.locator("#routes summary")
    expect(shown).to_have_count(len(routes))
    found = shown.all_text_contents()
    assert all(text.startswith(route) for text, route in zip(found, routes, strict=True))
    page.get_by_label("Filter").fill("post /v2/document")
    expect(shown).to_have_count(3)
    shown.first.click()
    expect(page.locator(".route[open] th")).to_contain_text(["target_lang", "file"])
    expect(page.locator(".route[open] b", has_text="file")).to_have_text("file")
    page.get_by_role("link", name="openapi.json").first.click()
    assert page.url == f"{served}/openapi.json"


@pytest.mark.parametrize(
    ("view", "field"), [("translate", "source"), ("write", "prompt"), ("chat", "says"), ("look?model=en-fr", "text")]
)
def test_what_is_typed_while_a_view_gets_ready_is_not_lost(page: Page, served: str, view: str, field: str) -> None:
    """A field takes no letter before its script listens; what it then takes stays."""
    page.add_init_script(SLOW)
    place = page.locator(f"#{field}")
    with page.expect_response("**/api/models"):
        page.goto(f"{served}/{view}")
        place.click()
        place.press("Control+a")
        page.keyboard.type("four more words here")
    page.wait_for_load_state("networkidle")
    expect(place).to_have_value("four more words here")


def test_a_click_while_a_view_gets_ready_is_not_lost(page: Page, served: str) -> None:
    page.add_init_script(SLOW)
    page.goto(f"{served}/write")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.locator("#written")).not_to_be_empty()


def test_a_server_that_is_gone_is_told_of(loose: Page, served: str) -> None:
    loose.route("**/api/models", lambda route: route.abort("connectionrefused"))
    for view in ("", "translate", "write", "chat", "pictures", "look"):
        loose.goto(f"{served}/{view}")
        expect(loose.locator("#trouble")).to_contain_text("does not answer")


def test_browsers_find_that_there_is_no_icon(served: str) -> None:
    """They ask for one beside a document that names none, such as openapi.json."""
    assert httpx.get(f"{served}/favicon.ico").status_code == 204


def test_a_card_for_each_model_and_its_example_runs(page: Page, served: str) -> None:
    page.goto(served)
    cards = page.locator(".card")
    expect(cards).to_have_count(9)
    card = cards.filter(has=page.get_by_role("heading", name="en-fr", exact=True))
    card.get_by_role("button", name="Run").click()
    expect(card.locator("output")).not_to_have_text(re.compile("^…?$"))


def test_an_example_that_fails_leaves_no_answer_to_come(loose: Page, served: str) -> None:
    settled(loose, served)
    loose.route("**/api/translate", lambda route: route.abort("connectionrefused"))
    card = loose.locator(".card").filter(has=loose.get_by_role("heading", name="en-fr", exact=True))
    card.get_by_role("button", name="Run").click()
    expect(loose.locator("#trouble")).to_contain_text("does not answer")
    expect(card.locator("output")).to_be_empty()


def test_scores_are_called_as_in_a_terminal(page: Page, served: str) -> None:
    wanted = {f"{key} on my_test": f"{name} on my_test" for key, name in (LABELS | SHARES).items()}
    wanted |= {"exact_match on valid": "exact match on valid"}
    scores = dict.fromkeys(wanted, 1.0)
    model = httpx.get(f"{served}/api/models").json()["models"][0] | {"scores": scores}
    page.route("**/api/models", lambda route: route.fulfill(json={"models": [model]}))
    page.goto(served)
    expect(page.locator(".scores dt")).to_have_text([*wanted.values()])
    run = httpx.get(f"{served}/api/runs").json()["runs"][0] | {"scores": scores}
    page.route("**/api/runs", lambda route: route.fulfill(json={"runs": [run]}))
    page.goto(f"{served}/runs")
    for name in wanted.values():
        expect(page.get_by_role("columnheader", name=name, exact=True)).to_be_visible()


def test_it_translates_as_one_types_and_gives_up_the_older_question(page: Page, served: str) -> None:
    settled(page, f"{served}/translate")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/api/align" in request.url else None)
    with page.expect_request(lambda request: "ko la ba de fi" in (request.post_data or "")):
        page.locator("#source").evaluate(TYPED, "ko la ba de fi")
    expect(page.locator("#target .said").first).to_be_visible()
    assert len(asked) == 1  # and not one for each letter


def test_a_word_shows_what_it_looked_at_and_what_could_stand_there(page: Page, served: str) -> None:
    settled(page, f"{served}/translate#text=ko+la+ba")
    words = page.locator("#target .said")
    expect(words.first).to_be_visible()
    before = page.locator("#target").inner_text()
    words.first.hover()
    expect(page.locator("#heard .said")).to_have_count(3)
    expect(page.locator("#aside")).to_contain_text("looked at")
    words.first.click()
    others = page.locator(".others button")
    expect(others.first).to_be_visible()
    others.last.click()
    expect(page.get_by_role("button", name="Back to the model's own translation")).to_be_visible()
    assert "target=" in page.url
    changed = page.locator("#target").inner_text()
    page.reload()  # the address keeps it
    expect(page.locator("#target")).to_have_text(changed)
    page.get_by_role("button", name="Back to the model's own translation").click()
    expect(page.locator("#target")).to_have_text(before)


def test_words_stand_in_the_order_of_their_script(page: Page, served: str) -> None:
    """A name in Latin letters is read from the left, in a line that is read from the right."""
    said = ["שלום", "United", "Nations", "עולם"]
    page.route("**/api/align", lambda route: route.fulfill(json=aligned(["a"], said)))
    page.goto(f"{served}/translate#text=a")
    shown = page.locator("#target .said")
    expect(shown).to_have_count(4)
    boxes = [shown.nth(place).bounding_box() for place in range(4)]
    lefts = [box["x"] for box in boxes if box]
    assert lefts[0] > lefts[2] > lefts[1] > lefts[3]


def test_a_translation_is_selected_from_within_a_word_and_its_words_answer_to_keys(page: Page, served: str) -> None:
    settled(page, f"{served}/translate#text=ko+la+ba+de")
    words = page.locator("#target .said")
    first, last = words.first.bounding_box(), words.last.bounding_box()
    assert first
    assert last
    page.mouse.move(first["x"] + 1, first["y"] + 8)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] - 1, last["y"] + 8, steps=5)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()") == page.locator("#target").inner_text()
    for key in ("Enter", " "):
        words.first.focus()
        page.keyboard.press(key)
        expect(words.first).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("Escape")
        expect(words.first).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("view", ["translate", "write"])
def test_the_address_keeps_a_long_text_whole(page: Page, served: str, view: str) -> None:
    text = "猫 ko la " * 500
    settled(page, f"{served}/{view}")
    field = page.locator("#source, #prompt")
    field.fill(text)
    if view == "write":
        page.locator("#tokens").fill("1")
        page.locator("#go").click()
    page.wait_for_url(re.compile("text=%E7%8C%AB"))
    page.reload()
    assert becomes(lambda: field.input_value() == text)


@pytest.mark.parametrize("width", [380, 1280])
def test_a_word_stays_under_the_pointer(page: Page, served: str, width: int) -> None:
    """Though the source is shown otherwise while a word of the translation is touched."""
    page.set_viewport_size({"width": width, "height": 800})
    settled(page, f"{served}/translate#text=ko+la+ba")
    word = page.locator("#target .said").first
    before = word.bounding_box()
    word.hover()
    expect(page.locator("#heard")).to_be_visible()
    assert word.bounding_box() == before


def test_what_was_let_go_does_not_come_back(page: Page, served: str) -> None:
    settled(page, f"{served}/translate#text=ko+la+ba")
    held: list[Route] = []
    page.route("**/api/align", lambda route: held.append(route))
    page.route("**/api/translate", lambda route: held.append(route))
    with page.expect_request("**/api/align"):
        page.locator("#target .said").first.click()
    page.keyboard.press("Escape")
    with page.expect_request("**/api/translate"):
        page.locator("#best").fill("3")
        page.locator("#best").dispatch_event("change")
    page.locator("#best").fill("1")
    page.locator("#best").dispatch_event("change")
    for route in held:
        with page.expect_response(route.request.url):
            route.continue_()
    page.wait_for_load_state("networkidle")
    expect(page.locator("#others")).to_be_empty()
    expect(page.locator("#more")).to_be_empty()


def test_a_long_line_and_many_lines_are_translated_whole(page: Page, served: str) -> None:
    settled(page, f"{served}/translate")
    with page.expect_response("**/api/translate") as answered:
        page.locator("#source").fill("ko la ba " * 250)
    (answer,) = answered.value.json()["answers"]
    expect(page.locator("#target")).to_have_text(answer["text"])
    expect(page.locator("#trouble")).to_be_hidden()
    page.locator("#source").fill("\n".join(["ko"] * 200))
    assert becomes(lambda: (page.locator("#target").text_content() or "").count("\n") == 199)
    assert page.locator("#target").inner_text().count("\n") == 199  # and so they are seen
    first, *others = (page.locator("#target").text_content() or "").split("\n")
    assert first
    assert {*others} == {first}


def test_the_best_translations_with_their_scores(page: Page, served: str) -> None:
    settled(page, f"{served}/translate#text=ko+la+ba&best=3")
    expect(page.locator("#more ol li")).to_have_count(3)
    page.locator("#more summary").click()
    expect(page.locator("#more table tbody tr")).to_have_count(3)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "שלום עולם", "猫が好きです", "‮ko‬ \u0000x", "a\n\nb"])
def test_whatever_is_typed_is_text(page: Page, served: str, text: str) -> None:
    settled(page, f"{served}/translate")
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.locator("#source").fill(text)
    page.wait_for_timeout(400)
    page.wait_for_load_state("networkidle")
    assert page.locator("#target script, #heard script").count() == 0
    expect(page.locator("#trouble")).to_be_hidden()


def test_a_text_is_written_piece_by_piece_and_can_be_stopped(page: Page, served: str, steps: Semaphore) -> None:
    steps.release(40)
    settled(page, f"{served}/write#text=ko&tokens=40")
    page.get_by_role("button", name="Write").click()
    expect(page.locator("#written .piece")).to_have_count(40)
    expect(page.locator("#count")).to_contain_text("40 tokens")
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    page.locator("#tokens").fill("2000")
    page.get_by_role("button", name="Write").click()
    expect(page.locator("#written .piece")).not_to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    steps.release(3000)
    page.wait_for_timeout(100)
    count = page.locator("#written .piece").count()
    page.wait_for_timeout(100)
    assert page.locator("#written .piece").count() == count < 2000


def test_a_token_shows_the_likeliest_there_and_another_can_be_chosen(page: Page, served: str) -> None:
    settled(page, f"{served}/write#text=ko&tokens=12")
    page.get_by_role("button", name="Write").click()
    pieces = page.locator("#written .piece")
    expect(pieces).to_have_count(12)
    pieces.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#chances .said")).to_have_count(10)
    page.locator("#chances .said").nth(5).click()
    expect(pieces).to_have_count(12)
    assert page.locator("#prompt").input_value() != "ko"
