"""What one request may cost: limits of a model, what its parts promise so that it can be held to them, and how large a
request is."""

import asyncio
import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from heedful.data.images.files import ImageFile, image_header
from heedful.data.sound.files import sound_seconds
from heedful.decode.settings import Sampling
from heedful.run.task import Ask

LETTERS_A_SECOND = 32  # of sound: which take as long to read as it, about
PIXELS = 512  # of a picture, which take about as long as a letter


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one model. `tokens` are counted times the beam, or the samples, that they are searched with."""

    waiting: int = 256  # requests in the queue
    inputs: int = 64  # inputs that are answered together
    rows: int = 32  # texts that are continued at the same time
    seconds: float = 60.0  # until an answer, or the next piece of a text
    gather: float = 0.004  # seconds that a batch waits to become as large as the one before
    tokens: int = 1 << 19  # of one request
    at_once: int = 1 << 14  # tokens that are kept at the same time
    quick: int = 1 << 12  # tokens of a request, and
    letters: int = 2000  # letters of its texts, from which on it is dear
    short: int = 256  # new tokens of a text, up to which rows are kept free for it
    read: int = 2048  # tokens of prompts that are read before the next step of the others


@runtime_checkable
class AddedText(Protocol):
    """What a step adds to the text with this number."""

    @property
    def text(self) -> int: ...
    @property
    def piece(self) -> str: ...
    @property
    def token(self) -> int | None: ...
    @property
    def logprob(self) -> float: ...
    @property
    def finish(self) -> str | None: ...
    @property
    def top(self) -> tuple[tuple[int, float], ...]: ...


@runtime_checkable
class TextWriter(Protocol):
    """Continues texts, which may be added and cancelled at any time."""

    def __len__(self) -> int: ...
    def add(
        self, ids: Sequence[int], sampling: Sampling, *, tokens: int, stop: Sequence[str] = (), top: int = 0
    ) -> int: ...
    def cancel(self, number: int) -> None: ...
    def step(self) -> Sequence[AddedText]: ...


@runtime_checkable
class Writes(Protocol):
    """A model that continues texts."""

    @property
    def context(self) -> int: ...
    def begun(self, prompt: str | Sequence[int]) -> list[int]: ...
    def writer(self, *, rows: int) -> TextWriter: ...


@runtime_checkable
class LibraryServed(Protocol):
    """A model that another library computes."""

    engine: Any


@runtime_checkable
class Stoppable(Protocol):
    """A library that can be stopped between two calls: `between` is called before each, and may raise. `own` is the
    same model by our own code."""

    def serve(self, own: Any, between: Callable[[], None]) -> None: ...


def parts_in_order(model: nn.Module) -> Iterator[nn.Module]:
    """What a model computes one after another: its parts, and the blocks of each."""
    for part in model.children():
        yield part
        yield from (block for listed in part.modules() if isinstance(listed, nn.ModuleList) for block in listed)


async def reading_size(question: Ask, inputs: Sequence[str]) -> int:
    """About how long a model takes to read the inputs, in letters. Files are opened beside the loop."""
    if question.reads == "texts":
        return sum(map(len, inputs))
    return await asyncio.to_thread(_sounds_size if question.reads == "sounds" else _pictures_size, inputs)


def _sounds_size(files: Sequence[str]) -> int:
    return int(LETTERS_A_SECOND * sum(map(sound_seconds, files)))


def _pictures_size(files: Sequence[str]) -> int:
    headers = [image_header(ImageFile(Path(name))) for name in files if name]
    return sum(rows * columns for _, rows, columns in headers) // PIXELS


def give_back_memory() -> None:
    """To the system, what was freed: glibc keeps gigabytes of it."""
    with suppress(AttributeError, OSError):  # of another C library
        ctypes.CDLL(None).malloc_trim(0)
