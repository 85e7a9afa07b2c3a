"""The answers of OpenAI's protocol, whole or as events, and their log-probabilities."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from itertools import accumulate
from typing import Any

from fastapi import Response

from heedful.serve.continued import Continued, ContinuesTexts, TokenScore, echoed, widths, within
from heedful.serve.encoded import in_json
from heedful.serve.openai_requests import CompletionRequest
from heedful.serve.public import EventStream, in_one_line
from heedful.serve.refusals import OPENAI, shaped


class CompletionResponse:
    """The common parts of an answer, and its usage: the numbers of tokens that were read and made. `tells_usage`:
    streamed answers have an event for the usage too."""

    def __init__(self, prefix: str, kind: str, model: str, *, tells_usage: bool) -> None:
        self.head = {"id": f"{prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}
        self.kind, self.read, self.made, self.tells_usage = kind, 0, 0, tells_usage

    async def whole(self, choices: Callable[[], list[dict[str, Any]]]) -> Response:
        """The answer with the choices, which are made and encoded in another thread: with log-probabilities they may
        be millions of values."""
        each = await asyncio.to_thread(choices)
        return await in_json(self.head | {"object": self.kind, "choices": each, "usage": self.usage()})

    def usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.read,
            "completion_tokens": self.made,
            "total_tokens": self.read + self.made,
        }

    def event(self, choice: dict[str, Any] | None) -> str:
        """An event with a choice; without one, the event with the usage."""
        body = self.head | {"object": self.kind, "choices": [] if choice is None else [choice]}
        if self.tells_usage:
            body["usage"] = self.usage() if choice is None else None
        return event_of(body)


def event_of(body: object) -> str:
    return f"data: {json.dumps(body)}\n\n"


async def streamed(answer: CompletionResponse, events: AsyncGenerator[str, None]) -> Response:
    """Streams the events of an answer, and its usage if that is asked for. An error before the first event has its own
    HTTP status; a later one becomes an event."""
    first = await anext(events)

    async def told() -> AsyncIterator[str]:
        try:
            yield first
            async for event in events:
                yield event
            if answer.tells_usage:
                yield answer.event(None)
            yield "data: [DONE]\n\n"
        except Exception as error:
            yield event_of(shaped(OPENAI, in_one_line(error)))
        finally:
            await events.aclose()

    return EventStream(told())


ScoredTokens = tuple[list[TokenScore], list[int]]  # tokens, and their offsets in the text


def of_prompt(served: ContinuesTexts, prompt: list[int], top: int) -> tuple[ScoredTokens, int]:
    """The scored tokens of an echoed prompt, and the offset after it."""
    ends = [0, *accumulate(widths(served, prompt))]
    return (echoed(served, prompt, top), ends[:-1]), ends[-1]


class CompletionChoice:
    """One of the texts of an answer, sent at once or bit by bit."""

    def __init__(self, served: ContinuesTexts, head: str, scores: tuple[ScoredTokens, int] | None) -> None:
        self.made, self._served, self._head, self._scores = Continued(), served, head, scores
        self._read = self._tokens = 0  # characters and tokens that were sent
        self._place = 0  # where the next token begins

    def told(self, number: int, asked: CompletionRequest) -> dict[str, Any]:
        """The part that was not sent yet."""
        made, finish = self.made, self.made.finish or (None if asked.stream else "length")
        told = {"index": number, "text": self._head + made.text[self._read :], "finish_reason": finish}
        self._head, self._read = "", len(made.text)
        return told | {"logprobs": None if self._scores is None else self._logprobs(asked)}

    def _logprobs(self, asked: CompletionRequest) -> dict[str, list[Any]]:
        assert self._scores is not None
        (rows, offsets), at = self._scores
        own, begins, self._place = within(
            self._served, self.made, first=self._tokens, place=self._place, stops=bool(asked.stops), at=at
        )
        rows, offsets = rows + own, offsets + begins
        self._tokens += len(own)
        self._scores = ([], []), at
        return {
            "tokens": [row.text for row in rows],
            "token_logprobs": [row.logprob for row in rows],
            "top_logprobs": [row.top for row in rows],
            "text_offset": offsets,
        }
