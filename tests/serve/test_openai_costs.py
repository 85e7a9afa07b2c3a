"""What one request of OpenAI's protocol may cost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from heedful.serve import budget, continued
from heedful.serve.app import make_app
from heedful.serve.engine import Engine
from heedful.serve.limits import Limits
from heedful.serve.opening import open_engine
from serving import chat_model, language_model

TALK = [{"role": "user", "content": "ba de"}]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    folder: Path = tmp_path_factory.mktemp("runs")
    limits = Limits(tokens=60)
    made = {
        run.name: open_engine(run, limits=limits)
        for run in (language_model(folder / "lm"), chat_model(folder / "talker"))
    }
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture(scope="module")
def server(engines: dict[str, Engine]) -> TestClient:
    return TestClient(make_app(engines), base_url="http://localhost", raise_server_exceptions=False)


def ask(server: TestClient, name: str, **body: Any) -> httpx.Response:
    if name == "lm":
        return server.post("/v1/completions", json={"model": "lm", "prompt": "ba"} | body)
    return server.post("/v1/chat/completions", json={"model": "talker", "messages": TALK} | body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["lm", "talker"])
def test_all_texts_of_a_request_have_a_budget(
    server: TestClient, engines: dict[str, Engine], monkeypatch: pytest.MonkeyPatch, name: str, stream: bool
) -> None:
    assert ask(server, name, n=6, max_tokens=10, stream=stream).status_code == 200
    monkeypatch.setattr(Engine, "write", lambda *_: pytest.fail("it is written"))
    answer = ask(server, name, n=7, max_tokens=10, stream=stream)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"].startswith("up to 70 new tokens, at most 60 in one request")


@pytest.mark.parametrize("name", ["lm", "talker"])
def test_a_whole_answer_has_an_end(server: TestClient, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(budget, "WHOLE", 0.0)
    answer = ask(server, name, n=6, max_tokens=10)
    assert answer.status_code == 504
    assert "had not ended its answer within 0 s" in answer.json()["error"]["message"]
    assert ask(server, name, n=1, max_tokens=2, stream=True).status_code == 200


@pytest.mark.parametrize(
    ("name", "asked"), [("lm", {"logprobs": 5}), ("talker", {"logprobs": True, "top_logprobs": 5})]
)
def test_log_probabilities_are_named_in_another_thread(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, name: str, asked: dict[str, Any]
) -> None:
    """So that others are answered meanwhile; and each of the likeliest tokens once."""
    texts_of, alone = continued._texts, list[int]()

    def noted(served: Any, ids: list[int], first: int = 0) -> list[str]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        alone.extend(ids if len(ids) == 1 else [])
        return texts_of(served, ids, first)

    monkeypatch.setattr(continued, "_texts", noted)
    answer = ask(server, name, max_tokens=20, temperature=0, **asked)
    assert answer.status_code == 200
    assert len(alone) == len({*alone}) > 5


@pytest.mark.parametrize("name", ["lm", "talker"])
def test_long_texts_are_read_with_what_is_dear(
    server: TestClient, engines: dict[str, Engine], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sizes, alone = list[int](), Engine.alone

    async def noted(self: Engine, work: Any, *, size: int = 0) -> Any:
        sizes.append(size)
        return await alone(self, work, size=size)

    monkeypatch.setattr(Engine, "alone", noted)
    text = "ba de " * 50
    ask(
        server,
        name,
        max_tokens=2,
        **({"prompt": text} if name == "lm" else {"messages": [TALK[0] | {"content": text}]}),
    )
    assert sizes == [len(text)]


@pytest.mark.parametrize("stop", [["a"] * 17, ["a" * 201]])
@pytest.mark.parametrize(("route", "name"), [("generate", "lm"), ("chat", "talker")])
def test_stops_of_our_own_routes_have_the_same_bounds(
    server: TestClient, route: str, name: str, stop: list[str]
) -> None:
    for given, status in ((stop, 422), ([stop[0][:200]] * min(16, len(stop)), 200)):
        body = {"model": name, "text": "ba", "options": {"tokens": 2, "stop": given}}
        assert server.post(f"/api/{route}", json=body).status_code == status
