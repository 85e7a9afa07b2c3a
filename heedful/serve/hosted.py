"""A model that is being served: all that is asked of it goes through here, and one thread of its own computes."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.run.task import Served, Task

Made = TypeVar("Made")
Record = Mapping[str, Any]
TOGETHER = 16  # tokens that come together in an answer that is told as a whole


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a language model is to continue a text; `sampling` are keys of `heedful.decode.settings.Sampling`. `exact`:
    the prompt is tokens, and nothing is to be put before them. `at_once`: pieces that may come together, which costs
    less in an answer that is told as a whole. `top`: how many of the likeliest tokens are told with each."""

    tokens: int = 200
    stop: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    at_once: int = 1
    top: int = 0


@dataclass(frozen=True)
class StreamedPiece:
    """What is added to a text: `text` (maybe nothing yet) by `token`, with its log-probability in nats. The last piece
    has a `finish`: "stop" (the model ended, or came to a stop string) or "length"; its token may be None. `top`: the
    likeliest tokens in its place, with theirs. `blanks`: characters before its text that are not told."""

    text: str
    token: int | None = None
    logprob: float = 0.0
    finish: str | None = None
    top: tuple[tuple[int, float], ...] = ()
    blanks: int = 0


@runtime_checkable
class TextSide(Protocol):
    """An embedder that reads pictures as well, by the paths of files: who asks a server may name none."""

    tokenizer: Any

    def text_vectors(self, texts: Sequence[str]) -> tuple[Any, list[str]]: ...


@runtime_checkable
class Hosted(Protocol):
    """One model that is served. `name` is its folder's; `engine` is "own" or "ctranslate2"; `scores` are those of the
    weights that answer, and `outdated` tells whether the folder has others by now."""

    name: str
    run: Path
    row: Task
    served: Served
    engine: str
    scores: Mapping[str, float]

    @property
    def outdated(self) -> bool: ...

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        """The records that the verb gives for each input, as `heed VERB --json` prints them. `settings` are fields of
        the verb's options. Raises InputError, TextError for a text that cannot be answered, BusyError, LateError."""

    def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncIterator[StreamedPiece]:
        """A language model's continuation of a prompt, piece by piece; closing the iterator cancels it within two
        steps. Raises InputError, BusyError, LateError."""

    async def alone(self, work: Callable[[], Made]) -> Made:
        """What `work` gives, run in the model's own thread between other requests: looking in, vectors, likelihoods.
        Raises what it raises, BusyError and LateError."""

    async def embedded(self, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
        """A vector of each text, and a warning for each that was not read as a whole, or "". Raises InputError for a
        model that makes none, BusyError, LateError."""


Models = Mapping[str, Hosted]  # by their names


def reads_pictures(model: Hosted) -> bool:
    return any(part().reads == "pictures" for part in model.row.asks.values())
