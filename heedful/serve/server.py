"""The server: uvicorn, which reports when it is ready, and does not wait for stalled clients."""

import asyncio
import re
import resource
from collections.abc import Callable
from contextlib import suppress
from socket import socket
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SECONDS = 10.0  # for a whole request to arrive, and for a client to read its answer
HEADER_BYTES = 16_384  # of incomplete headers or trailers; the gate refuses complete headers that are longer
PIPELINED = 16  # requests that wait for the answer to the one before, on one connection
CONNECTIONS = 1024  # at most; then new ones take the place of those that have nothing to answer
DRAIN = 8  # seconds for running requests when the server is shutting down


class Lingering:
    """A transport that stays open for reading until the whole request has arrived. Closing it earlier would reset the
    connection, and a client that is still sending, such as a proxy with a large body, would never read the answer."""

    def __init__(self, transport: Any, comes: Callable[[], bool]) -> None:
        self._transport, self._comes = transport, comes

    def close(self) -> None:
        if not self._comes():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:  # the client has left already
            self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose client does not send a whole request in time, or does not read the answer. Trailers are
    dropped, and an offer to change the protocol (`Upgrade`) is ignored."""

    seconds = SECONDS
    _headed = False  # the headers of the newest request have arrived
    _whole = False  # its body has arrived too
    _moved = False  # the data that was read last had a part of a body, or the end of headers or of a request
    _between = 0  # bytes since then: of headers, of trailers, of the length of a chunk
    _owed: asyncio.TimerHandle | None = None  # until the client has sent a whole request
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # asyncio's, or of uvloop, which shares no base with it
        super().connection_made(transport)
        self.transport: Any = Lingering(transport, self._still_comes)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()
        self._await_request()

    def _make_room(self) -> None:
        """Closes the connection whose client has owed a request for longest."""
        owing = {one: one._owed.when() for one in self.connections if isinstance(one, PatientProtocol) and one._owed}
        if owing:
            longest = min(owing, key=owing.__getitem__)
            longest._stop_waiting()
            longest.transport.abort()
            self.connections.discard(longest)  # which counts at once, and is lost later

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._moved = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
        self._between = 0 if self._moved else self._between + len(data)
        if self._between > HEADER_BYTES:
            self._refuse("Headers are too long.")

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Reads the request again without its offer, after which the parser expects no body; `rest` follows the head.
        RFC 9110, section 7.8: a server may ignore it."""
        kept = b"".join(b"%s: %s\r\n" % pair for pair in self.headers if pair[0] != b"upgrade")
        line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(line + kept + b"\r\n" + rest)

    def _offers_upgrade(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests before the first answer")
        super().on_message_begin()
        self._headed = self._whole = False
        self._await_request()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:  # or else it is a trailer, which must not replace what has been checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._offers_upgrade():
            return
        if not self.url.startswith(b"/") and b"://" in self.url:  # RFC 9112, section 3.2.2: its host is what counts
            host = re.split(b"[/?#]", self.url.partition(b"://")[2], maxsplit=1)[0]
            self.headers[:] = [(b"host", host), *(pair for pair in self.headers if pair[0] != b"host")]
        super().on_headers_complete()
        self._headed = self._moved = True

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._moved = True

    def on_message_complete(self) -> None:
        if self._offers_upgrade():
            return
        super().on_message_complete()
        refused = self._still_comes()
        self._whole = self._moved = True
        if refused:
            self.transport.close()
        elif self.cycle.response_complete:
            self._await_request()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._whole and self.cycle.response_complete:
            self._await_request()

    def _refuse(self, why: str) -> None:
        self.logger.warning(why)
        if self._still_comes():
            self.transport.abort()
        else:
            self._await_request()
            self.send_400_response(why)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _await_request(self) -> None:
        """From now on, the client has so long to send a whole request. It also has so long to read the end of an
        answer: no data in between, such as empty lines, gives it more time."""
        self._stop_waiting()
        self._owed = self.loop.call_later(self.seconds + 1, self.transport.abort)  # the gate answers a late body before

    def _stop_waiting(self) -> None:
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _still_comes(self) -> bool:
        """Whether a body is still arriving although its request is answered, on a connection that ends with it."""
        answered = self.cycle is not None and self.cycle.response_complete and not self.cycle.keep_alive
        return answered and self._headed and not self._whole


class Server(uvicorn.Server):
    """Calls `ready` as soon as it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in [*self.server_state.connections]:  # a client that came while all others were being closed
            connection.transport.abort()
        await asyncio.sleep(0)  # so that it is lost now


def make_server(
    app: ASGIApp, *, ready: Callable[[], None] = lambda: None, seconds: float = SECONDS, **more: Any
) -> Server:
    """A server for `app`; `seconds` is the time for a client to send a request or to read an answer."""

    async def given_up(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(asyncio.CancelledError):  # an answer that takes longer than DRAIN is no error
            await app(scope, receive, send)

    protocol = type("PatientProtocol", (PatientProtocol,), {"seconds": seconds})
    config = uvicorn.Config(
        given_up,
        http=protocol,
        ws="none",
        log_level="warning",
        log_config=None,  # its lines are written as ours are
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=DRAIN,
        limit_concurrency=_most_connections(),
        **more,
    )
    return Server(config, ready)


def _most_connections() -> int:
    """Half of the files that this process may open are left for other things than connections."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if files == resource.RLIM_INFINITY else min(CONNECTIONS, files // 2)
