"""A running server: who may ask it, what cannot be reached through it, slow and leaving clients, and load."""

import asyncio
import base64
import json
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from heedful.errors import InputError
from heedful.serve.app import make_app, open_routes, rules_for
from heedful.serve.engine import Engine, open_engine
from heedful.serve.gate import Rules
from heedful.serve.server import make_server
from made import SYLLABLES

Tally = Callable[[str, int], None]
PATIENCE = 0.6  # seconds


@contextmanager
def answering(app: FastAPI, *, seconds: float = 10.0) -> Iterator[int]:
    """The port of a server of the application, which ends with the block."""
    listening, ready = socket.socket(), threading.Event()
    listening.bind(("127.0.0.1", 0))
    server = make_server(app, ready=ready.set, seconds=seconds)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    assert ready.wait(10)
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def engines(runs: dict[str, Any]) -> Iterator[dict[str, Engine]]:
    made = {name: open_engine(runs[name], engine="own") for name in ("writer", "transformer", "tag", "label")}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def app(engines: dict[str, Engine]) -> FastAPI:
    made = make_app(engines, rules=Rules(seconds=PATIENCE))
    made.router.lifespan_context = unending

    async def large() -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(2000):
                yield b"x" * 65_536

        return StreamingResponse(chunks())

    made.add_api_route("/large", large)
    return made


@pytest.fixture(scope="module")
def usual(engines: dict[str, Engine]) -> Iterator[int]:
    """The port of a server of the same models with the patience that it has for anybody."""
    made = make_app(engines)
    made.router.lifespan_context = unending
    with answering(made) as found:
        yield found


@asynccontextmanager
async def unending(app: FastAPI) -> AsyncIterator[None]:
    """Of an application whose models are of all tests here: it does not close them."""
    yield


@pytest.fixture(scope="module")
def port(app: FastAPI) -> Iterator[int]:
    with answering(app, seconds=PATIENCE) as found:
        yield found


def raw(port: int, content: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(content)
    return made


def is_closed(one: socket.socket, until: float) -> bool:
    """Whether the server has closed it by this time; what it sent is read."""
    while (left := until - time.monotonic()) > 0:
        one.settimeout(left)
        try:
            if not one.recv(1 << 20):
                return True
        except TimeoutError:
            return False
        except OSError:
            return True
    return False


def test_slow_clients_are_closed_in_time_and_hold_up_no_others(port: int, full: bool, tally: Tally) -> None:
    count = 90 if full else 8
    head = b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    kinds = (b"GET /health HT", head + b"X-A: b", head + b"Content-Length: 20\r\n\r\n{", b"")
    slow = [raw(port, kinds[i % len(kinds)]) for i in range(2 * count)]
    readers = [raw(port, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(count)]
    begun = time.monotonic()
    with httpx.Client(base_url=f"http://localhost:{port}") as client:
        times = []
        while len(times) < 10 or time.monotonic() - begun < 0.8 * PATIENCE:
            before = time.monotonic()
            assert client.post("/api/tag", json={"text": "ba"}).status_code == 200
            times.append(time.monotonic() - before)
    assert sorted(times)[len(times) // 2] < PATIENCE / 2
    until = time.monotonic() + PATIENCE + 5
    assert all(is_closed(one, until) for one in slow)
    time.sleep(max(0.0, begun + PATIENCE + 1.5 - time.monotonic()))
    got = 0
    for one in readers:  # what lay in the sockets comes, and not the whole
        with suppress(OSError):
            one.settimeout(5)
            while part := one.recv(1 << 20):
                got += len(part)
    assert got < 0.5 * count * 2000 * 65_536
    for one in (*slow, *readers):
        one.close()
    tally("slow clients", 3 * count)


def test_a_late_body_is_told_so_and_large_ones_are_refused(port: int) -> None:
    head = b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for content, status in (
        (head + b"Content-Length: 20\r\n\r\n{", b"408"),
        (head + b"Content-Length: 2000000\r\n\r\n", b"413"),
        (head + b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b" " * (1 << 20) + b"\r\n1\r\n \r\n", b"413"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", b"431"),
        (b"rubbish\r\n\r\n", b"400"),
    ):
        with raw(port, content) as one:
            one.settimeout(5)
            assert one.recv(4096).split(b" ")[1] == status


def test_streams_that_are_left_stop(port: int, engines: dict[str, Engine], full: bool, tally: Tally) -> None:
    """At a random token; what is left of them is not made."""
    engine, dice, steps, count = engines["writer"], random.Random(3), [0], 500 if full else 8

    def counted(*words: object) -> None:
        steps[0] += 1
        time.sleep(0.002)  # a model that takes its time

    handle = engine.served.model.head.register_forward_hook(counted)
    options = {"tokens": 4000, "sampling": {"temperature": 1.0}}
    made = 0
    with httpx.Client(base_url=f"http://localhost:{port}") as client:
        for number in range(count):
            own = {**options, "sampling": {"temperature": 1.0, "seed": number}}
            with client.stream("POST", "/api/generate", json={"text": "ba", "options": own, "stream": True}) as answer:
                wanted = dice.randrange(1, 12)
                for _, line in zip(range(2 * wanted), answer.iter_lines(), strict=False):
                    made += line.startswith("data: {")
    until = time.monotonic() + 5
    while engine._writing and time.monotonic() < until:
        time.sleep(0.005)
    assert not engine._writing
    before = steps[0]
    time.sleep(0.05)
    handle.remove()
    assert steps[0] == before
    assert steps[0] < made + 40 * count  # what was sent before the client's leaving was seen
    tally("cancelled streams", count)


ELSEWHERE = [
    "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/api/../../../etc/passwd",
    "/api/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd", "/....//....//etc/passwd", "/..\\..\\etc\\passwd",
    "/static/../../etc/passwd", "/page/..%2f..%2fpyproject.toml", "/api/runs/..%2f..%2fetc", "/runs/../../etc/passwd",
    "/%00/etc/passwd", "/api/tag%00", "/openapi.json/../../etc/passwd", "/api/translate/../../etc/passwd",
    "/%c0%ae%c0%ae/etc/passwd", "/..;/etc/passwd", "/file:///etc/passwd",
]  # fmt: skip
NAMES = [
    "../label",
    "/etc/passwd",
    "..",
    ".",
    "~",
    "tag/../label",
    "tag\x00",
    "TAG",
    "file:///etc",
    "%2e%2e",
    " tag",
    "",
]
STRANGE = [
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8765", "10.0.0.1", "0.0.0.0",
    "[::2]", "user@localhost", "localhost@evil.example", "evil.example#localhost", "", "169.254.169.254",
]  # fmt: skip
ORIGINS = [
    "null", "http://evil.example", "https://evil.example", "http://localhost.evil.example", "http://localhost",
    "http://localhost:1", "http://127.0.0.1:{port}", "file://", "http://[::1]:{port}", "chrome-extension://abc",
    "http://localhost:{port}.evil", "ftp://localhost:{port}",
]  # fmt: skip


def answer_to(port: int, head: str, body: bytes = b"") -> tuple[int, bytes]:
    with raw(port, head.encode("utf-8") + b"\r\n\r\n" + body) as one:
        one.settimeout(5)
        found = b""
        with suppress(OSError):
            while part := one.recv(65_536):
                found += part
    return int(found.split(b" ", 2)[1]), found


def test_nothing_outside_is_reached(port: int, tally: Tally) -> None:
    count = 0
    for path in ELSEWHERE:
        for method in ("GET", "POST"):
            status, found = answer_to(port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close")
            assert 400 <= status < 500, path
            assert b"root:" not in found
            assert b"Traceback" not in found
            count += 1
    with httpx.Client(base_url=f"http://localhost:{port}") as client:
        for name in (*NAMES, *(f"{name}/config.json" for name in NAMES)):
            found = client.post("/api/tag", json={"text": "ba", "model": name})
            assert found.status_code == 404, name
            count += 1
    assert count >= 60
    tally("traversal", count)


def test_foreign_hosts_and_origins_are_refused(port: int, tally: Tally) -> None:
    body = json.dumps({"text": "ba"}).encode()
    sent = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
    for host in STRANGE:
        for head in ("GET /health HTTP/1.1", "POST /api/tag HTTP/1.1"):
            status, _ = answer_to(port, f"{head}\r\nHost: {host}\r\n{sent}", body)
            assert status in (400, 403), host
    own = f"POST /api/tag HTTP/1.1\r\nHost: localhost:{port}\r\n{sent}\r\n"
    for origin in ORIGINS:
        assert answer_to(port, f"{own}Origin: {origin.format(port=port)}", body)[0] == 403, origin
    for site in ("cross-site", "same-site"):
        assert answer_to(port, f"{own}Sec-Fetch-Site: {site}", body)[0] == 403
    assert answer_to(port, f"{own}Origin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin", body)[0] == 200
    for host in ("localhost", "127.0.0.1", "[::1]:9", "LOCALHOST:80"):
        assert answer_to(port, f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close")[0] == 200
    tally("foreign hosts and origins", 2 * len(STRANGE) + len(ORIGINS) + 2)


def test_every_answer_has_the_headers_of_a_page_that_runs_nothing_from_outside(port: int) -> None:
    with httpx.Client(base_url=f"http://localhost:{port}") as client:
        for found in (client.get("/health"), client.get("/nowhere"), client.put("/api/tag"), client.post("/api/tag")):
            assert "script-src 'self'" in found.headers["content-security-policy"]
            assert found.headers["x-content-type-options"] == "nosniff"
            assert "server" not in found.headers
        assert (client.get("/nowhere").status_code, client.put("/api/tag").status_code) == (404, 405)
        for path in ("/", "/health", "/v1/models", "/nowhere"):  # what asks whether a server is up
            get, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (get.status_code, b"")
            assert head.headers["content-length"] == str(len(get.content))


def test_every_route_needs_the_key(engines: dict[str, Engine]) -> None:
    """All that the application has, as it lists them itself."""
    from fastapi.testclient import TestClient

    client = TestClient(make_app(engines, rules=Rules(key="right")), base_url="http://localhost")
    routes = open_routes(make_app(engines))
    assert len(routes) > 8
    basic = base64.b64encode(b"anyone:right").decode()
    for method, path in routes:
        path = path.replace("{", "").replace("}", "")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer"}, {"Authorization": "right"}):
            found = client.request(method, path, headers=headers)
            assert found.status_code == (200 if path == "/health" else found.status_code)
            assert path == "/health" or found.status_code in (401, 403), (method, path)
        for given in ("Bearer right", "bearer right", "DeepL-Auth-Key right", f"Basic {basic}"):
            assert client.request(method, path, headers={"Authorization": given}).status_code not in (401, 403)
    assert client.get("/nowhere").status_code == 401
    key = {"api_key": "right"}
    for body in ({"json": key}, {"data": key}, {"files": {"api_key": (None, "right")}}):
        assert client.post("/translate", **body).status_code in (404, 422, 400)
    assert client.post("/translate", files={"api_key": (None, "wrong")}).status_code == 403
    assert client.post("/translate", files={"api_key": ("name", "right")}).status_code == 403
    wrong = client.post("/translate", json={"api_key": "wrong"})
    assert (wrong.status_code, set(wrong.json())) == (403, {"error"})
    assert isinstance(wrong.json()["error"], str)
    assert client.post("/v2/translate").json().keys() == {"message"}
    assert client.get("/v1/models").json()["error"]["code"] == "invalid_api_key"


def test_other_machines_are_let_in_with_a_key_alone() -> None:
    for host in ("0.0.0.0", "::", "192.168.0.7", "example.org"):
        with pytest.raises(InputError, match="open to other machines"):
            rules_for(host, None)
        assert rules_for(host, "key").addresses
    assert not rules_for("127.0.0.1", None).addresses
    assert "127.0.0.2" in rules_for("127.0.0.2", None).hosts


def test_a_proxy_hands_on_what_is_asked_of_its_names(engines: dict[str, Engine]) -> None:
    from fastapi.testclient import TestClient

    rules = rules_for("127.0.0.1", "right", ["Models.Example.org"])
    assert not rules.addresses
    client = TestClient(make_app(engines, rules=rules), base_url="http://models.example.org")
    key = {"Authorization": "Bearer right"}
    assert client.get("/ready").status_code == 401
    assert client.get("/ready", headers=key).status_code == 200
    assert client.get("/ready", headers=key | {"Host": "other.example.org"}).status_code == 403
    forwarded = {
        "X-Forwarded-Host": "localhost",
        "X-Forwarded-For": "127.0.0.1",
        "Forwarded": "for=127.0.0.1;host=localhost",
    }
    assert client.get("/ready", headers=key | {"Host": "other.example.org"} | forwarded).status_code == 403
    assert client.get("/ready", headers=forwarded).status_code == 401
    page = key | {"Origin": "https://models.example.org", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/tag", json={"text": "ba"}, headers=page).status_code == 200
    assert client.post("/api/tag", json={"text": "ba"}, headers=page | {"Host": "localhost"}).status_code == 403
    with pytest.raises(InputError, match=r"--name: models\.example\.org is open to other machines"):
        rules_for("127.0.0.1", None, ["models.example.org"])
    for wrong in ("https://models.example.org", "models.example.org:443", "*.example.org", "", "a b", "[::1]"):
        with pytest.raises(InputError, match=r"--name: .* is not the name of a host"):
            rules_for("127.0.0.1", "right", [wrong])


def test_a_fault_of_ours_is_one_line(engines: dict[str, Engine], caplog: pytest.LogCaptureFixture) -> None:
    from fastapi.testclient import TestClient

    app = make_app(engines)

    async def broken() -> None:
        raise ValueError("a secret")

    app.add_api_route("/broken", broken)
    found = TestClient(app, base_url="http://localhost").get("/broken")
    assert found.status_code == 500
    assert found.json() == {"error": {"message": "this request failed", "fix": None, "type": "internal"}}
    assert "a secret" in caplog.text


def test_no_answer_holds_what_another_asked(usual: int, tally: Tally) -> None:
    """Canaries: each comes back to its own client, and to no other."""
    marks = [f"canary{number:04d}x" for number in range(200)]

    async def all_of_them() -> list[str]:
        async with httpx.AsyncClient(base_url=f"http://localhost:{usual}", timeout=60) as client:

            async def ask(number: int, mark: str) -> str:
                verb = ("tag", "classify", "translate", "generate")[number % 4]
                options = (
                    {"tokens": 5} if verb == "generate" else {"decoding": {"beam": 1}} if verb == "translate" else {}
                )
                answer = await client.post(f"/api/{verb}", json={"text": f"ba {mark}", "options": options})
                assert answer.status_code == 200, answer.text
                return answer.text

            return await asyncio.gather(*(ask(number, mark) for number, mark in enumerate(marks)))

    for own, found in zip(marks, asyncio.run(all_of_them()), strict=True):
        heard = [mark for mark in marks if mark in found]
        assert set(heard) <= {own}
        assert own in found or "tags" in found
    tally("canaries", len(marks))


def test_load(usual: int, engines: dict[str, Engine], full: bool) -> None:
    """No error, and each greedy answer is the one that it gets alone."""
    dice = random.Random(5)
    texts = [" ".join(dice.choice(SYLLABLES) for _ in range(dice.randint(1, 6))) for _ in range(20)]
    greedy: dict[str, dict[str, Any]] = {
        "translate": {"decoding": {"beam": 1}},
        "generate": {"tokens": 12, "sampling": {"temperature": 0.0}},
    }
    alone = {("translate", text): engines["transformer"].served.translate(text, beam=1) for text in texts}
    for text in texts:
        alone["generate", text] = engines["writer"].served.generate(text, tokens=12, temperature=0.0)[0].text
    busy, right = [0], [0]

    async def client(asking: httpx.AsyncClient, number: int, until: float) -> None:
        while time.monotonic() < until:
            verb = ("translate", "generate")[number % 2]
            text = texts[(number * 7 + right[0]) % len(texts)]
            found = await asking.post(f"/api/{verb}", json={"text": text, "options": greedy[verb]})
            if found.status_code == 429:
                busy[0] += 1
                await asyncio.sleep(0.05)
                continue
            assert found.status_code == 200, found.text
            (answer,) = found.json()["answers"]
            said = answer if verb == "translate" else answer[0]
            assert said["text"] == alone[verb, text]
            right[0] += 1

    async def all_of_them() -> None:
        limits = httpx.Limits(max_connections=64, keepalive_expiry=2)  # before the server closes what is idle
        async with httpx.AsyncClient(base_url=f"http://localhost:{usual}", timeout=60, limits=limits) as asking:
            until = time.monotonic() + (60 if full else 1.5)
            await asyncio.gather(*(client(asking, number, until) for number in range(64)))

    asyncio.run(all_of_them())
    assert right[0] >= 64
    sizes = engines["transformer"].meters.registry
    answered = sizes.get_sample_value("heed_inputs_total", {"model": "transformer", "verb": "translate"}) or 0
    batches = sizes.get_sample_value("heed_batch_size_count", {"model": "transformer"}) or 0
    assert answered > 2 * batches
