"""The page behind a proxy that serves it below a path of another: nothing that it loads or asks leaves that path."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.serve.app import make_app
from heedful.serve.ranking import make_ranking_app
from heedful.tasks.shared.ranking import Ranking
from serving import hosted, running
from waiting import becomes

PREFIX = "/lab/translate"
VIEWS = ("", "translate", "write", "chat", "pictures", "look", "runs")


def below(app: ASGIApp) -> ASGIApp:
    """As a proxy hands on what is asked below the prefix, without it; all else is not found."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(f"{PREFIX}/"):
            await PlainTextResponse("of another", status_code=404)(scope, receive, send)
            return
        path = scope.get("path", "").removeprefix(PREFIX)
        await app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    return answer


@pytest.fixture(scope="module")
def address(runs_folder: Path) -> Iterator[str]:
    with running(below(make_app(hosted(*sorted(runs_folder.iterdir())), runs=runs_folder))) as address:
        yield f"{address}{PREFIX}"


@pytest.fixture
def asked(page: Page) -> list[str]:
    """The paths of all that a page asks of its server."""
    found: list[str] = []
    page.on("request", lambda request: found.append(urlsplit(request.url).path) if request.url[:4] == "http" else None)
    return found


def settled(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_loads_its_parts_and_leads_to_the_others(
    page: Page, asked: list[str], address: str, view: str
) -> None:
    settled(page, f"{address}/{view}")
    expect(page.locator("#trouble")).to_be_hidden()
    assert f"{PREFIX}/page/page.css" in asked
    assert f"{PREFIX}/api/models" in asked or view == "runs"
    links = [urlsplit(link) for link in page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.href)")]
    assert [link.path for link in links] == [f"{PREFIX}/", *(f"{PREFIX}/{each}" for each in VIEWS)]
    assert [path for path in asked if not path.startswith(f"{PREFIX}/")] == []


def test_a_card_has_its_answer_and_links(page: Page, asked: list[str], address: str) -> None:
    page.goto(f"{address}/")
    card = page.locator(".card").filter(has=page.get_by_role("heading", name="en-fr", exact=True))
    card.get_by_role("button", name="Run").click()
    assert becomes(lambda: len(card.locator("output").inner_text()) > 1)
    card.get_by_role("link", name="Translate").click()
    page.wait_for_url(f"**{PREFIX}/translate#model=en-fr")
    page.locator("#source").fill("ko la")
    expect(page.locator("#target .said").first).to_be_visible()
    page.get_by_role("link", name="Look inside this translation").click()
    page.wait_for_url(f"**{PREFIX}/look?*")
    expect(page.locator("#inside")).to_be_visible()
    assert [path for path in asked if not path.startswith(f"{PREFIX}/")] == []


def test_a_model_is_looked_into_and_walked_through(page: Page, asked: list[str], address: str) -> None:
    page.goto(f"{address}/look")
    page.locator("#model").select_option("en-fr")
    page.locator("#text").fill("ko la")
    page.get_by_role("button", name="Look").click()
    expect(page.locator("#picture")).not_to_be_empty()
    with page.expect_response(f"**{PREFIX}/api/walk") as answered:
        page.get_by_text("Walk", exact=True).click()
    assert answered.value.ok
    page.locator("#whole summary").click()
    assert becomes(lambda: page.evaluate("document.querySelector('#whole img')?.naturalWidth ?? 0") > 0)
    assert [path for path in asked if not path.startswith(f"{PREFIX}/")] == []


def test_texts_stream_and_runs_are_read(page: Page, asked: list[str], address: str) -> None:
    settled(page, f"{address}/write")
    page.locator("#tokens").fill("3")
    page.locator("#go").click()
    expect(page.locator("#written").get_by_role("button").first).to_be_visible()
    settled(page, f"{address}/runs")
    page.locator("#list input").first.check()
    expect(page.locator("#told")).not_to_be_empty()
    assert [path for path in asked if not path.startswith(f"{PREFIX}/")] == []


def test_a_client_that_reads_the_schema_asks_below_the_path(address: str) -> None:
    (server,) = httpx.get(f"{address}/openapi.json").json()["servers"]
    asked = httpx.URL(f"{address}/openapi.json").join(f"{server['url']}/health")
    assert httpx.get(asked).json() == {"status": "ok"}


def test_answers_are_put_in_order(page: Page, asked: list[str], tmp_path: Path) -> None:
    ranking = Ranking(tmp_path / "judged.jsonl", ["first", "second"], lambda prompt: (f"{prompt} a", f"{prompt} b"))
    with running(below(make_ranking_app(ranking, "ada"))) as address:
        page.goto(f"{address}{PREFIX}/")
        expect(page.locator("#prompt")).to_have_text("first")
        page.get_by_role("button", name="Skip").click()
        expect(page.locator("#prompt")).to_have_text("second")
    assert [path for path in asked if not path.startswith(f"{PREFIX}/")] == []
