"""The jobs in a model's queue: questions, work and texts, each with its waiter in an event loop; and the turns of the
threads that do them."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from heedful.decode.settings import Sampling
from heedful.errors import HeedError
from heedful.serve.hosted import StreamedPiece, Writing

Made = TypeVar("Made")


class Turns:
    """Who computes with a model: one thread at a time, in the order in which they ask."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[int] = deque()  # threads
        self._holder: int | None = None

    def take(self, *, give_way: bool = False) -> None:
        """Waits for this thread's turn, unless it has it. `give_way`: others that wait go first even then."""
        own = threading.get_ident()
        if self._holder == own:
            if not give_way or not self._waiting:
                return
            self.leave()
        with self._changed:
            self._waiting.append(own)
            self._changed.wait_for(lambda: self._holder is None and self._waiting[0] == own)
            self._waiting.popleft()
            self._holder = own

    def leave(self) -> None:
        """Ends this thread's turn, if it has it."""
        with self._changed:
            if self._holder == threading.get_ident():
                self._holder = None
                self._changed.notify_all()


async def given_up(tasks: Sequence["asyncio.Future[Any]"]) -> None:
    """Cancels the tasks that are not done, and waits until all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(eq=False, kw_only=True)
class ModelJob:
    """A job whose result is awaited in an event loop."""

    key: str | None = None  # jobs with equal keys may be answered together; None: alone
    size: int = 0  # letters, or what takes about as long
    dear: bool = False  # others go before it, at each of its steps
    moved: bool = False  # to the dear ones, as it was found out
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    future: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def tell(self, found: Any) -> None:
        if self.future.done():
            return
        if isinstance(found, Exception):
            self.future.set_exception(found)
        else:
            self.future.set_result(found)


@dataclass(eq=False, kw_only=True)
class QuestionJob(ModelJob):
    """Inputs for a verb."""

    verb: str
    inputs: Sequence[str]
    settings: Mapping[str, Any]


@dataclass(eq=False, kw_only=True)
class WorkJob(ModelJob):
    work: Callable[[], Any]


@dataclass(eq=False, kw_only=True)
class WritingJob:
    """A text to continue; its pieces, or an error, are awaited in an event loop."""

    prompt: str | Sequence[int]
    writing: Writing
    sampling: Sampling
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    told: "asyncio.Queue[list[StreamedPiece] | Exception]" = field(default_factory=asyncio.Queue)
    made: list[StreamedPiece] = field(default_factory=list)  # pieces that are not sent yet
    over: bool = False  # cancelled, or complete

    def tell(self, found: Any) -> None:
        self.told.put_nowait(found)


def found_by(work: Callable[[], Made]) -> Made | Exception:
    """The result of `work`, or what it raises, as an error that can be told in an event loop: a library written in
    another language may raise what is no Exception, and what would end a thread or the loop."""
    try:
        return work()
    except BaseException as error:
        return tellable(error)


def tellable(error: BaseException) -> Exception:
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    made = HeedError(f"{type(error).__name__} where the model was at work")
    made.__cause__ = error
    return made


def hand_over(found: Sequence[tuple[ModelJob | WritingJob, Any]]) -> None:
    """Gives each job its result in its event loop, waking each loop only once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[ModelJob | WritingJob, Any]]] = {}
    for who, what in found:
        loops.setdefault(who.loop, []).append((who, what))
    for loop, own in loops.items():
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(_tell, own)


def _tell(found: Sequence[tuple[ModelJob | WritingJob, Any]]) -> None:
    for who, what in found:
        who.tell(what)
