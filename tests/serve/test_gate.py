"""What the gate lets in."""

import asyncio
import logging
import time

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from starlette.types import Message

from heedful.errors import InputError
from heedful.serve import gate as heedful_gate
from heedful.serve.app import behind_gate, rules_for
from heedful.serve.gate import Gate, Rules
from heedful.serve.meters import Meters
from waiting import PATIENCE


def behind(rules: Rules) -> TestClient:
    app = FastAPI()

    @app.get("/picture")
    async def picture() -> str:
        return "seen"

    @app.post("/length")
    async def length(request: Request) -> int:
        return len(await request.body())

    @app.get("/broken/{name}")
    async def broken(name: str) -> None:
        raise ValueError

    return TestClient(behind_gate(app, rules, Meters()), base_url="http://localhost", raise_server_exceptions=False)


@pytest.mark.parametrize(
    "host",
    ["127.evil.example", "127.0.0.1.evil.example", "127.1", "localhost.evil.example", "127.0.0.1.", "", "1.2.3.4"],
)
def test_only_an_address_of_this_machine_needs_no_key(host: str) -> None:
    """A name that begins like one leads anywhere."""
    with pytest.raises(InputError, match="open to other machines"):
        rules_for(host, None)
    assert rules_for(host, "key").addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "0:0:0:0:0:0:0:1", "localhost", "LOCALHOST"])
def test_an_address_of_this_machine_needs_none(host: str) -> None:
    assert host.lower() in rules_for(host, None).hosts
    assert not rules_for(host, None).addresses


def test_a_page_of_another_origin_may_link_here_and_embed_nothing() -> None:
    client = behind(Rules())
    for site in ("cross-site", "same-site"):
        for mode in ("no-cors", "cors", "same-origin", "websocket"):
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
            assert client.get("/picture", headers=headers).status_code == 403
            assert client.head("/picture", headers=headers).status_code == 403
        assert client.get("/picture", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status_code == 200
    for site in ("none", "same-origin"):
        assert client.get("/picture", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}).status_code == 200


def test_control_characters_of_an_address_do_not_reach_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert behind(Rules()).get("/broken/%0d%0aERROR%20root%1b%5b31m%e2%80%ae").status_code == 500
    (told,) = [record.getMessage() for record in caplog.records if record.name == "heedful.serve"]
    assert told == r"GET '/broken/\r\nERROR root\x1b[31m\u202e' failed"


def test_the_memory_of_large_bodies_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all that come at the same time."""
    app, given_back = FastAPI(), list[float]()

    @app.post("/length")
    async def length(request: Request) -> int:
        return len(await request.body())

    monkeypatch.setattr(heedful_gate, "REST", 0.05)
    monkeypatch.setattr(heedful_gate, "give_back_memory", lambda: given_back.append(time.monotonic()))

    async def ask(client: httpx.AsyncClient, size: int) -> None:
        assert (await client.post("/length", content=b"a" * size)).json() == size

    async def all_of_them() -> None:
        gate = Gate(app, Rules(text_bytes=1 << 22), Meters())
        transport = httpx.ASGITransport(gate)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await ask(client, 1 << 20)
            await asyncio.sleep(0.2)
            assert not given_back
            for count in (1, 2):
                await asyncio.gather(*(ask(client, (1 << 20) + 1) for _ in range(3)))
                async with asyncio.timeout(PATIENCE):
                    while len(given_back) < count:
                        await asyncio.sleep(0.01)
                assert len(given_back) == count

    asyncio.run(all_of_them())


def test_a_credential_that_is_no_base64_is_none() -> None:
    for key, status in ((None, 200), ("right", 401)):
        for value in (b"Basic \xe9", b"Basic !", b"Basic /w=="):
            answer = behind(Rules(key=key)).get("/picture", headers={b"Authorization": value})
            assert answer.status_code == status


def test_all_bodies_together_have_a_limit() -> None:
    """Those that are received, and those whose answer is not complete."""
    app, asked, over = FastAPI(), list[int](), asyncio.Event()

    @app.post("/length")
    async def length(request: Request) -> int:
        asked.append(len(await request.body()))
        await over.wait()
        return asked[-1]

    gate = Gate(app, Rules(held_bytes=1000), Meters())

    async def ask(parts: list[bytes], statuses: list[int]) -> None:
        left = [*parts]

        async def receive() -> Message:
            if not left:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {"type": "http", "method": "POST", "path": "/length", "query_string": b"", "root_path": ""}
        await gate(scope | {"headers": [(b"host", b"localhost")]}, receive, send)

    async def all_of_them() -> None:
        first, second, third = list[int](), list[int](), list[int]()
        held = asyncio.create_task(ask([b"a" * 300, b"a" * 300], first))
        while not asked:
            await asyncio.sleep(0)
        await ask([b"a" * 300, b"a" * 200], second)
        assert (second, asked) == ([429], [600])
        over.set()
        await held
        await ask([b"a" * 1000], third)
        assert (first, third) == ([200], [200])

    asyncio.run(all_of_them())
