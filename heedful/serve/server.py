"""The server: uvicorn, which says when it answers, and does not wait for clients that stand still."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SECONDS = 10.0  # for a whole request to come, and for a client to read what it asked for
HEADER_BYTES = 16_384  # of a request that has not all of them yet; the gate refuses any that has more
DRAIN = 8  # seconds that answers in flight may take once the server is told to end


class Lingering:
    """A transport that is closed for what is read only when all has come: closing it before would reset the connection,
    and who is still sending, as a proxy is that holds a large body, would never read the answer."""

    def __init__(self, transport: Any, comes: Callable[[], bool]) -> None:
        self._transport, self._comes = transport, comes

    def close(self) -> None:
        if not self._comes():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:  # who is refused has left already
            self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientProtocol(HttpToolsProtocol):
    """Closes the connections of those who do not send a whole request in time, or do not read their answer."""

    seconds = SECONDS
    _headed = False  # the headers of the newest request have come
    _whole = False  # and its body
    _head = 0  # bytes of headers that are not whole
    _request: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # asyncio's, or of uvloop, which shares no base with it
        super().connection_made(transport)
        self.transport: Any = Lingering(transport, self._still_comes)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._head = 0 if self._headed else self._head + len(data)
        if self._head > HEADER_BYTES:
            self.send_400_response("Headers are too long.")
        self._watch()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._headed = self._whole = False

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._headed = True

    def on_message_complete(self) -> None:
        super().on_message_complete()
        answered = self._still_comes()
        self._whole = True
        if answered:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if self._still_comes():
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
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

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._reading = self._reading or self.loop.call_later(self.seconds, self.transport.abort)

    def _watch(self) -> None:
        """While a request is begun and not whole, the time runs."""
        if self._whole and self._request is not None:
            self._request.cancel()
            self._request = None
        elif not self._whole and self._request is None:
            # A body that is late is told so before.
            self._request = self.loop.call_later(self.seconds + 1, self.transport.abort)

    def _still_comes(self) -> bool:
        """Whether the body of a request comes that is answered already, on a connection that ends with it."""
        answered = self.cycle is not None and self.cycle.response_complete and not self.cycle.keep_alive
        return answered and self._headed and not self._whole

    def _forget(self) -> None:
        for timer in (self._request, self._reading):
            if timer is not None:
                timer.cancel()


class Server(uvicorn.Server):
    """Calls `ready` as soon as it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def make_server(
    app: ASGIApp, *, ready: Callable[[], None] = lambda: None, seconds: float = SECONDS, **more: Any
) -> Server:
    """A server for `app`; `seconds` are what a client may take to send or to read."""

    async def given_up(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(asyncio.CancelledError):  # of an answer that takes longer than DRAIN: no fault with a trace
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
        limit_concurrency=1024,
        **more,
    )
    return Server(config, ready)
