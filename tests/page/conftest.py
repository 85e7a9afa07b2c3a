"""A browser, and a server of tiny models for it. A page that logs an error, or asks another machine, fails its test.

Where there is no Chromium the tests of this folder are not run, and the end of the report says so.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from heedful.models.lm import LM
from heedful.serve.app import make_app
from serving import chat_model, hosted, language_model, running, translator
from waiting import PATIENCE

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
]
expect.set_options(timeout=30_000)  # milliseconds, as for all else that a page is waited for
NAMES = ("rnn", "fill", "label", "labels", "detect", "match")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        here = Path(__file__).parent
        for item in items:
            if here in Path(item.path).parents:
                item.add_marker(pytest.mark.skip(reason="no Chromium on this machine: apt-get install chromium"))


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Path]) -> Path:
    """Tiny models: "en-fr" and "writer" say anything, the others have learnt nearly nothing."""
    folder = tmp_path_factory.mktemp("page") / "runs"
    translator(folder / "en-fr", "en", "fr")
    language_model(folder / "writer", context=48)
    chat_model(folder / "talker", context=96)
    for name in NAMES:
        shutil.copytree(run_of(name), folder / name)
    return folder


@pytest.fixture(scope="session")
def served(runs_folder: Path) -> Iterator[str]:
    """The address of a server of them."""
    with running(make_app(hosted(*sorted(runs_folder.iterdir())), runs=runs_folder)) as address:
        yield address


@pytest.fixture(scope="module")  # it runs an event loop, and tests of other modules have their own
def browser() -> Iterator[Browser]:
    environment: dict[str, Any] = {**os.environ, "HOME": "/nonexistent"}
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, env=environment)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    made = context.new_page()
    wrong: list[str] = []
    made.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("request", lambda asked: wrong.append(asked.url) if _leaves(asked.url) else None)
    yield made
    context.close()
    assert wrong == []


@pytest.fixture
def loose(browser: Browser) -> Iterator[Page]:
    """A page that may log errors, and into which axe may put its script."""
    context = browser.new_context(bypass_csp=True)
    yield context.new_page()
    context.close()


@pytest.fixture
def accessible() -> Callable[[Page], None]:
    """Fails where axe finds something serious in a page, in light or in dark."""

    def check(page: Page) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], scheme

    return check


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Language models make a few steps, and stand still until more are released."""
    step, left = LM.step, threading.Semaphore(20)

    def paced(model: LM, *given: Any) -> Any:
        left.acquire(timeout=PATIENCE)
        return step(model, *given)

    monkeypatch.setattr(LM, "step", paced)
    yield left
    left.release(10_000)


def _leaves(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and parts.hostname not in ("127.0.0.1", "localhost")
