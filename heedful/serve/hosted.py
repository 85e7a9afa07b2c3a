"""A model that is being served: all that is asked of it goes through here, and one thread of its own computes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.errors import InputError
from heedful.run.task import Served, Task
from heedful.tasks.load import load_model, row_of_model
from heedful.verbs.use import ask

Made = TypeVar("Made")
Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a language model is to continue a text; `sampling` are keys of `heedful.decode.settings.Sampling`."""

    tokens: int = 200
    stop: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """What is added to a text: `text` (maybe nothing yet) by `token`, with its log-probability in nats. The last piece
    has a `finish`: "stop" (the model ended, or came to a stop string) or "length"; its token may be None."""

    text: str
    token: int | None = None
    logprob: float = 0.0
    finish: str | None = None


@runtime_checkable
class Hosted(Protocol):
    """One model that is served. `name` is its folder's; `engine` is "own" or "ctranslate2"."""

    name: str
    run: Path
    row: Task
    served: Served
    engine: str

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        """The records that the verb gives for each input, as `heed VERB --json` prints them. `settings` are fields of
        the verb's options. Raises InputError, TextError for a text that cannot be answered, BusyError."""

    def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncIterator[Piece]:
        """A language model's continuation of a prompt, piece by piece; closing the iterator cancels it within two
        steps. Raises InputError, BusyError."""

    async def alone(self, work: Callable[[], Made]) -> Made:
        """What `work` gives, run in the model's own thread between other requests: looking in, vectors, likelihoods.
        Raises what it raises, and BusyError."""


def open_hosted(run: Path, *, engine: str = "auto") -> "SimpleHosted":
    served = load_model(run, engine="ctranslate2" if engine == "ctranslate2" else None)
    return SimpleHosted(run.name, run, row_of_model(served), served, "own")


class SimpleHosted:
    """One request after another."""

    def __init__(self, name: str, run: Path, row: Task, served: Any, engine: str) -> None:
        self.name, self.run, self.row, self.served, self.engine = name, run, row, served, engine
        self._thread = ThreadPoolExecutor(1)

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        return await self.alone(lambda: [ask(self.served, verb, [each], settings) for each in inputs])

    async def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncIterator[Piece]:
        if not isinstance(prompt, str):
            raise InputError("tokens as a prompt")
        made = await self.alone(
            lambda: self.served.generate(prompt, tokens=writing.tokens, stop=writing.stop, **writing.sampling)[0]
        )
        for token, logprob in zip(made.tokens, made.logprobs, strict=True):
            yield Piece("", token, logprob)
        yield Piece(made.text, finish="length" if len(made.tokens) == writing.tokens else "stop")

    async def alone(self, work: Callable[[], Made]) -> Made:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
