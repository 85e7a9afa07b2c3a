"""A running server: who may ask it, what cannot be reached through it, slow and leaving clients, and load."""

import asyncio
import base64
import json
import random
import select
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from answering import Answering, answering
from heedful.errors import InputError
from heedful.serve import server as serving
from heedful.serve.app import behind_gate, make_app, open_routes, rules_for
from heedful.serve.engine import Engine
from heedful.serve.gate import Rules
from heedful.serve.meters import Meters
from heedful.serve.opening import open_engine
from heedful.serve.server import SECONDS
from made import SYLLABLES
from waiting import PATIENCE, becomes

Tally = Callable[[str, int], None]


@pytest.fixture(scope="module")
def engines(runs: dict[str, Any]) -> Iterator[dict[str, Engine]]:
    made = {name: open_engine(runs[name], engine="own") for name in ("writer", "transformer", "tag", "label")}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def app(engines: dict[str, Engine]) -> FastAPI:
    made = make_app(engines)
    made.router.lifespan_context = unending

    async def large() -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(2000):
                yield b"x" * 65_536

        return StreamingResponse(chunks())

    made.add_api_route("/large", large)
    return made


@asynccontextmanager
async def unending(app: FastAPI) -> AsyncIterator[None]:
    """Of an application whose models are of all tests here: it does not close them."""
    yield


@pytest.fixture(scope="module")
def served(app: FastAPI) -> Iterator[Answering]:
    with answering(app) as found:
        yield found


@pytest.fixture
def port(served: Answering) -> int:
    return served.port


def raw(port: int, content: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(content)
    return made


def rest_of(one: socket.socket) -> bytes:
    """What is still to be read of a connection that the server closes."""
    found = b""
    one.settimeout(PATIENCE)
    with suppress(ConnectionError):
        while part := one.recv(1 << 20):
            found += part
    return found


def test_slow_clients_are_closed_in_time_and_hold_up_no_others(served: Answering, full: bool, tally: Tally) -> None:
    count = 90 if full else 8
    assert becomes(lambda: not served.connections)
    head = b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    kinds = (b"GET /health HT", head + b"X-A: b", head + b"Content-Length: 20\r\n\r\n{", b"")
    slow = [raw(served.port, kinds[i % len(kinds)]) for i in range(2 * count)]
    readers = [raw(served.port, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(count)]

    def all_wait() -> bool:
        connections = served.server.server_state.connections
        return len(connections) == 3 * count and sum(one.flow.write_paused for one in connections) == count

    def others_are_answered() -> None:
        with httpx.Client(base_url=f"http://localhost:{served.port}", timeout=PATIENCE) as client:
            for _ in range(10):
                assert client.post("/api/tag", json={"text": "ba"}).status_code == 200
        assert becomes(lambda: served.connections == 3 * count)

    assert becomes(lambda: served.clock.ask(all_wait))
    others_are_answered()
    served.clock.passes(0.99 * SECONDS)
    others_are_answered()
    served.clock.passes(0.01 * SECONDS)
    served.clock.passes(1.0)  # in which who sent half a body is told so
    assert becomes(lambda: not served.connections)
    told = [rest_of(one) for one in slow]
    assert [found.split(b" ")[1] if found else b"" for found in told] == [b"", b"", b"408", b""] * (count // 2)
    got = sum(len(rest_of(one)) for one in readers)  # what lay in the sockets comes, and not the whole
    assert got < 0.5 * count * 2000 * 65_536
    for one in (*slow, *readers):
        one.close()
    tally("slow clients", 3 * count)


def test_a_late_body_is_told_so_and_large_ones_are_refused(served: Answering) -> None:
    head = b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with raw(served.port, head + b"Content-Length: 20\r\n\r\n{") as one:
        assert becomes(lambda: bool(served.server.server_state.tasks))
        served.clock.passes(SECONDS + 0.5)
        one.settimeout(PATIENCE)
        assert one.recv(4096).split(b" ")[1] == b"408"
    for content, status in (
        (head + b"Content-Length: 2000000\r\n\r\n", b"413"),
        (head + b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b" " * (1 << 20) + b"\r\n1\r\n \r\n", b"413"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", b"431"),
        (b"rubbish\r\n\r\n", b"400"),
    ):
        with raw(served.port, content) as one:
            one.settimeout(PATIENCE)
            assert one.recv(4096).split(b" ")[1] == status


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"Content-Type: application/json\r\n", b"413"), (b"Host: other\r\n", b"403"), (b"", b"413")],
)
def test_who_sends_a_whole_request_first_reads_why_it_is_refused(served: Answering, head: bytes, status: bytes) -> None:
    """As a proxy does, by HTTP/1.0: it would tell of a connection that was reset. More than sockets hold is sent."""
    size = 20_000_000
    host = b"" if b"Host" in head else b"Host: localhost\r\n"
    begin = b"POST /api/tag HTTP/1.0\r\n" + host + head + b"Content-Length: %d\r\n\r\n" % size
    with raw(served.port, begin) as one:
        one.settimeout(PATIENCE)
        assert select.select([one], [], [], PATIENCE)[0]  # it is refused
        one.sendall(b" " * size)
        assert rest_of(one).split(b" ")[1] == status
    assert becomes(lambda: not served.connections)


def test_who_is_refused_and_leaves_at_once_is_forgotten(capsys) -> None:
    """While the answer is written: there is no connection any more whose half could be closed."""
    refused, left = threading.Event(), threading.Event()

    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await idle(scope, receive, send)
            return
        length = [(b"content-length", b"1"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": length})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        (connection,) = answers.server.server_state.connections
        while not connection.flow.read_paused:
            await asyncio.sleep(0)
        refused.set()
        assert left.wait(PATIENCE)  # the server does nothing else
        await send({"type": "http.response.body", "body": b""})

    idle = FastAPI()
    with answering(refusing) as answers:
        size = 200_000  # of which more than the server reads ahead comes
        one = raw(answers.port, b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (2 * size) + b" " * size)
        assert refused.wait(PATIENCE)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        one.close()
        left.set()
        assert becomes(lambda: not answers.connections)
    assert "Traceback" not in capsys.readouterr().err


def test_streams_that_are_left_stop(port: int, engines: dict[str, Engine], full: bool, tally: Tally) -> None:
    """At a random token; what is left of them is not made. The model is a few steps before who reads."""
    engine, dice, count = engines["writer"], random.Random(3), 500 if full else 8
    steps, ahead = [0], [threading.Semaphore(10)]

    def counted(*words: object) -> None:
        steps[0] += 1
        assert ahead[-1].acquire(timeout=PATIENCE)

    handle = engine.served.model.head.register_forward_hook(counted)
    left = 0
    with httpx.Client(base_url=f"http://localhost:{port}", timeout=PATIENCE) as client:
        for number in range(count):
            own = {"tokens": 4000, "sampling": {"temperature": 1.0, "seed": number}}
            with client.stream("POST", "/api/generate", json={"text": "ba", "options": own, "stream": True}) as answer:
                for _, line in zip(range(2 * dice.randrange(1, 12) - 1), answer.iter_lines(), strict=False):
                    if line.startswith("data: {"):
                        ahead[-1].release()
            assert becomes(lambda: all(text.over for text in engine._running.texts))  # the server knows
            before, left = steps[0], left + ("finish" not in line)
            ahead.append(threading.Semaphore(10))
            ahead[-2].release(10)
            assert becomes(lambda: not engine._running.texts)
            assert steps[0] <= before + 1
    before = steps[0]
    assert asyncio.run(engine.alone(lambda: steps[0])) == before
    handle.remove()
    assert left > 0.8 * count  # the others came to their ends before
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
        found = rest_of(one)
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
    app = make_app(engines)
    routes = open_routes(app)
    documented = {(kind.upper(), path) for path, kinds in app.openapi()["paths"].items() for kind in kinds}
    assert documented <= set(routes)
    assert ("DELETE", "/v2/glossaries/{glossary_id}") in routes
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


def test_it_is_the_same_below_a_path_of_another_application(engines: dict[str, Engine]) -> None:
    from fastapi.testclient import TestClient

    outer = FastAPI()
    outer.mount("/models", make_app(engines, rules=Rules(key="right")))
    client = TestClient(outer, base_url="http://localhost")
    assert client.get("/models/health").status_code == 200
    assert client.get("/models/v1/models").json()["error"]["code"] == "invalid_api_key"
    assert client.post("/models/translate", json={"api_key": "right"}).status_code == 400
    with_key = {"Authorization": "Bearer right"}
    asked = {"model": "nothing", "messages": []}
    found = client.post("/models/v1/chat/completions", json=asked, headers=with_key)
    assert (found.status_code, found.json()["error"]["type"]) == (400, "invalid_request_error")


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


def test_no_answer_holds_what_another_asked(port: int, tally: Tally) -> None:
    """Canaries: each comes back to its own client, and to no other."""
    marks = [f"canary{number:04d}x" for number in range(200)]

    async def all_of_them() -> list[str]:
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", timeout=PATIENCE) as client:

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


@pytest.mark.filterwarnings("ignore:.*the translation is empty")
def test_load(port: int, engines: dict[str, Engine], full: bool) -> None:
    """No error, and each greedy answer is the one that it gets alone; who asked while the model was at work is answered
    together."""
    dice = random.Random(5)
    texts = [" ".join(dice.choice(SYLLABLES) for _ in range(dice.randint(2, 6))) for _ in range(20)]
    greedy: dict[str, dict[str, Any]] = {
        "translate": {"decoding": {"beam": 1}},
        "generate": {"tokens": 12, "sampling": {"temperature": 0.0}},
    }
    alone = {("translate", text): engines["transformer"].served.translate(text, beam=1) for text in texts}
    for text in texts:
        alone["generate", text] = engines["writer"].served.generate(text, tokens=12, temperature=0.0)[0].text
    engine, many, times = engines["transformer"], 64, 40 if full else 2

    def counted(name: str, **more: str) -> float:
        return engine.meters.registry.get_sample_value(name, {"model": "transformer", **more}) or 0

    async def ask(asking: httpx.AsyncClient, number: int) -> None:
        verb, text = ("translate", "generate")[number % 2], texts[number * 7 % len(texts)]
        while (
            found := await asking.post(f"/api/{verb}", json={"text": text, "options": greedy[verb]})
        ).status_code == 429:
            await asyncio.sleep(0.05)
        assert found.status_code == 200, found.text
        (answer,) = found.json()["answers"]
        said = answer if verb == "translate" else answer[0]
        assert said["text"] == alone[verb, text]

    async def all_of_them() -> None:
        limits = httpx.Limits(max_connections=many, keepalive_expiry=PATIENCE)  # no time passes for the server
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", timeout=PATIENCE, limits=limits) as asking:
            begun, over = threading.Event(), threading.Event()
            held = asyncio.create_task(engine.alone(lambda: (begun.set(), over.wait(PATIENCE))))
            assert await asyncio.to_thread(begun.wait, PATIENCE)
            first = [asyncio.create_task(ask(asking, number)) for number in range(many)]
            assert await asyncio.to_thread(becomes, lambda: len(engine._jobs) == many // 2)
            over.set()
            await asyncio.gather(held, *first)
            assert counted("heed_inputs_total", verb="translate") - before == many // 2
            assert counted("heed_batch_size_count") - batches == 1
            for turn in range(1, times):
                await asyncio.gather(*(ask(asking, turn * many + number) for number in range(many)))

    before, batches = counted("heed_inputs_total", verb="translate"), counted("heed_batch_size_count")
    asyncio.run(all_of_them())
    assert counted("heed_inputs_total", verb="translate") - before == many // 2 * times


def test_who_is_not_answered_before_the_server_ends_is_told_so(monkeypatch, capsys) -> None:
    """And that is no fault of the application, whose trace nobody needs."""
    monkeypatch.setattr(serving, "DRAIN", 0.1)
    never, begun = FastAPI(), threading.Event()

    @never.get("/never")
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor() as pool:
        with answering(behind_gate(never, Rules(), Meters())) as answers:
            asked = pool.submit(httpx.get, f"http://127.0.0.1:{answers.port}/never", timeout=PATIENCE)
            assert begun.wait(PATIENCE)
        refused = asked.result()
    assert refused.status_code == 503
    assert refused.json()["error"]["message"] == "the server has ended"
    assert "Traceback" not in capsys.readouterr().err
