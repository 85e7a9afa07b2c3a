"""The server: uvicorn, which reports when it is ready, and does not wait for stalled clients."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SECONDS = 10.0  # for a whole request to arrive, and for a client to read its answer
HEADER_BYTES = 16_384  # of incomplete headers; the gate refuses complete ones that are longer
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
    """Closes connections whose client does not send a whole request in time, or does not read the answer."""

    seconds = SECONDS
    _headed = False  # the headers of the newest request have arrived
    _whole = False  # its body has arrived too
    _head = 0  # bytes of incomplete headers
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
        """Runs a timer while a request is incomplete."""
        if self._whole and self._request is not None:
            self._request.cancel()
            self._request = None
        elif not self._whole and self._request is None:
            # The gate answers a late body before that.
            self._request = self.loop.call_later(self.seconds + 1, self.transport.abort)

    def _still_comes(self) -> bool:
        """Whether a body is still arriving although its request is answered, on a connection that ends with it."""
        answered = self.cycle is not None and self.cycle.response_complete and not self.cycle.keep_alive
        return answered and self._headed and not self._whole

    def _forget(self) -> None:
        for timer in (self._request, self._reading):
            if timer is not None:
                timer.cancel()


class Server(uvicorn.Server):
    """Calls `ready` as soon as it accepts requests."""

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
        limit_concurrency=1024,
        **more,
    )
    return Server(config, ready)
