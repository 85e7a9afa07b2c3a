"""A server for tests whose clock stands still."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from heedful.serve.server import Server, make_server
from waiting import PATIENCE


class Clock:
    """The time of an event loop, which stands still until a test advances it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._real, self._now = self.loop.time, self.loop.time()
        self.loop.time = lambda: self._now

    def ask(self, what: Callable[[], Any]) -> Any:
        """Calls `what` between two iterations of the loop."""

        async def asked() -> Any:
            return what()

        return asyncio.run_coroutine_threadsafe(asked(), self.loop).result(PATIENCE)

    def passes(self, seconds: float) -> None:
        def move_on() -> None:
            self._now += seconds

        self.ask(move_on)

    def runs(self) -> None:
        self.loop.time = self._real


@dataclass(frozen=True)
class Answering:
    """A running server."""

    port: int
    server: Server
    clock: Clock

    @property
    def connections(self) -> int:
        return self.clock.ask(lambda: len(self.server.server_state.connections))


@contextmanager
def answering(app: ASGIApp, **how: Any) -> Iterator[Answering]:
    """Runs a server of the application until the end of the block, with a clock that stands still."""
    listening, ready, clock = socket.socket(), threading.Event(), Clock()
    listening.bind(("127.0.0.1", 0))
    server = make_server(app, ready=ready.set, **how)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: clock.loop) as runner:  # which leaves no connection open
            runner.run(server.serve(sockets=[listening]))

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield Answering(listening.getsockname()[1], server, clock)
    finally:
        server.should_exit = True
        clock.runs()
        thread.join(PATIENCE)
        listening.close()
    assert not thread.is_alive()
