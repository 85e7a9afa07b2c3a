"""Checks every request before a route sees it: host, origin, key, size, and valid JSON; and sets the headers of every
answer.

A body is received completely, within a time limit, before a route sees it. A request whose client disconnects is
cancelled. What a proxy in front could read otherwise than a route does is refused, such as a header that comes twice.
"""

import asyncio
import base64
import hmac
import ipaddress
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serve.bodies import MULTIPART, media_type, read_form, strict_json
from heedful.serve.limits import give_back_memory
from heedful.serve.meters import Meters
from heedful.serve.public import path_of
from heedful.serve.refusals import DEEPL, Refused, as_refused, is_libretranslate, refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:\d*)?")  # a name or address, and a port
# Headers that are read here, or by whoever hands requests on, and must come once.
SINGLE = (
    "host",
    "origin",
    "sec-fetch-site",
    "sec-fetch-mode",
    "authorization",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
)
OPEN = "/health"  # needs no key
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ENCODED = {key.encode(): value.encode() for key, value in HEADERS.items()}
CLOSE = {"Connection": "close"}
LARGE, REST = 1 << 20, 1.0  # bytes of a body, and the seconds after its answer, when its memory is given back
log = logging.getLogger("heedful.serve")

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Who may send requests, and their limits. `hosts` are the host names that a request may use; `addresses`: it may
    use any IP address too."""

    key: str | None = None
    hosts: frozenset[str] = LOOPBACK
    addresses: bool = False
    head_bytes: int = 1 << 14
    text_bytes: int = 1 << 20  # of a body
    form_bytes: int = 1 << 25  # of one with files
    held_bytes: int = 1 << 28  # of all bodies that are held at a time, whether or not their senders have shown a key
    seconds: float = 10.0  # to send a body


class Gate:
    """`direct` are handlers by method and path that are called without the application's routing."""

    def __init__(
        self, app: ASGIApp, rules: Rules, meters: Meters, direct: Mapping[tuple[str, str], Handler] | None = None
    ) -> None:
        self.app, self.rules, self.meters, self.direct = app, rules, meters, direct or {}
        self._held = Counter[bool]()  # bytes of bodies: of those that may have files, and of the others
        self._gives_back = False  # in a moment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, reply, path = time.monotonic(), _Reply(send), path_of(scope)
        if scope["method"] == "HEAD":  # like GET; the server drops the body
            scope = {**scope, "method": "GET"}
        try:
            headers = self._headers(scope)
            keyed = self._admit(scope["method"], path, headers)
            async with self._body(headers, receive, files=keyed and path != OPEN) as body:
                if body and media_type(headers).endswith(("application/json", "+json")):
                    scope = {**scope, "json": strict_json(body)}
                if not keyed and not self._is_key(_field(scope, headers, body, _key_field(path))):
                    raise _no_key()
                await self._answer(scope, body, receive, reply)
        except Exception as error:
            if reply.begun and not reply.complete:
                raise
            told = as_refused(error)
            if told.status == 500:
                log.exception("%s %r failed", scope["method"], scope["path"])
            if not reply.begun:
                await refusal(path, told)(scope, receive, reply)
        except asyncio.CancelledError:  # the server is shutting down, and has waited long enough
            if not reply.begun:
                ended = Refused(503, "the server has ended", "ask again once it is back")
                await refusal(path, ended)(scope, receive, reply)
            raise
        finally:
            self.meters.requests.labels(str(reply.status)).inc()
            self.meters.latency.observe(time.monotonic() - begun)

    def _headers(self, scope: Scope) -> dict[str, str]:
        """The headers, with names in lower case. Raises Refused for a head that is too long or ambiguous."""
        size = sum(len(key) + len(value) for key, value in scope["headers"])
        if size + len(scope["query_string"]) + len(scope["path"]) > self.rules.head_bytes:
            raise Refused(431, f"a head of more than {self.rules.head_bytes:,} bytes", "send less")
        found = [(key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in scope["headers"]]
        names = [key for key, _ in found]
        for name in SINGLE:
            if names.count(name) > 1:
                raise Refused(400, f"the header {name} comes twice", "send it once")
        try:
            unquote_to_bytes(scope.get("raw_path", b"") + b"?" + scope["query_string"]).decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(400, "the address is not in UTF-8", "escape its bytes in UTF-8") from None
        return dict(found)

    def _admit(self, method: str, path: str, headers: dict[str, str]) -> bool:
        """Whether the headers have the right key; it may still be in the body. Raises Refused."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise Refused(
                403,
                f"this is not {host[:100]!r}",
                "ask by the name that it is served by; --name HOST of heed serve adds one",
            )
        elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if method == "GET":
            foreign = elsewhere and headers.get("sec-fetch-mode", "navigate") != "navigate"  # a link may lead here
        else:
            origin = headers.get("origin")
            own = (f"http://{host}".lower(), f"https://{host}".lower())
            foreign = elsewhere or (origin is not None and origin.lower() not in own)
        if foreign:
            raise Refused(403, "a page of another origin may not ask this", "open the page that is served here")
        if self.rules.key is None or path == OPEN or self._is_key(_credential(headers.get("authorization", ""))):
            return True
        if "authorization" in headers or not _key_field(path):
            raise _no_key()
        return False

    def _is_ours(self, host: str) -> bool:
        found = HOST.fullmatch(host)
        if found is None or (found[1].startswith("[") and ":" not in found[1]):  # brackets are for IPv6
            return False
        name = found[1].strip("[]").lower()
        if name in self.rules.hosts:
            return True
        if self.rules.addresses:
            with suppress(ValueError):
                ipaddress.ip_address(name)
                return True
        return False

    def _is_key(self, given: str) -> bool:
        return self.rules.key is None or hmac.compare_digest(given.encode(), self.rules.key.encode())

    @asynccontextmanager
    async def _body(self, headers: dict[str, str], receive: Receive, *, files: bool) -> AsyncIterator[bytes]:
        """The body, which counts as held inside the `async with`; `files`: it may be a form with files."""
        most = self.rules.form_bytes if files and media_type(headers) == MULTIPART else self.rules.text_bytes
        told = headers.get("content-length", "0")
        if not told.isdecimal() or len(told) > 15 or int(told) > most:
            raise _too_large(most)
        for name in ("content-encoding", "transfer-encoding"):
            if headers.get(name, "identity").lower() not in ("identity", "chunked"):
                raise Refused(415, f"a body in {headers[name][:100]} is not read", "send it as it is", CLOSE)
        size = 0

        async def received() -> bytes:
            nonlocal size
            parts, more = list[bytes](), True
            try:
                async with asyncio.timeout(self.rules.seconds):
                    while more:
                        message = await receive()
                        if message["type"] == "http.disconnect":
                            raise Refused(400, "the client left")
                        parts.append(message.get("body", b""))
                        size += len(parts[-1])
                        self._held[files] += len(parts[-1])
                        if size > most:
                            raise _too_large(most)
                        if self._held[files] > self.rules.held_bytes:
                            what = f"bodies of {self.rules.held_bytes:,} bytes wait for their answers"
                            raise Refused(429, what, "ask again in a second", {"Retry-After": "1", **CLOSE})
                        more = message.get("more_body", False)
            except TimeoutError:
                raise Refused(408, f"the body took longer than {self.rules.seconds:g} s", headers=CLOSE) from None
            return b"".join(parts)

        try:
            yield await received()
        finally:
            self._held[files] -= size
            if size > LARGE and not self._gives_back:
                self._gives_back = True
                asyncio.get_running_loop().call_later(REST, self._give_back)

    def _give_back(self) -> None:
        self._gives_back = False
        asyncio.get_running_loop().run_in_executor(None, give_back_memory)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, reply: "_Reply") -> None:
        """Passes the request on, and cancels it if the client disconnects."""
        given, gone, left = [body], asyncio.Event(), False
        work = asyncio.current_task()
        assert work is not None

        async def replay() -> Message:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def watch() -> None:
            nonlocal left
            while (await receive())["type"] != "http.disconnect":
                pass
            if not reply.complete:
                left = True
                gone.set()
                work.cancel()

        watching = asyncio.create_task(watch())
        handler = self.direct.get((scope["method"], path_of(scope)))
        try:
            if handler is None:
                await self.app(scope, replay, reply)
            else:
                answer = await handler(Request(scope, replay))
                await answer(scope, replay, reply)
        except asyncio.CancelledError:
            if not left:
                raise
            work.uncancel()
        finally:
            watching.cancel()


class _Reply:
    """Sends an answer, with the headers that all answers have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun, self.complete, self.status = False, False, 499

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            own = dict(message["headers"])
            more = [(key, value) for key, value in ENCODED.items() if key not in own]
            message = {**message, "headers": [*message["headers"], *more]}
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True
        await self._send(message)


def _credential(header: str) -> str:
    """The key in an Authorization header: after Bearer or DeepL-Auth-Key, or a browser's Basic password."""
    scheme, _, given = header.strip().partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key"):
        return given.strip()
    if scheme.lower() == "basic":
        with suppress(ValueError):  # no base64, or no UTF-8
            return base64.b64decode(given, validate=True).decode().partition(":")[2]
    return ""


def _key_field(path: str) -> str:
    """The field of the body in which a protocol's clients send the key; "" where there is none."""
    return "api_key" if is_libretranslate(path) else "auth_key" if path.startswith(DEEPL) else ""


def _field(scope: Scope, headers: Mapping[str, str], body: bytes, name: str) -> str:
    """A field of a body of JSON or of a form. Raises Refused for a form that cannot be read."""
    sent = scope.get("json")
    found = sent.get(name) if isinstance(sent, dict) else dict(read_form(headers, body)).get(name)
    return found if isinstance(found, str) else ""


def _no_key() -> Refused:
    return Refused(
        401, "the key is missing or wrong", "send Authorization: Bearer KEY", {"WWW-Authenticate": 'Basic realm="heed"'}
    )


def _too_large(most: int) -> Refused:
    return Refused(413, f"a body of more than {most:,} bytes", "send less at once", CLOSE)
