"""Continuations of texts for public protocols: several at once, with the log-probability of each token and those of the
likeliest alternatives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from heedful.serve.hosted import StreamedPiece
from heedful.serve.jobs import given_up

Ids = list[int]
AT_ONCE = 16  # texts of one request that are continued at the same time
SPREAD = 7  # how many tokens back a character may have begun


@runtime_checkable
class Vocabulary(Protocol):
    @property
    def size(self) -> int: ...
    @property
    def bos(self) -> int: ...
    def encode_whole(self, texts: Sequence[str]) -> list[Ids]: ...
    def decode_whole(self, ids: Sequence[int]) -> str: ...
    def pieces(self, ids: Sequence[int]) -> list[str]: ...
    def settled(self, ids: Sequence[int]) -> bool: ...


@runtime_checkable
class ContinuesTexts(Protocol):
    """What is needed of a model that continues texts. `before` are the tokens that every prompt begins with, and
    `context` is the number of tokens that it can read."""

    tokenizer: Vocabulary
    model: Any

    @property
    def before(self) -> Ids: ...
    @property
    def context(self) -> int: ...


@dataclass
class Continued:
    """A continuation so far, and the log-probabilities of its tokens."""

    text: str = ""
    tokens: Ids = field(default_factory=Ids)
    weighed: "list[Weighed]" = field(default_factory=list)
    finish: str | None = None
    blanks: int = 0  # characters before the text
    texts: dict[int, str] = field(default_factory=dict)  # of tokens that were among the likeliest

    def add(self, piece: StreamedPiece) -> None:
        self.text += piece.text
        self.blanks += piece.blanks
        if piece.token is not None:
            self.tokens.append(piece.token)
            self.weighed.append((piece.logprob, piece.top))
        self.finish = piece.finish


class TokenScore(NamedTuple):
    """A token: its text, its log-probability (nats), and those of the likeliest tokens and its own; None for the first
    token of a text."""

    text: str
    logprob: float | None
    top: dict[str, float] | None


async def together(streams: Sequence[AsyncIterator[StreamedPiece]]) -> AsyncGenerator[tuple[int, StreamedPiece], None]:
    """The pieces of several continuations as they arrive, with the continuation's number. Closing it closes all."""
    pieces: asyncio.Queue[tuple[int, StreamedPiece | Exception | None]] = asyncio.Queue(64)
    gate = asyncio.Semaphore(AT_ONCE)

    async def follow(number: int, stream: AsyncIterator[StreamedPiece]) -> None:
        try:
            async with gate:
                async for piece in stream:
                    await pieces.put((number, piece))
            await pieces.put((number, None))
        except Exception as error:
            await pieces.put((number, error))
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    tasks = [asyncio.create_task(follow(number, stream)) for number, stream in enumerate(streams)]
    try:
        left = len(tasks)
        while left:
            number, found = await pieces.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                left -= 1
            else:
                yield number, found
    finally:
        await given_up(tasks)


def echoed(served: ContinuesTexts, prompt: Ids, top: int) -> list[TokenScore]:
    """The scores of a prompt's tokens, each given those before it."""
    begun = [*served.before, *prompt[:1]]
    rest = _scored(served, begun, prompt[1:], top)
    return named(served, prompt, [None, *rest]) if prompt else []


def within(
    served: ContinuesTexts, made: Continued, *, first: int, place: int, stops: bool, at: int = 0
) -> tuple[list[TokenScore], list[int], int]:
    """The tokens from `first` on that belong to the text, the offset of each, and the place after them. `place` is that
    of the first token in the text, and `at` the offset of the text itself. Tokens that are part of a stop string, or
    may become one, do not belong to the text."""
    rows, offsets = list[TokenScore](), list[int]()
    held = made.finish is None or (stops and made.finish == "stop")
    scores = named(served, made.tokens, made.weighed, first, made.texts)
    for score, width in zip(scores, widths(served, made.tokens, first), strict=True):
        if held and place >= made.blanks + len(made.text):
            break
        rows.append(score)
        offsets.append(at + place)
        place += width
    return rows, offsets, place


def widths(served: ContinuesTexts, ids: Ids, first: int = 0) -> Iterator[int]:
    """How many characters each token, from `first` on, adds to the text: 0 for a part of an incomplete character."""
    for number, piece in enumerate(_pieces(served, ids, first), first):
        yield len(piece) if served.tokenizer.settled(ids[max(0, number - SPREAD) : number + 1]) else 0


Weighed = tuple[float, Sequence[tuple[int, float]]]  # the log-probability of a token, and those of the likeliest


@torch.inference_mode()
def _scored(served: ContinuesTexts, begun: Ids, following: Ids, top: int) -> Iterator[Weighed]:
    """Scores tokens by reading the text once, in the windows that generation uses: where the text outgrows the context,
    the last half of it is read again."""
    done, device = 0, next(served.model.parameters()).device
    while done < len(following):
        past = [*begun, *following[:done]]
        past = past if len(past) + 1 < served.context else past[-max(1, served.context // 2) :]
        count = min(served.context + 1 - len(past), len(following) - done)
        own = following[done : done + count]
        logits = served.model(torch.tensor([[*past, *own[:-1]]], device=device))[0, len(past) - 1 :]
        logprobs = logits.float().log_softmax(-1)
        chosen = logprobs.gather(1, torch.tensor(own, device=device)[:, None])[:, 0].tolist()
        best = logprobs.topk(min(top, logprobs.shape[1]))
        for value, tokens, values in zip(chosen, best.indices.tolist(), best.values.tolist(), strict=True):
            yield value, list(zip(tokens, values, strict=True))
        done += count


def named(
    served: ContinuesTexts,
    ids: Ids,
    weighed: Sequence[Weighed | None],
    first: int = 0,
    texts: dict[int, str] | None = None,
) -> list[TokenScore]:
    """The scores of tokens, from `first` on, by their texts; a token without a text of its own is called "<token
    123>". `texts` are those of single tokens that are known, to which others are added."""
    found, texts = [], {} if texts is None else texts
    for token, text, each in zip(ids[first:], _texts(served, ids, first), weighed[first:], strict=True):
        if each is None:
            found.append(TokenScore(text, None, None))
            continue
        value, likeliest = each
        top = {text: value}
        for other, chance in likeliest:
            if other != token:
                if other not in texts:
                    (texts[other],) = _texts(served, [other])
                name = texts[other]
                top[f"<token {other}>" if name in top or "\ufffd" in name else name] = chance
        found.append(TokenScore(text, value, top if likeliest else None))
    return found


def _texts(served: ContinuesTexts, ids: Ids, first: int = 0) -> list[str]:
    return [piece.replace("▁", " ") for piece in _pieces(served, ids, first)]


def _pieces(served: ContinuesTexts, ids: Ids, first: int) -> list[str]:
    begin = max(0, first - SPREAD)
    return served.tokenizer.pieces(ids[begin:])[first - begin :]
