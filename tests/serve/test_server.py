"""Connections that are never used to the end, and requests as only parsers of HTTP see them."""

import json
import random
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from answering import Answering, answering
from heedful.serve import server as serving
from heedful.serve.app import behind_gate
from heedful.serve.gate import Rules
from heedful.serve.meters import Meters
from heedful.serve.server import HEADER_BYTES, PIPELINED, SECONDS
from waiting import PATIENCE, becomes

Tally = Callable[[str, int], None]
KEY = "right"
HOST = b"Host: localhost\r\n"
POST = b"POST /echo HTTP/1.1\r\n" + HOST + b"Authorization: Bearer right\r\n"
GET = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
LAST = GET.replace(HOST, HOST + b"Connection: close\r\n")
CHUNKED = b"Transfer-Encoding: chunked\r\n"
OPEN = b"POST /echo HTTP/1.1\r\nHost: other\r\nContent-Length: 9\r\n\r\n"  # it is refused before its body comes


def echoing() -> FastAPI:
    """An application that tells what it has got."""
    app = FastAPI()

    @app.get("/health")
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/large")
    async def large() -> JSONResponse:
        return JSONResponse("x" * 10_000_000)

    @app.post("/echo")
    async def echo(request: Request) -> JSONResponse:
        body = (await request.body()).decode()
        return JSONResponse({"body": body, "headers": [key for key, _ in request.headers.items()]})

    return behind_gate(app, Rules(key=KEY), Meters())


@pytest.fixture
def served() -> Iterator[Answering]:
    with answering(echoing()) as found:
        yield found


def connected(port: int, content: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.settimeout(PATIENCE)
    made.sendall(content)
    return made


def rest_of(one: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionError):
        while part := one.recv(1 << 20):
            found += part
    return found


def answers_in(found: bytes) -> list[tuple[int, str]]:
    """The statuses and bodies of what came over one connection."""
    made = []
    while found:
        head, _, rest = found.partition(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
        made.append((int(head.split(b" ")[1]), rest[:length].decode()))
        found = rest[length:]
    return made


def asked(port: int, content: bytes) -> list[tuple[int, str]]:
    with connected(port, content) as one:
        return answers_in(rest_of(one))


# What a client sends first, and what it may add again and again without ever ending its request.
NEVER_ENDING: dict[str, tuple[bytes, bytes]] = {
    "silent": (b"", b""),
    "empty lines before a request": (b"\r\n", b"\r\n"),
    "half a line": (b"GET /hea", b"a"),
    "half a header": (b"GET /health HTTP/1.1\r\nX: a", b"a"),
    "headers": (b"GET /health HTTP/1.1\r\n" + HOST, b"X: a\r\n"),
    "half a body": (POST + b"Content-Length: 99\r\n\r\n", b"a"),
    "a body that was to be asked for": (POST + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n", b""),
    "half the length of a chunk": (POST + CHUNKED + b"\r\n", b"0"),
    "an extension of a chunk": (POST + CHUNKED + b"\r\n1;", b"a"),
    "half a chunk": (POST + CHUNKED + b"\r\n99\r\n", b"a"),
    "chunks": (POST + CHUNKED + b"\r\n", b"1\r\na\r\n"),
    "half a trailer": (POST + CHUNKED + b"\r\n0\r\n", b"a"),
    "trailers": (POST + CHUNKED + b"\r\n0\r\n", b"a: b\r\n"),
    "idle after an answer": (GET, b""),
    "empty lines after an answer": (GET + b"\r\n", b"\r\n"),
    "half a request after an answer": (GET + b"GET /health HT", b"T"),
    "half a body after a refusal": (OPEN, b""),
    "empty lines after a refusal": (OPEN + b"a" * 9, b"\r\n"),
    "another protocol": (POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 99\r\n\r\n", b"a"),
    "an answer that is not read": (b"GET /large HTTP/1.1\r\n" + HOST + b"Authorization: Bearer right\r\n\r\n", b""),
}


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process holds both ends of each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_that_never_end_are_closed_in_time(many_files: None, full: bool, tally: Tally) -> None:
    each = 50 if full else 2
    kinds = [*NEVER_ENDING.values()] * each
    with ExitStack() as held, answering(echoing()) as served:
        ones = [held.enter_context(connected(served.port, begin)) for begin, _ in kinds]
        assert becomes(lambda: served.connections == len(kinds))
        for _ in range(4):
            for one, (_, more) in zip(ones, kinds, strict=True):
                with suppress(ConnectionError):
                    one.sendall(more)
            served.clock.passes((SECONDS + 1) / 4)
        assert becomes(lambda: not served.connections)
        assert asked(served.port, LAST) == [(200, '{"status":"ok"}')]
    tally("S12 connections that never end", len(kinds))


def test_a_new_client_takes_the_place_of_one_that_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, many_files: None, full: bool, tally: Tally
) -> None:
    """Of the one that is waited for longest; none of them is late."""
    count, most = (2000, serving.CONNECTIONS) if full else (40, 8)
    monkeypatch.setattr(serving, "CONNECTIONS", most)
    with ExitStack() as held, answering(echoing()) as served:
        kinds = [GET, GET + b"\r\n", b"", POST + b"Content-Length: 2\r\n\r\na"]
        for number in range(count):
            held.enter_context(connected(served.port, kinds[number % len(kinds)]))
        assert asked(served.port, LAST) == [(200, '{"status":"ok"}')]
        served.clock.passes(0.1)
        newest = held.enter_context(connected(served.port, POST + b"Content-Length: 2\r\n\r\na"))
        for _ in range(8):
            assert asked(served.port, LAST) == [(200, '{"status":"ok"}')]
            assert served.connections < most
        newest.sendall(b"b")
        assert newest.recv(4096).startswith(b"HTTP/1.1 200")
    tally("S12 clients beyond the most connections", count)


def test_who_is_being_answered_keeps_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS", 4)
    app, begun, over = echoing(), threading.Event(), threading.Event()

    @app.get("/long")
    def long() -> JSONResponse:
        begun.set()
        assert over.wait(PATIENCE)
        return JSONResponse("at last")

    asking = b"GET /long HTTP/1.1\r\n" + HOST + b"Authorization: Bearer right\r\nConnection: close\r\n\r\n"
    with ExitStack() as held, answering(app) as served, connected(served.port, asking) as one:
        assert begun.wait(PATIENCE)
        for _ in range(12):
            held.enter_context(connected(served.port))
        assert becomes(lambda: served.connections < 4)
        over.set()
        assert answers_in(rest_of(one)) == [(200, '"at last"')]


def test_no_connection_outlives_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that was made after all others were told to close."""
    monkeypatch.setattr(serving, "DRAIN", 1)
    monkeypatch.setattr(serving.PatientProtocol, "shutdown", lambda self: None)
    with ExitStack() as held:
        with answering(echoing()) as served:
            late = held.enter_context(connected(served.port))
            assert becomes(lambda: bool(served.connections))
            (connection,) = served.server.server_state.connections
        assert connection.transport.is_closing()
        assert rest_of(late) == b""


def test_few_files_mean_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((256, 128), (1 << 20, serving.CONNECTIONS), (resource.RLIM_INFINITY, serving.CONNECTIONS)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, files=files: (files, files))
        assert serving.make_server(echoing()).config.limit_concurrency == most


# Of a header: one that is let in, and one that is not, with the status.
CHECKED = {
    b"Host": (b"localhost", b"other", 403),
    b"Origin": (b"http://localhost", b"http://other", 403),
    b"Authorization": (b"Bearer right", b"Bearer wrong", 401),
    b"Sec-Fetch-Site": (b"same-origin", b"cross-site", 403),
    b"Content-Type": (b"text/plain", b"application/json", 400),
    b"Content-Encoding": (b"identity", b"gzip", 415),
}


def request(name: bytes = b"", *values: bytes, trailers: bytes = b"") -> bytes:
    """A chunked body, with these values of one header."""
    own = {b"Host": b"localhost", b"Authorization": b"Bearer right"}
    own.pop(name, None)
    lines = [*(b"%s: %s\r\n" % pair for pair in own.items()), *(b"%s: %s\r\n" % (name, value) for value in values)]
    head = b"POST /echo HTTP/1.1\r\n" + b"".join(lines) + CHUNKED + b"Connection: close\r\n\r\n"
    return head + b"3\r\n{ba\r\n0\r\n" + trailers + b"\r\n"


def shapes() -> Iterator[tuple[bytes, list[int]]]:
    """Requests that a check could be passed by with, and the statuses of their answers."""
    for name, (right, wrong, status) in CHECKED.items():
        yield request(name, right), [200]
        yield request(name, wrong), [status]
        yield request(name, right, trailers=b"%s: %s\r\n" % (name, wrong)), [200]
        yield request(name, wrong, trailers=b"%s: %s\r\n" % (name, right)), [status]
        yield request(name, wrong, trailers=b"%s: %s\r\n" % (name.upper(), right)), [status]
        yield request(name, right, wrong), [400]
        yield request(name, wrong, right), [400]
        yield request(name, right, right), [400]
    for name in (b"Host", b"Authorization"):
        yield request(name), [403 if name == b"Host" else 401]
        yield request(name, trailers=b"%s: %s\r\n" % (name, CHECKED[name][0])), [403 if name == b"Host" else 401]
    close = HOST + b"Authorization: Bearer right\r\nConnection: close\r\n"
    for length, status in (
        (b"3", 200), (b"03", 200), (b"0" * 5000 + b"3", 413), (b"99999999999", 413), (b"+3", 400), (b"0x3", 400),
        (b"3, 3", 400), (b"-3", 400), (b"", 400), (b"3\r\nContent-Length: 3", 400), (b"3\r\n" + CHUNKED[:-2], 400),
    ):  # fmt: skip
        yield b"POST /echo HTTP/1.1\r\n" + close + b"Content-Length: " + length + b"\r\n\r\nabc", [status]
    for coding, status in ((b"chunked", 200), (b"gzip, chunked", 415), (b"identity", 400), (b"chunked, chunked", 400)):
        yield (
            b"POST /echo HTTP/1.1\r\n" + close + b"Transfer-Encoding: " + coding + b"\r\n\r\n1\r\na\r\n0\r\n\r\n",
            [status],
        )
    for extension in (b";a=b", b';a="b;c"', b";" + b"a" * (HEADER_BYTES // 2)):
        yield b"POST /echo HTTP/1.1\r\n" + close + CHUNKED + b"\r\n1" + extension + b"\r\na\r\n0\r\n\r\n", [200]
    for target, host, status in (
        (b"http://localhost/health", b"localhost", 200), (b"http://localhost/health", b"other", 200),
        (b"http://other/health", b"localhost", 403), (b"http://localhost@other/health", b"localhost", 403),
        (b"http://other?localhost/health", b"localhost", 400), (b"//other/health", b"localhost", 401),
        (b"/health#http://other/", b"localhost", 200), (b"http://localhost:1@other/health", b"localhost", 403),
    ):  # fmt: skip
        yield b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host), [status]
    for host in (
        b"localhost]",
        b"[localhost]",
        b"localhost:80:80",
        b"localhost:a",
        b"a@localhost",
        b"[::1",
        b"::1",
        b"[" + b":" * 16_000,
        b"[::1]]",
        b"[]",
    ):
        yield b"GET /health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host, [403]
    for address in (b"/health?a=%ff", b"/%c3%28", b"/health?%ed%a0%80"):
        yield b"GET %s HTTP/1.1\r\n" % address + close + b"\r\n", [400]
    yield GET * 3 + LAST, [200] * 4
    yield GET + b"\r\n\r\n" + GET + b"\r\n" + LAST, [200] * 3


def in_pieces(content: bytes, dice: random.Random) -> list[bytes]:
    cuts = sorted(dice.sample(range(1, len(content)), min(3, len(content) - 1)))
    return [content[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True)]


def test_no_check_is_passed_by_a_shape_of_http(served: Answering, full: bool, tally: Tally) -> None:
    dice, count = random.Random(1), 0
    for content, statuses in shapes():
        for number in range(4 if full else 1):
            with socket.create_connection(("127.0.0.1", served.port)) as one:
                one.settimeout(PATIENCE)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(ConnectionError):  # refused before all is sent
                    for piece in in_pieces(content, dice) if number else [content]:
                        one.sendall(piece)
                got = rest_of(one)
            assert [status for status, _ in answers_in(got)] == statuses, content[:200]
            count += 1
    assert becomes(lambda: not served.connections)
    tally("S10 shapes of HTTP", count)


def test_no_trailer_is_seen(served: Answering) -> None:
    ((status, told),) = asked(served.port, request(trailers=b"X-Secret: a\r\nCookie: b\r\n" * 20))
    assert (status, {"x-secret", "cookie"} & {*json.loads(told)["headers"]}) == (200, set())


ENDLESS = {
    "headers": (b"GET /health HTTP/1.1\r\n", b"a: b\r\n"),
    "trailers": (request()[:-2], b"a: b\r\n"),
    "one trailer": (request()[:-2] + b"a: ", b"b"),
    "the name of a trailer": (request()[:-2], b"a"),
    "an extension of a chunk": (POST + CHUNKED + b"\r\n1;", b"a"),
    "the length of a chunk": (POST + CHUNKED + b"\r\n", b"0"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_is_no_body_ends_the_connection_once_it_is_longer_than_a_head(
    served: Answering, kind: str, full: bool, tally: Tally
) -> None:
    begin, more = ENDLESS[kind]
    part, sent, size = (more * (1 << 16))[: 1 << 16], 0, 100_000_000 if full else 5_000_000
    with connected(served.port, begin) as one:
        with suppress(ConnectionError):
            while sent < size:
                one.sendall(part)
                sent += len(part)
        assert rest_of(one).partition(b"\r\n")[0] in (b"HTTP/1.1 400 Bad Request", b"")  # or it was reset
    assert becomes(lambda: not served.connections)
    tally("S10 endless heads and trailers", 1)


def test_an_offer_of_another_protocol_changes_nothing(served: Answering, full: bool, tally: Tally) -> None:
    """As Java's client and curl make it by default, with a body behind it, which is no request of its own."""
    inner = b'{"text": "GET /health HTTP/1.1"}\r\n\r\nGET /large HTTP/1.1\r\n\r\n'
    length, chunks = (
        b"Content-Length: %d\r\n\r\n%s" % (len(inner), inner),
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner),
    )
    for offer in (b"h2c", b"websocket", b"h2c\r\nUpgrade: other"):
        asking = POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + offer + b"\r\nHTTP2-Settings: AAA\r\n"
        for body in (length, CHUNKED + b"\r\n" + chunks):
            whole = asking + body + LAST
            cuts = range(1, len(whole)) if full else (len(asking) - 5, len(asking) + len(body) - 3, len(whole) - 1)
            for cut in cuts:
                with connected(served.port, whole[:cut]) as one:
                    one.sendall(whole[cut:])
                    (first, told), *others = answers_in(rest_of(one))
                assert (first, json.loads(told)["body"]) == (200, inner.decode())
                assert others == [(200, '{"status":"ok"}')]
            tally("S10 offers of another protocol", len(cuts))


def test_few_requests_may_wait_for_the_answer_to_the_first(served: Answering) -> None:
    """They come in one piece, before any can be answered."""
    assert [status for status, _ in asked(served.port, GET * (PIPELINED - 1) + LAST)] == [200] * PIPELINED
    with connected(served.port, GET * 10_000) as one:
        assert b"400 Bad Request" in rest_of(one)
    assert becomes(lambda: not served.connections)
