"""The interface of a model that is served: all requests go through it, and a thread of its own computes."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.run.task import Served, Task
from heedful.serve.limits import Limits
from heedful.verbs.use import embedder_in

Made = TypeVar("Made")
Record = Mapping[str, Any]
TOGETHER = 16  # tokens that arrive together in an answer that is not streamed


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a language model continues a text; `sampling` has keys of `heedful.decode.settings.Sampling`. `exact`: the
    prompt is tokens, and nothing is put before them. `at_once`: pieces that may arrive together, which costs less in an
    answer that is not streamed. `top`: how many of the likeliest tokens are returned with each token."""

    tokens: int = 200
    stop: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = False
    at_once: int = 1
    top: int = 0


@dataclass(frozen=True)
class StreamedPiece:
    """A piece of a continuation: `token` adds `text` (which may be empty), with its log-probability in nats. The last
    piece has a `finish`: "stop" (the model ended, or reached a stop string) or "length"; its token may be None. `top`:
    the likeliest tokens at its position, with their log-probabilities. `blanks`: omitted characters before its text."""

    text: str
    token: int | None = None
    logprob: float = 0.0
    finish: str | None = None
    top: tuple[tuple[int, float], ...] = ()
    blanks: int = 0


@runtime_checkable
class TextSide(Protocol):
    """An embedder that also reads pictures, by file names, which the clients of a server may not send."""

    tokenizer: Any

    def text_vectors(self, texts: Sequence[str]) -> tuple[Any, list[str]]: ...


@runtime_checkable
class Hosted(Protocol):
    """One model that is served. `name` is its folder's; `engine` is "own", "ctranslate2" or "llama.cpp"; `scores` are
    those of the loaded weights, and `outdated` says whether the folder has others by now."""

    name: str
    run: Path
    row: Task
    served: Served
    engine: str
    scores: Mapping[str, float]
    limits: Limits

    @property
    def outdated(self) -> bool: ...

    @property
    def trouble(self) -> str:
        """Why it cannot answer, or ""."""

    async def ask(
        self, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> list[list[Record]]:
        """The verb's records for each input, as `heed VERB --json` prints them. `settings` are fields of the verb's
        options. Raises InputError, TextError for a text that cannot be answered, BusyError, LateError."""

    def write(self, prompt: str | Sequence[int], writing: Writing) -> AsyncIterator[StreamedPiece]:
        """A language model's continuation of a prompt, piece by piece; closing the iterator cancels it within two
        steps. Raises InputError, BusyError, LateError."""

    async def alone(self, work: Callable[[], Made], *, size: int = 0) -> Made:
        """The result of `work`, run in a thread of the model's: attention, vectors, likelihoods. `size`: the letters
        that it reads, or what takes about as long; others go before what is large. Raises what it raises, BusyError and
        LateError."""

    async def embedded(self, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
        """A vector for each text, and for each a warning if it was not read completely, or "". Raises InputError for a
        model without vectors, BusyError, LateError."""


Models = Mapping[str, Hosted]  # by their names


def reads_of(model: Hosted) -> str:
    """What the model reads: "texts", "pictures" or "sounds"."""
    return next((kind for part in model.row.asks.values() if (kind := part().reads) != "texts"), "texts")


def reads_pictures(model: Hosted) -> bool:
    return reads_of(model) == "pictures"


def record_of(prompt: str, pieces: Sequence[StreamedPiece]) -> Record:
    """The record of a text that was written whole."""
    tokens = [piece for piece in pieces if piece.token is not None]
    return {
        "prompt": prompt,
        "text": "".join(piece.text for piece in pieces),
        "tokens": [piece.token for piece in tokens],
        "logprobs": [piece.logprob for piece in tokens],
    }


def vectors_of_texts(row: Task, served: Served, inputs: Sequence[str]) -> tuple[list[list[float]], list[str]]:
    """The vector of each text, and a warning where it was not read as a whole, or ""."""
    embedder = embedder_in(row, served)
    vectors, warned = (embedder.text_vectors if isinstance(embedder, TextSide) else embedder.vectors_of)(inputs)
    return vectors.tolist(), warned
