"""Sounds in a browser: files, and what the microphone hears, are written down or classified."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cases import SOUNDS
from heedful.serve.app import make_app
from serving import hosted, opened, running

MODELS = ("sounds", "transcribe")


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Path]) -> Iterator[str]:
    """The address of a server of models that hear."""
    folder = tmp_path_factory.mktemp("hearing") / "runs"
    for name in MODELS:
        shutil.copytree(run_of(name), folder / name)
    with running(make_app(hosted(*sorted(folder.iterdir())), runs=folder)) as address:
        yield address


@pytest.mark.parametrize("model", MODELS)
def test_files_are_heard(page: Page, hearing: str, model: str, run_of: Callable[[str], Path]) -> None:
    page.goto(f"{hearing}/sounds#model={model}")
    page.locator("#files").set_input_files(SOUNDS)
    cards = page.locator(".card")
    expect(cards.locator("h2")).to_have_text([Path(file).name for file in SOUNDS])
    if model == "transcribe":
        text = opened(run_of(model)).transcribe(SOUNDS[0]).text
        expect(cards.first.locator(".written")).to_have_text(text or "Nothing is said.")
    else:
        label, _ = opened(run_of(model)).classify(SOUNDS[0])[0]
        expect(cards.first.locator(".written")).to_contain_text(label)
    cards.first.locator("summary").click()
    expect(cards.first.locator("table.twin")).to_be_visible()


def test_the_microphone_is_heard(page: Page, hearing: str) -> None:
    """The browser's own pretended one, which beeps."""
    page.context.grant_permissions(["microphone"], origin=hearing)
    page.goto(f"{hearing}/sounds#model=transcribe")
    page.get_by_role("button", name="Record", exact=True).click()
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_enabled()
    page.wait_for_timeout(1500)  # of beeps
    with page.expect_response("**/api/transcribe") as told:
        stop.click()
    (answer,) = told.value.json()["answers"]
    assert answer["seconds"] > 0.3
    assert answer["segments"]  # of silence there are none
    expect(page.locator(".card h2")).to_have_text(["recording.wav"])
    expect(page.get_by_role("button", name="Record", exact=True)).to_be_enabled()


def test_a_refusal_is_said(loose: Page, hearing: str) -> None:
    """Of the microphone, and of a file that is no sound."""
    loose.goto(f"{hearing}/sounds#model=transcribe")
    loose.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { throw new Error('it is not given'); }; }"
    )
    loose.get_by_role("button", name="Record", exact=True).click()
    expect(loose.locator("#trouble")).to_have_text("it is not given")
    expect(loose.get_by_role("button", name="Record", exact=True)).to_be_enabled()
    loose.locator("#files").set_input_files({"name": "x.wav", "mimeType": "audio/wav", "buffer": b"RIFFnothing"})
    expect(loose.locator("#trouble")).to_contain_text("not a file of sound")


def test_the_page_is_accessible(loose: Page, accessible: Callable[[Page], None], hearing: str) -> None:
    loose.goto(f"{hearing}/sounds#model=sounds")
    loose.locator("#files").set_input_files(SOUNDS)
    expect(loose.locator(".card")).to_have_count(len(SOUNDS))
    accessible(loose)
