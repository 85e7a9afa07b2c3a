"""Checks every request before a route sees it: host, origin, key, size, and valid JSON; and sets the headers of every
answer.

A body is received completely, within a time limit, before a route sees it. A request whose client disconnects is
cancelled.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import json
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.serve.meters import Meters
from heedful.serve.public import form_of, media_type, path_of
from heedful.serve.refusals import DEEPL, Refused, as_refused, is_libretranslate, refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, possible only by an escape
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
    depth: int = 32  # of JSON
    seconds: float = 10.0  # to send a body


class Gate:
    """`direct` are handlers by method and path that are called without the application's routing."""

    def __init__(
        self, app: ASGIApp, rules: Rules, meters: Meters, direct: Mapping[tuple[str, str], Handler] | None = None
    ) -> None:
        self.app, self.rules, self.meters, self.direct = app, rules, meters, direct or {}

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
            self._refuse_long(scope)
            headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
            keyed = self._admit(scope["method"], path, headers)
            body = await self._body(headers, receive)
            if body and media_type(headers) == "application/json":
                scope = {**scope, "json": strict_json(body, self.rules.depth)}
            if not keyed and not self._is_key(await _field(scope, body, _key_field(path))):
                raise _no_key()
            await self._answer(scope, body, receive, reply)
        except Exception as error:
            if reply.begun and not reply.complete:
                raise
            told = as_refused(error)
            if told.status == 500:
                log.exception("%s %s failed", scope["method"], scope["path"])
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

    def _refuse_long(self, scope: Scope) -> None:
        size = sum(len(key) + len(value) for key, value in scope["headers"])
        if size + len(scope["query_string"]) + len(scope["path"]) > self.rules.head_bytes:
            raise Refused(431, f"a head of more than {self.rules.head_bytes:,} bytes", "send less")

    def _admit(self, method: str, path: str, headers: dict[str, str]) -> bool:
        """Whether the headers have the right key; it may still be in the body. Raises Refused."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise Refused(
                403,
                f"this is not {host[:100]!r}",
                "ask by the name that it is served by; --name HOST of heed serve adds one",
            )
        if method != "GET":
            origin = headers.get("origin")
            foreign = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
            if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                raise Refused(403, "a page of another origin may not ask this", "open the page that is served here")
        if self.rules.key is None or path == OPEN or self._is_key(_credential(headers.get("authorization", ""))):
            return True
        if "authorization" in headers or not _key_field(path):
            raise _no_key()
        return False

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.removeprefix("[").removesuffix("]").lower()
        if name in self.rules.hosts:
            return True
        if self.rules.addresses:
            with suppress(ValueError):
                ipaddress.ip_address(name)
                return True
        return False

    def _is_key(self, given: str) -> bool:
        return self.rules.key is None or hmac.compare_digest(given.encode(), self.rules.key.encode())

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        most = self.rules.form_bytes if media_type(headers) == "multipart/form-data" else self.rules.text_bytes
        told = headers.get("content-length", "0")
        if not told.isdecimal() or int(told) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.rules.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client left")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            why = f"the body took longer than {self.rules.seconds:g} s"
            raise Refused(408, why, headers={"Connection": "close"}) from None

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


def strict_json(data: bytes, depth: int) -> Any:
    """Parses JSON in UTF-8, with finite numbers and whole characters, nested at most `depth` deep. Raises Refused."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        why = error.args[0] if isinstance(error, _NoNumberError) else "not JSON in UTF-8"
        raise Refused(400, f"the body is {why}", "send one JSON value") from None
    if text.count("[") + text.count("{") > depth and any(level > depth for level, _ in _walk(value)):
        raise Refused(400, f"the body is nested deeper than {depth}", "send it flatter")
    if "\\u" in text and any(isinstance(found, str) and HALF.search(found) for _, found in _walk(value)):
        raise Refused(400, "the body has half a character (a lone surrogate)", "send whole characters")
    return value


class _NoNumberError(ValueError):
    pass


def _no_number(word: str) -> Any:
    raise _NoNumberError(f"not JSON: {word} is no number")


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _no_number(word[:20])


def _walk(value: Any) -> Iterator[tuple[int, Any]]:
    waiting = [(0, value)]
    while waiting:
        level, found = waiting.pop()
        yield level, found
        if isinstance(found, dict):
            waiting += [(level + 1, each) for pair in found.items() for each in pair]
        elif isinstance(found, list):
            waiting += [(level + 1, each) for each in found]


def _credential(header: str) -> str:
    """The key in an Authorization header: after Bearer or DeepL-Auth-Key, or a browser's Basic password."""
    scheme, _, given = header.strip().partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key"):
        return given.strip()
    if scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeDecodeError):
            return base64.b64decode(given, validate=True).decode().partition(":")[2]
    return ""


def _key_field(path: str) -> str:
    """The field of the body in which a protocol's clients send the key; "" where there is none."""
    return "api_key" if is_libretranslate(path) else "auth_key" if path.startswith(DEEPL) else ""


async def _field(scope: Scope, body: bytes, name: str) -> str:
    """A field of a body of JSON or of a form."""

    async def whole() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    sent = scope.get("json")
    found = sent.get(name) if isinstance(sent, dict) else None
    with suppress(HTTPException):  # a form that cannot be read
        async with form_of(Request(scope, whole), max_files=1) as form:
            found = found or form.get(name)
    return found if isinstance(found, str) else ""


def _no_key() -> Refused:
    return Refused(
        401, "the key is missing or wrong", "send Authorization: Bearer KEY", {"WWW-Authenticate": 'Basic realm="heed"'}
    )


def _too_large(most: int) -> Refused:
    return Refused(413, f"a body of more than {most:,} bytes", "send less at once", {"Connection": "close"})
