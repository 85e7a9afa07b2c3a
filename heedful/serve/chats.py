"""Chat models: the answer to a conversation, generated in the running batch; and our own route for it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Protocol, runtime_checkable

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from heedful.data.text.conversations import messages_of
from heedful.errors import InputError, counted
from heedful.serve.hosted import TOGETHER, Hosted, Models, StreamedPiece, Writing
from heedful.serve.own import MOST_LETTERS, MOST_TOKENS, STRICT, given_json, model_for, openapi_body, request_model, sse
from heedful.serve.public import EventStream
from heedful.serve.refusals import Refused
from heedful.verbs.use import options_of

Spoken = Mapping[str, Any]
MOST_MESSAGES = 1024


@runtime_checkable
class Converses(Protocol):
    """What is needed of a chat model: the prompt that it makes of a conversation, and the blanks before its answers."""

    def asked(self, messages: Sequence[Spoken], tokens: int) -> Any: ...
    @property
    def written(self) -> Any: ...


class Reading:
    """A conversation as a model reads it: the prompt's tokens, the most tokens of an answer, and how many of the first
    turns were dropped because the context had no room for them."""

    def __init__(self, hosted: Hosted, asked: Any, lead: str) -> None:
        self.hosted, self.ids, self.tokens, self.forgotten = hosted, asked.ids, asked.tokens, asked.forgotten
        self.lead = lead

    def begun(self, tokens: Sequence[int]) -> "Reading":
        """Makes the answer begin with these tokens. Raises Refused for invalid or too many tokens."""
        size = self.hosted.served.tokenizer.size  # type: ignore[attr-defined]
        if not all(0 <= token < size for token in tokens):
            raise Refused(400, "tokens that the model does not have", f"they are 0 to {size - 1:,}")
        if len(tokens) >= self.tokens:
            raise Refused(400, f"an answer that begins with {len(tokens):,} tokens has at most {self.tokens:,}")
        self.ids, self.tokens = [*self.ids, *tokens], self.tokens - len(tokens)
        self.lead = "" if tokens else self.lead
        return self

    async def answer(
        self, stop: tuple[str, ...], sampling: Mapping[str, Any], *, at_once: int = 1, top: int = 0
    ) -> AsyncGenerator[StreamedPiece, None]:
        """The answer, piece by piece. Closing it cancels it."""
        writing = Writing(tokens=self.tokens, stop=stop, sampling=sampling, exact=True, at_once=at_once, top=top)
        pieces, held = self.hosted.write(self.ids, writing), self.lead
        assert isinstance(pieces, AsyncGenerator)
        async with aclosing(pieces):
            async for piece in pieces:
                shown, held = without(held, piece.text)
                yield replace(piece, text=shown, blanks=len(piece.text) - len(shown))


def without(held: str, text: str) -> tuple[str, str]:
    """A piece without the blanks that are held back, and those that remain to be held back."""
    if held.startswith(text):
        return "", held[len(text) :]
    return text.removeprefix(held), ""


async def read(hosted: Hosted, messages: Sequence[Spoken], tokens: int) -> Reading:
    """Raises InputError for a conversation that cannot be answered."""
    served = hosted.served
    if not isinstance(served, Converses):
        raise InputError(f"{hosted.name} has not learnt to chat", fix="ask a chat model")

    def work() -> Reading:
        return Reading(hosted, served.asked(messages, tokens), served.written.lead)

    return await hosted.alone(work, size=sum(len(one.get("content") or "") for one in messages))


class Turn(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    role: Annotated[str, Field(min_length=1, max_length=100)]
    content: Annotated[str, Field(max_length=MOST_LETTERS)] | None = None


def routes(models: Models) -> APIRouter:
    router = APIRouter()
    able = {name: model for name, model in models.items() if model.row.converses}
    if not able:
        return router
    verb = next(iter(able.values())).row.converses
    questions = {name: model.row.asks[verb]() for name, model in able.items()}
    base = request_model(verb, [question.options for question in questions.values()])

    class Conversation(base):  # type: ignore[misc,valid-type]
        model_config = STRICT

        messages: Annotated[list[Turn], Field(min_length=1, max_length=MOST_MESSAGES)] | None = Field(
            None, description="The conversation so far."
        )
        begun: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MOST_TOKENS)] | None = Field(
            None, description="Tokens with which the answer begins."
        )

    async def answer(request: Request) -> Response:
        """The next turn of a conversation, given as "messages", or as a "text" that begins one. The answer continues
        the tokens in "begun"."""
        given = await given_json(request, Conversation)
        model = model_for(models, verb, [*able], given["model"])
        text = given["text"] if given["inputs"] is None else given["inputs"]
        if (given["messages"] is None) == (text is None) or isinstance(text, list):
            raise Refused(422, "one of messages and text is needed", 'give "messages": [{"role", "content"}, ...]')
        settings = {**(given["options"] or {}), **({} if given["system"] is None else {"system": given["system"]})}
        options = options_of(questions[model.name], verb, settings)
        spoken = messages_of(given["messages"] or [{"role": "user", "content": text}])
        if options.system and not any(one["role"] == "system" for one in spoken):
            spoken = [{"role": "system", "content": options.system}, *spoken]
        found = (await read(model, spoken, options.tokens)).begun(given["begun"] or ())
        at_once = 1 if given["stream"] else TOGETHER
        pieces = found.answer(tuple(options.stop), options.sampling, at_once=at_once)
        if given["stream"]:
            return EventStream(sse(await anext(pieces), pieces))
        said, tokens = "", list[int | None]()
        async with aclosing(pieces):
            async for piece in pieces:
                said, tokens = said + piece.text, [*tokens, piece.token]
        record = {"role": "assistant", "content": said, "tokens": [token for token in tokens if token is not None]}
        if found.forgotten:
            record["warning"] = f"the context has no room for the first {counted(found.forgotten, 'turn')}"
        return JSONResponse({"model": model.name, "answers": [record]})

    body = openapi_body(Conversation)
    router.add_api_route(f"/api/{verb}", answer, methods=["POST"], name=verb, openapi_extra=body)
    return router
