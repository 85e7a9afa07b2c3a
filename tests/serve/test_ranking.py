"""The routes behind the page on which answers are put in order."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.data.text.judgements import conversation, judgements_in
from heedful.serve.ranking import make_ranking_app
from heedful.tasks.shared.ranking import Ranking
from serving import running

PROMPTS = ["<b>Ba", conversation([("user", "De")])]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


@pytest.fixture
def client(out: Path) -> Iterator[httpx.Client]:
    ranking = Ranking(out, PROMPTS, lambda prompt: ("a", "b", "c"))
    with running(make_ranking_app(ranking, "ada")) as address, httpx.Client(base_url=address) as client:
        yield client


def decided(asked: Any, order: list[list[int]]) -> dict[str, Any]:
    return {"who": asked["who"], "prompt": asked["prompt"], "candidates": asked["candidates"], "order": order}


def test_it_asks_and_keeps(client: httpx.Client, out: Path) -> None:
    asked = client.get("/rank/next", params={"who": "ada"}).json()
    assert asked["prompt"] == "<b>Ba"
    assert (asked["done"], asked["prompts"], asked["over"]) == (0, 2, False)
    second = client.post("/rank/judge", json=decided(asked, [[2], [0, 1]])).json()
    assert second["shown"] == [{"role": "user", "content": "De"}]
    assert judgements_in(out)[0].order == ((2,), (0, 1))
    over = client.post("/rank/judge", json=decided(second, [])).json()
    assert over["over"]
    assert over["done"] == 2
    assert client.post("/rank/undo", json={"who": "ada"}).json()["prompt"] == second["prompt"]
    assert len(judgements_in(out)) == 1
    assert client.get("/rank/next", params={"who": "bo"}).json()["done"] == 0


def test_what_cannot_be_is_refused(client: httpx.Client, out: Path) -> None:
    asked = client.get("/rank/next", params={"who": "ada"}).json()
    assert client.post("/rank/judge", json=decided(asked, [[7]])).status_code == 400
    assert client.post("/rank/judge", json=decided(asked, [[0], [0]])).status_code == 400
    assert client.post("/rank/judge", json=decided(asked, [["0"]])).status_code == 422
    assert client.post("/rank/judge", json={"who": "ada"}).status_code == 422
    assert client.post("/rank/judge", json=decided(asked | {"prompt": "another"}, [[0]])).status_code == 409
    assert client.post("/rank/undo", json={"who": "ada"}).status_code == 409
    assert client.get("/page/..%2franking.py").status_code == 404
    assert not out.exists()


def test_what_is_sent_twice_at_once_is_kept_once(
    client: httpx.Client, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a button that is pressed twice."""
    asked = client.get("/rank/next", params={"who": "ada"}).json()
    both, judge = threading.Barrier(2), Ranking.judge

    def slowly(*words: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        judge(*words)

    monkeypatch.setattr(Ranking, "judge", slowly)
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(lambda _: client.post("/rank/judge", json=decided(asked, [[0]])).status_code, range(2))]
    assert sorted(found) == [200, 409]
    assert len(judgements_in(out)) == 1


def test_it_is_behind_the_gate(client: httpx.Client) -> None:
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "<script>" not in page.text
    assert client.get("/", headers={"Host": "elsewhere.example"}).status_code >= 400
    asked = client.get("/rank/next", params={"who": "ada"}).json()
    stranger = {"Origin": "http://elsewhere.example"}
    assert client.post("/rank/judge", json=decided(asked, [[0]]), headers=stranger).status_code == 403
