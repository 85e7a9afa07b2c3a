"""Chat, as a person in a browser finds it."""

import json
from pathlib import Path
from threading import Semaphore

import pytest
from playwright.sync_api import Page, Route, expect


def opened(page: Page, served: str, state: str = "tokens=12&temperature=1") -> None:
    page.goto(f"{served}/chat#{state}")
    page.wait_for_load_state("networkidle")


def say(page: Page, text: str) -> None:
    page.locator("#says").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#turns")).to_have_attribute("aria-busy", "false")


def test_it_answers_turn_by_turn_and_keeps_them(page: Page, served: str) -> None:
    opened(page, served)
    for number, text in enumerate(["ba de", "ko"], 1):
        say(page, text)
        expect(page.locator(".turn.user")).to_have_count(number)
        expect(page.locator(".turn.assistant .piece")).not_to_have_count(0)
    expect(page.locator(".turn .says").first).to_have_text("ba de")
    said = page.locator("#turns").inner_text()
    page.reload()
    page.wait_for_load_state("networkidle")
    assert page.locator("#turns").inner_text() == said
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)


def test_what_is_asked_is_the_whole_conversation(page: Page, served: str) -> None:
    opened(page, served)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/api/chat" in request.url else None)
    page.locator("#first summary").click()
    page.locator("#system").fill("be kind")
    say(page, "ba")
    say(page, "de")
    roles = [[message["role"] for message in json.loads(body)["messages"]] for body in asked]
    assert roles == [["system", "user"], ["system", "user", "assistant", "user"]]


def test_an_answer_can_be_stopped(page: Page, served: str, steps: Semaphore) -> None:
    opened(page, served, "tokens=60&temperature=3")
    page.locator("#says").fill("ba")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".turn.assistant .piece")).not_to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    steps.release(1000)
    page.wait_for_timeout(150)
    count = page.locator(".piece").count()
    page.wait_for_timeout(150)
    assert page.locator(".piece").count() == count < 60
    expect(page.locator("#trouble")).to_be_hidden()


def test_a_token_shows_the_likeliest_on_focus_and_on_hover(page: Page, served: str) -> None:
    opened(page, served)
    say(page, "ba de")
    pieces = page.locator(".turn.assistant .piece")
    pieces.first.focus()
    expect(page.locator("#chances .said")).to_have_count(10)
    first = page.locator("#chances").inner_text()
    page.keyboard.press("ArrowRight")
    expect(pieces.nth(1)).to_have_class("piece chosen")
    expect(page.locator("#chances")).not_to_have_text(first)
    pieces.first.hover()
    expect(pieces.first).to_have_class("piece chosen")


def test_another_token_can_be_chosen_to_go_on_from(page: Page, served: str) -> None:
    opened(page, served)
    say(page, "ba de")
    pieces = page.locator(".turn.assistant .piece")
    before = pieces.all_inner_texts()
    pieces.nth(1).focus()
    expect(page.locator("#chances .said")).to_have_count(10)
    with page.expect_request("**/api/chat") as sent:
        page.locator("#chances .said").nth(3).click()
    body = json.loads(sent.value.post_data or "")
    assert len(body["begun"]) == 2
    assert [message["role"] for message in body["messages"]] == ["user"]
    expect(page.locator("#stop")).to_be_disabled()
    expect(page.locator(".turn.assistant")).to_have_count(1)
    assert pieces.all_inner_texts()[0] == before[0]


def test_a_conversation_is_saved_as_training_reads_it(page: Page, served: str, tmp_path: Path) -> None:
    opened(page, served)
    say(page, "ba de")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save").click()
    saved.value.save_as(tmp_path / "chat.jsonl")
    (line,) = (tmp_path / "chat.jsonl").read_text().splitlines()
    roles = [message["role"] for message in json.loads(line)["messages"]]
    assert roles == ["user", "assistant"]


def test_what_goes_wrong_is_told_and_the_turn_is_no_answer(page: Page, served: str) -> None:
    opened(page, served)
    page.on("console", lambda said: None)
    page.route("**/api/chat", lambda route: route.fulfill(status=200, body='data: {"error": {"message": "busy"}}\n\n'))
    say(page, "ba")
    expect(page.locator("#trouble")).to_contain_text("busy")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#says")).to_have_value("ba")


def test_an_answer_that_is_given_up_before_its_first_token_is_not_sent(page: Page, served: str) -> None:
    opened(page, served)
    held: list[Route] = []
    page.route("**/api/chat", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/api/chat"):
        page.locator("#says").fill("ba")
        page.keyboard.press("Enter")
    with page.expect_request("**/api/chat") as asked:
        page.locator("#says").fill("de")
        page.keyboard.press("Enter")
    said = [(turn["role"], turn["content"]) for turn in asked.value.post_data_json["messages"]]
    assert said == [("user", "ba"), ("user", "de")]
    expect(page.locator("#turns")).to_have_attribute("aria-busy", "false")


@pytest.mark.parametrize("cut", ["before", "within"])
def test_a_server_that_is_gone_is_told_so(loose: Page, served: str, cut: str) -> None:
    opened(loose, served)
    piece = f"data: {json.dumps({'text': 'ko', 'token': 5, 'logprob': -1.0})}\n\n"
    if cut == "within":
        loose.route("**/api/chat", lambda route: route.fulfill(status=200, body=piece))
    else:
        loose.route("**/api/chat", lambda route: route.abort("connectionrefused"))
    say(loose, "ba")
    expect(loose.locator("#trouble")).to_have_text("The server does not answer: is it still running?")
    expect(loose.locator(".turn.assistant .piece")).to_have_count(1 if cut == "within" else 0)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<EOQ> </s>", "שלום"])
def test_whatever_is_said_is_text(page: Page, served: str, text: str) -> None:
    opened(page, served)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    piece = {"text": text, "token": 5, "logprob": -1.0}
    body = f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n"
    page.route("**/api/chat", lambda route: route.fulfill(status=200, body=body))
    say(page, text)
    expect(page.locator(".turn.assistant .piece")).to_have_text(text)
    expect(page.locator(".turn.user .says")).to_have_text(text)
    assert page.locator("#turns script, #turns img").count() == 0
