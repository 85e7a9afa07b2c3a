"""The jobs in a model's queue: questions, work and texts, each with its waiter in an event loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from heedful.decode.settings import Sampling
from heedful.serve.hosted import StreamedPiece, Writing

Made = TypeVar("Made")


async def given_up(tasks: Sequence["asyncio.Future[Any]"]) -> None:
    """Cancels the tasks that are not done, and waits until all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(eq=False, kw_only=True)
class ModelJob:
    """A job whose result is awaited in an event loop."""

    key: str | None = None  # jobs with equal keys may be answered together; None: alone
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
    try:
        return work()
    except Exception as error:
        return error


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
