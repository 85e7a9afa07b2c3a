"""The page for who translates: sentences side by side, copying, clearing, swapping, files, a glossary, documents."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from aligning import aligned
from documents import DOCUMENTS
from heedful.serve.app import make_app
from heedful.serve.engine import open_engine
from heedful.verbs.use import ask
from serving import opened, running, translator
from waiting import becomes

TEXT = "Ko la gi. De fi!\n\nBa su."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "runs"
    translator(folder / "there", "en", "fr", seed=1)
    translator(folder / "away", "de", "fr", seed=2)
    translator(folder / "zurück", "French", "English", seed=3)
    (folder / "away" / "data.json").write_text(json.dumps({"example": "Ein Beispiel."}))
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    models = {run.name: open_engine(run, engine="own") for run in sorted(folder.iterdir())}
    with running(make_app(models, runs=folder)) as address:
        yield address


def at(page: Page, address: str, text: str = TEXT, model: str = "there") -> None:
    page.goto(f"{address}/translate#model={model}&text=" + text.replace("\n", "%0A"))
    page.wait_for_load_state("networkidle")


def test_sentences_stand_side_by_side_and_make_the_whole(page: Page, address: str, folder: Path) -> None:
    at(page, address)
    rows = page.locator("#sentences tbody tr")
    expect(rows).to_have_count(3)
    sources = rows.locator("td:nth-child(2)").all_text_contents()
    said = rows.locator("td:nth-child(3)").all_text_contents()
    assert sources == ["Ko la gi.", "De fi!", "Ba su."]
    assert said == [opened(folder / "there").translate(each) for each in sources]
    whole = page.locator("#target").text_content() or ""
    assert whole.count("\n") == 2
    assert whole.split() == " ".join(said).split()
    expect(rows.locator("td:nth-child(4)").first).to_have_text(re.compile(r"^(< )?[\d.]+ %$"))
    rows.nth(1).get_by_role("link", name="Look inside").click()
    expect(page.locator("#text")).to_have_value("De fi!")


def test_a_word_lights_its_own_sentence_and_is_replaced_in_it_alone(page: Page, address: str) -> None:
    at(page, address)
    rows = page.locator("#sentences tbody tr td:nth-child(3)")
    expect(rows).to_have_count(3)
    before = rows.all_text_contents()
    first = page.locator('#target .said[data-place="1,0"]')
    first.hover()
    expect(page.locator("#heard .sentence")).to_have_text("De fi!")
    assert page.locator("#heard").text_content() == TEXT
    expect(page.locator("#heard .said")).to_have_count(2)
    first.click()
    page.locator("#others button").last.click()
    expect(page.get_by_role("button", name="Back to the model's own translation")).to_be_visible()
    expect(rows.nth(1)).not_to_have_text(before[1])
    changed = rows.all_text_contents()
    assert [changed[0], changed[2]] == [before[0], before[2]]
    page.reload()  # the address keeps it
    expect(rows.nth(1)).to_have_text(changed[1])
    page.get_by_role("button", name="Back to the model's own translation").click()
    expect(rows.nth(1)).to_have_text(before[1])


def test_a_sentence_has_other_translations_to_choose(page: Page, address: str, folder: Path) -> None:
    at(page, address)
    page.locator("#best").fill("3")
    page.locator("#best").press("Enter")
    expect(page.locator("#more h3")).to_have_text([f"The 3 best of sentence {number}" for number in (1, 2, 3)])
    rows = page.locator("#sentences tbody tr td:nth-child(3)")
    before = rows.all_text_contents()
    (record,) = ask(opened(folder / "there"), "translate", ["De fi!"], {"decoding": {"n_best": 3}})
    texts = [one["text"] for one in record["hypotheses"]]
    second = page.locator("#more ol").nth(1)
    expect(second.locator("button span:first-child")).to_have_text(texts)
    second.locator("button").nth(2).click()
    expect(rows).to_have_text([before[0], texts[2], before[2]])
    expect(second.locator("[aria-pressed=true]")).to_contain_text(texts[2])
    second.locator("button").first.click()
    expect(rows).to_have_text(before)
    assert "target" not in page.url


def test_a_sentence_unlike_all_that_was_learnt_is_told(page: Page, address: str) -> None:
    found = aligned(["Ko"], ["La"])
    found["answers"][0]["sentences"][0]["unlike"] = True
    page.route("**/api/align", lambda route: route.fulfill(json=found))
    at(page, address, "Ko")
    expect(page.locator("#sentences .wrong")).to_have_text("unlike all that the model was trained on")
    expect(page.locator("#sentences")).to_contain_text("1 has a warning")


def test_a_warning_stands_beside_its_sentence(page: Page, address: str) -> None:
    at(page, address)
    page.locator("#glossary summary").click()
    page.get_by_label("Term 1", exact=True).fill("su")
    page.get_by_label("Translation of term 1").fill("x" * 60)
    warned = page.locator("#sentences tbody tr", has=page.locator(".wrong:not(:empty)"))
    expect(warned).to_have_count(1)
    expect(warned).to_contain_text("Ba su.")
    expect(warned.locator(".wrong")).to_contain_text("for 'su'")
    expect(page.locator("#sentences")).to_contain_text("1 has a warning")


def test_a_glossary_is_kept_in_the_browser_for_its_languages(page: Page, address: str, folder: Path) -> None:
    at(page, address, "ko la")
    before = page.locator("#target").text_content()
    page.locator("#glossary summary").click()
    page.get_by_label("Term 1", exact=True).fill("ko")
    page.get_by_label("Translation of term 1").fill("su")
    wanted = opened(folder / "there").translate("ko la", glossary={"ko": "su"})
    assert wanted != before
    expect(page.locator("#target")).to_have_text(wanted)
    expect(page.locator("#glossary summary")).to_have_text("Glossary (1 term)")
    page.reload()
    expect(page.locator("#target")).to_have_text(wanted)
    page.locator("#model").select_option("away")
    expect(page.locator("#glossary summary")).to_have_text("Glossary")
    page.locator("#model").select_option("there")
    page.locator("#glossary summary").click()
    page.get_by_role("button", name="Remove term 1").click()
    expect(page.locator("#target")).to_have_text(before or "")
    assert page.evaluate("localStorage.getItem('heedful glossary en fr')") == "[]"


def test_rows_of_a_table_are_pasted_as_terms(page: Page, address: str) -> None:
    at(page, address, "ko la")
    page.locator("#glossary summary").click()
    page.get_by_label("Term 1", exact=True).evaluate(
        """node => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text", "ko\\tsu\\r\\n la \\tne\\tmore\\r\\n");
          node.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true, bubbles: true }));
        }"""
    )
    fields = page.locator("#terms input")
    expect(fields).to_have_count(6)
    assert [fields.nth(i).input_value() for i in range(6)] == ["ko", "su", "la", "ne", "", ""]


@pytest.mark.parametrize("way", ["button", "keys", "without a clipboard"])
def test_the_translation_is_copied(page: Page, address: str, way: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    at(page, address)
    whole = page.locator("#target").text_content()
    if way == "without a clipboard":
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.evaluate("document.addEventListener('copy', () => { window.taken = getSelection().toString(); })")
    if way == "keys":
        page.locator("#source").focus()
        page.keyboard.press("Alt+KeyC")
    else:
        page.locator("#copy").click()
    expect(page.locator("#copied")).to_have_text("Copied")
    copied = page.evaluate("window.taken ?? navigator.clipboard.readText()")
    assert copied == whole


STALE = ("#target", "#aside", "#others", "#more", "#sentences", "#links", "#copied", "#heard")


@pytest.mark.parametrize("way", ["button", "keys", "by hand"])
def test_nothing_stale_is_left_after_clearing(page: Page, address: str, way: str) -> None:
    at(page, address)
    page.locator("#best").fill("2")
    page.locator("#best").dispatch_event("change")
    expect(page.locator("#more li")).to_have_count(6)
    page.locator("#target .said").first.click()
    page.locator("#others button").last.click()
    expect(page.get_by_role("button", name="Back to the model's own translation")).to_be_visible()
    page.locator("#copy").click()
    page.locator("#target .said").first.click()
    expect(page.locator("#others button").first).to_be_visible()
    if way == "button":
        page.locator("#clear").click()
    elif way == "keys":
        page.keyboard.press("Alt+KeyX")
    else:
        page.keyboard.press("Escape")
        page.locator("#source").fill("")
    for place in STALE:
        expect(page.locator(place)).to_be_empty()
    expect(page.locator("#source")).to_be_visible()
    expect(page.locator("#source")).to_have_value("")
    expect(page.locator("#count")).to_have_text("0 of 20,000 characters, 0 words")
    expect(page.locator("#sure")).to_have_text("sure")
    expect(page.locator("#copy")).to_be_disabled()
    assert "target" not in page.url
    assert "text" not in page.url


def test_an_answer_that_comes_late_does_not_fill_what_was_cleared(page: Page, address: str) -> None:
    at(page, address)
    held: list[Route] = []
    page.route("**/api/align", lambda route: held.append(route))
    with page.expect_request("**/api/align"):
        page.locator("#source").fill("ko")
    page.locator("#clear").click()
    expect(page.locator("#target")).to_be_empty()
    for route in held:
        route.continue_()
    page.wait_for_load_state("networkidle")
    expect(page.locator("#target")).to_be_empty()


def test_a_text_that_fails_has_no_translation_of_another(loose: Page, address: str) -> None:
    at(loose, address)
    refused = {"error": {"message": "this one is refused", "fix": None}}
    loose.route("**/api/align", lambda route: route.fulfill(status=400, json=refused))
    loose.locator("#source").fill("ko")
    expect(loose.locator("#trouble")).to_contain_text("this one is refused")
    expect(loose.locator("#target")).to_be_empty()
    expect(loose.locator("#sentences")).to_be_empty()


def test_characters_and_words_are_counted_and_bounded(page: Page, address: str) -> None:
    at(page, address, "Ko la, 12 gi! 猫😀")
    expect(page.locator("#count")).to_have_text("16 of 20,000 characters, 5 words")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.locator("#source").fill("ko " * 7000)
    expect(page.locator("#count")).to_contain_text("21,000 of 20,000 characters, 7,000 words: too long")
    expect(page.locator("#target")).to_be_empty()
    page.wait_for_timeout(400)
    assert asked == []


def test_languages_are_swapped_where_a_model_leads_back(page: Page, address: str, folder: Path) -> None:
    at(page, address, "ko la")
    text = page.locator("#target").text_content() or ""
    page.locator("#swap").click()
    expect(page.locator("#model")).to_have_value("zurück")
    expect(page.locator("#from")).to_have_text("French")
    expect(page.locator("#source")).to_have_value(text)
    expect(page.locator("#target")).to_have_text(opened(folder / "zurück").translate(text))
    page.keyboard.press("Alt+KeyS")
    expect(page.locator("#model")).to_have_value("there")
    page.locator("#model").select_option("away")
    expect(page.locator("#swap")).to_be_hidden()


def test_the_example_is_in_the_language_that_the_model_reads(page: Page, address: str) -> None:
    for model, example in (
        ("there", "My sister buys three apples."),
        ("away", "Ein Beispiel."),
        ("zurück", ""),
    ):
        page.goto("about:blank")
        page.goto(f"{address}/translate#model={model}")
        page.wait_for_load_state("networkidle")
        expect(page.locator("#source")).to_have_value(example)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ko é\r\nla".encode(), "ko é\nla"),
        ("\ufeffko é".encode(), "ko é"),
        ("ko é".encode("utf-16"), "ko é"),
        ("ko é".encode("latin-1"), None),
        (b"", ""),
    ],
)
def test_a_text_file_is_opened_into_the_box(page: Page, address: str, data: bytes, text: str | None) -> None:
    at(page, address, "ba")
    page.locator("#open").set_input_files({"name": "<b>.txt", "mimeType": "text/plain", "buffer": data})
    if text is None:
        expect(page.locator("#count")).to_have_text("<b>.txt is no text in UTF-8 or UTF-16: save it as one.")
        expect(page.locator("#source")).to_have_value("ba")
    else:
        expect(page.locator("#source")).to_have_value(text)
        expect(page.locator("#count")).to_contain_text(f"{len(text)} of 20,000")


def card(page: Page, name: str) -> Any:
    return page.locator("#sent .card", has=page.get_by_text(name, exact=True))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_translated_and_saved(page: Page, address: str, folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DOCUMENTS[name])
    at(page, address, "")
    page.locator("#files").set_input_files(tmp_path / name)
    stem, _, suffix = name.partition(".")
    with page.expect_download() as saved:
        card(page, name).get_by_role("link", name=f"Save {stem}.fr.{suffix}").click()
    made = Path(saved.value.path()).read_bytes()
    opened(folder / "there").translate_files(tmp_path / name, tmp_path / f"made.{suffix}")
    assert made == (tmp_path / f"made.{suffix}").read_bytes()
    assert saved.value.suggested_filename == f"{stem}.fr.{suffix}"


def test_what_is_no_document_says_why_and_a_warning_is_listed(page: Page, address: str, tmp_path: Path) -> None:
    (tmp_path / "<i>a.docx").write_bytes(b"ba")
    (tmp_path / "b.txt").write_bytes(b"ba {ko_la} de.\n\nGi {fi} su.\n")
    at(page, address, "")
    page.locator("#flag").check()
    page.locator("#files").set_input_files([tmp_path / "<i>a.docx", tmp_path / "b.txt"])
    expect(card(page, "<i>a.docx").locator(".wrong")).to_contain_text("no Word document")
    expect(card(page, "b.txt").locator(".warnings li").first).to_contain_text("b.txt:1")
    expect(card(page, "b.txt")).to_contain_text("to check")
    expect(card(page, "b.txt").locator("progress")).to_have_count(0)
    assert page.locator("#sent i").count() == 0


def test_a_document_can_be_dropped_and_given_up(page: Page, address: str) -> None:
    at(page, address, "")
    states: list[Route] = []
    page.route(re.compile("/api/documents/"), lambda route: states.append(route))
    moved = page.evaluate_handle(
        """() => {
          const moved = new DataTransfer();
          moved.items.add(new File(["ko la"], "a.txt"));
          return moved;
        }"""
    )
    page.locator("#source").dispatch_event("drop", {"dataTransfer": moved})
    expect(card(page, "a.txt").locator("progress")).to_be_attached()
    assert becomes(lambda: page.wait_for_timeout(50) is None and bool(states))
    with page.expect_request(lambda request: request.method == "DELETE"):
        card(page, "a.txt").get_by_role("button", name="Remove a.txt").click()
    expect(page.locator("#sent .card")).to_have_count(0)
    for route in states:
        route.continue_()


def test_who_leaves_the_page_gives_up_the_documents(page: Page, address: str) -> None:
    at(page, address, "")
    page.route(re.compile("/api/documents/"), lambda route: route.fulfill(json={"status": "queued", "passages": 0}))
    with page.expect_response("**/api/documents") as answered:
        page.locator("#files").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"ko"})
    state = f"{address}/api/documents/{answered.value.json()['id']}"
    expect(card(page, "a.txt")).to_contain_text("waiting for its turn")
    assert httpx.get(state).status_code == 200
    page.goto(f"{address}/runs")
    assert becomes(lambda: httpx.get(state).status_code == 404)
