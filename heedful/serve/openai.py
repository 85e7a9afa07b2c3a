"""OpenAI's protocol (https://platform.openai.com/docs/api-reference): models, completions, chats and embeddings.

Chats are answered by chat models, and by translators, which translate the last message: many programs know only this
route. Seeds are our own: the same request has the same answer.
"""

import base64
import secrets
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast, runtime_checkable

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from torch.nn.functional import normalize

from heedful.core.seeds import counter_seed
from heedful.errors import InputError, TextError, TooLongError
from heedful.run.task import Embedder
from heedful.serve.budget import refuse_tokens, whole_in_time
from heedful.serve.chats import read
from heedful.serve.continued import Continued, ContinuesTexts, together, within
from heedful.serve.gate import Rules
from heedful.serve.hosted import TOGETHER, Hosted, Models, StreamedPiece, TextSide, Writing
from heedful.serve.languages import pair_of, translated, unique
from heedful.serve.openai_answers import CompletionChoice, CompletionResponse, ScoredTokens, of_prompt, streamed
from heedful.serve.openai_requests import MOST_TEXTS, ChatRequest, CompletionRequest, EmbeddingRequest
from heedful.serve.public import GENERATE, TRANSCRIBE, TRANSLATE, body_shown, door, read_body
from heedful.serve.refusals import Refused
from heedful.verbs.use import embedder_in

LANGUAGES = ("to", "from_language")  # our own keys, for translators
MOST_TRANSLATED = 50_000  # characters of a message
LETTERS = 4  # of a token, about


@runtime_checkable
class TextVectors(Protocol):
    """An embedder that reads only texts."""

    context: int | None
    frame: Any
    tokenizer: Any

    def vectors(self, rows: Sequence[Any]) -> Any: ...
    def vectors_of(self, texts: Sequence[str]) -> tuple[Any, list[str]]: ...


@runtime_checkable
class WordTable(Protocol):
    """An embedder with a table of word vectors."""

    words: Any
    numbers: Any

    def vectors_of(self, texts: Sequence[str]) -> tuple[Any, list[str]]: ...


@runtime_checkable
class TranslatorTokenizers(Protocol):
    """The vocabularies of a translator."""

    source: Any
    target: Any


def routes(models: Models) -> APIRouter:
    router = APIRouter(prefix="/v1", route_class=door(most_bytes=Rules.text_bytes), tags=["OpenAI"])
    told = {name: _model(hosted) for name, hosted in models.items() if _answers(hosted)}

    @router.get("/models")
    async def listed() -> dict[str, Any]:
        return {"object": "list", "data": [*told.values()]}

    @router.get("/models/{name}")
    async def one(name: str) -> dict[str, Any]:
        return told[_hosted(models, name).name]

    @router.post("/completions", openapi_extra=body_shown(CompletionRequest, forms=False))
    async def completions(request: Request) -> Response:
        asked = await read_body(request, CompletionRequest)
        hosted = _hosted(models, asked.model)
        if GENERATE not in hosted.row.asks:
            what = f"this model {hosted.row.does}, and does not continue texts"
            hint = ": use /v1/chat/completions" if TRANSLATE in hosted.row.asks else ""
            raise Refused(400, what + hint, param="model")
        return await _complete(hosted, asked)

    @router.post("/chat/completions", openapi_extra=body_shown(ChatRequest, forms=False))
    async def chat(request: Request) -> Response:
        asked = await read_body(request, ChatRequest)
        hosted = _hosted(models, asked.model)
        if TRANSLATE in hosted.row.asks:
            return await _translate(hosted, asked)
        for name in LANGUAGES:
            if getattr(asked, name):
                raise Refused(400, f"{name} is for translators: leave it out", param=name)
        if hosted.row.converses:
            return await _converse(hosted, asked)
        what = f"this model {hosted.row.does}, and has not learnt to chat"
        hint = ": use /v1/completions" if GENERATE in hosted.row.asks else ""
        raise Refused(400, what + hint, param="model")

    @router.post("/embeddings", openapi_extra=body_shown(EmbeddingRequest, forms=False))
    async def embeddings(request: Request) -> Response:
        asked = await read_body(request, EmbeddingRequest)
        hosted = _hosted(models, asked.model)
        size = len(await request.body())
        return JSONResponse(await hosted.alone(lambda: _embed(hosted, asked), size=size))

    return router


def _answers(hosted: Hosted) -> bool:
    row = hosted.row
    return any(verb in row.asks for verb in (GENERATE, TRANSLATE, TRANSCRIBE)) or row.embedder is not None


def _hosted(models: Models, name: str) -> Hosted:
    found = models.get(name)
    if found is None or not _answers(found):
        raise Refused(404, f"The model `{name}` does not exist", param="model", code="model_not_found")
    return found


def _model(hosted: Hosted) -> dict[str, Any]:
    created = int((hosted.run / "task.json").stat().st_mtime)
    return {"id": hosted.name, "object": "model", "created": created, "owned_by": "heedful"}


async def _complete(hosted: Hosted, asked: CompletionRequest) -> Response:
    count = asked.n or 1
    if len(asked.prompts) * count > MOST_TEXTS:
        what = f"{len(asked.prompts) * count:,} texts at once, at most {MOST_TEXTS:,}: ask for fewer"
        raise Refused(400, f"n: {what}", param="n")
    if asked.best_of not in (None, count):
        raise Refused(400, f"best_of: only {count}, as many as are handed over", param="best_of")
    served = cast(ContinuesTexts, hosted.served)
    prompts = asked.prompts
    most = 16 if asked.max_tokens is None else asked.max_tokens
    refuse_tokens(len(prompts) * count * most, hosted.limits)
    letters = sum(len(each) for each in prompts if isinstance(each, str))
    read = await hosted.alone(lambda: _tokens(served, prompts), size=letters)
    room = served.context + 1 - len(served.before)
    if asked.echo and asked.logprobs is not None and (longest := max(map(len, read))) > room:
        what = f"prompt: {longest:,} tokens, but with echo and logprobs the model reads at most {room:,}"
        raise Refused(400, what, param="prompt", code="context_length_exceeded")
    answer = CompletionResponse("cmpl", "text_completion", hosted.name, tells_usage=asked.tells_usage)
    answer.read = sum(map(len, read))
    seed = secrets.randbits(31) if asked.seed is None else asked.seed

    def begun(number: int) -> AsyncIterator[StreamedPiece]:
        prompt, copy = divmod(number, count)
        own = counter_seed("choice", seed, prompt, copy) if number else seed
        sampling = asked.sampling | {"seed": own}
        how = Writing(tokens=most, stop=asked.stops, sampling=sampling, **_paced(asked, asked.logprobs))
        return hosted.write(prompts[prompt], how)

    pieces = together([begun(number) for number in range(len(prompts) * count)] if most else [])
    heads = [_text_of(served, prompt) if asked.echo else "" for prompt in prompts]
    scores: list[tuple[ScoredTokens, int] | None] = [None for _ in prompts]
    if (top := asked.logprobs) is not None:
        size = LETTERS * answer.read if asked.echo else 0
        scores = await hosted.alone(
            lambda: [of_prompt(served, each if asked.echo else [], top) for each in read], size=size
        )
    choices = [CompletionChoice(served, *own) for own in zip(heads, scores, strict=True) for _ in range(count)]
    if asked.stream:
        return await streamed(answer, _completion_events(answer, pieces, choices, asked))
    async with aclosing(pieces), whole_in_time(hosted.name, hosted.limits):
        async for number, piece in pieces:
            choices[number].made.add(piece)
    answer.made = sum(len(choice.made.tokens) for choice in choices)
    return await answer.whole(lambda: [choice.told(number, asked) for number, choice in enumerate(choices)])


def _paced(asked: CompletionRequest | ChatRequest, top: int | None) -> dict[str, Any]:
    """How many pieces arrive together, and how many of the likeliest tokens come with each."""
    return {"at_once": 1 if asked.stream else TOGETHER, "top": top or 0}


async def _completion_events(
    answer: CompletionResponse,
    pieces: AsyncGenerator[tuple[int, StreamedPiece], None],
    choices: Sequence[CompletionChoice],
    asked: CompletionRequest,
) -> AsyncGenerator[str, None]:
    async with aclosing(pieces):
        for number, choice in enumerate(choices):
            if asked.echo:
                yield answer.event(choice.told(number, asked))
        async for number, piece in pieces:
            answer.made += piece.token is not None
            choices[number].made.add(piece)
            if piece.text or piece.finish:
                yield answer.event(choices[number].told(number, asked))
        for number, choice in enumerate(choices):
            if choice.made.finish is None:  # no token was asked for
                choice.made.finish = "length"
                yield answer.event(choice.told(number, asked))


def _tokens(served: ContinuesTexts, prompts: Sequence[str | list[int]]) -> list[list[int]]:
    """The tokens of each prompt. Raises Refused for a number that is no token of the model."""
    for prompt in prompts:
        if not isinstance(prompt, str) and max(prompt) >= served.tokenizer.size:
            what = f"prompt: {max(prompt)} is no token of this model, which has {served.tokenizer.size:,}"
            raise Refused(400, what, param="prompt")
    return [served.tokenizer.encode_whole([each])[0] if isinstance(each, str) else each for each in prompts]


def _text_of(served: ContinuesTexts, prompt: str | list[int]) -> str:
    return prompt if isinstance(prompt, str) else served.tokenizer.decode_whole(prompt)


async def _converse(hosted: Hosted, asked: ChatRequest) -> Response:
    """The next turn of a conversation, sampled `n` times."""
    count = asked.n or 1
    if asked.top_logprobs and not asked.logprobs:
        raise Refused(400, "top_logprobs is for logprobs: true", param="top_logprobs")
    spoken = [
        {"role": "system" if message.role == "developer" else message.role, "content": message.text}
        for message in asked.messages
    ]
    try:
        found = await read(hosted, spoken, asked.most_tokens)
    except TextError as error:
        code = "context_length_exceeded" if isinstance(error, TooLongError) else None
        raise Refused(400, f"messages: {error.what}", param="messages", code=code) from None
    except InputError as error:
        raise Refused(400, f"messages: {error}", param="messages") from None
    refuse_tokens(count * found.tokens, hosted.limits)
    seed = secrets.randbits(31) if asked.seed is None else asked.seed
    answer = _chat_response(hosted, asked)
    answer.read = len(found.ids)
    if found.forgotten:
        answer.head["forgotten_turns"] = found.forgotten

    def begun(number: int) -> AsyncIterator[StreamedPiece]:
        own = counter_seed("choice", seed, 0, number) if number else seed
        return found.answer(asked.stops, asked.sampling | {"seed": own}, **_paced(asked, asked.top_logprobs))

    pieces = together([begun(number) for number in range(count)])
    served = cast(ContinuesTexts, hosted.served)
    if asked.stream:
        return await streamed(answer, _turn_events(answer, pieces, served, asked))
    made = [Continued() for _ in range(count)]
    async with aclosing(pieces), whole_in_time(hosted.name, hosted.limits):
        async for number, piece in pieces:
            made[number].add(piece)
    answer.made = sum(len(each.tokens) for each in made)

    def turns() -> list[dict[str, Any]]:
        return [_turn(i, each.text, each.finish, _turn_scores(served, each, asked)[0]) for i, each in enumerate(made)]

    return await answer.whole(turns)


def _chat_response(hosted: Hosted, asked: ChatRequest) -> CompletionResponse:
    kind = "chat.completion.chunk" if asked.stream else "chat.completion"
    return CompletionResponse("chatcmpl", kind, hosted.name, tells_usage=asked.tells_usage)


def _turn(number: int, text: str, finish: str | None, scores: dict[str, Any] | None = None) -> dict[str, Any]:
    """A choice of an answer that is not streamed."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"index": number, "message": message, "finish_reason": finish, "logprobs": scores}


def _delta(
    number: int, delta: dict[str, Any], finish: str | None = None, scores: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A choice of a streamed event."""
    return {"index": number, "delta": delta, "finish_reason": finish, "logprobs": scores}


def _turn_scores(
    served: ContinuesTexts, made: Continued, asked: ChatRequest, first: int = 0, place: int = 0
) -> tuple[dict[str, Any] | None, int, int]:
    """The scores of the tokens of the text from `first` on, whose place is `place`; and the number and the place of the
    next token."""
    if not asked.logprobs:
        return None, first, place

    def by_value(named: tuple[str, float]) -> float:
        return -named[1]

    def token(text: str, logprob: float | None) -> dict[str, Any]:
        return {"token": text, "logprob": logprob, "bytes": [*text.encode()]}

    most = asked.top_logprobs or 0
    rows, _, place = within(served, made, first=first, place=place, stops=bool(asked.stops))
    content = [
        token(row.text, row.logprob)
        | {"top_logprobs": [token(*each) for each in sorted((row.top or {}).items(), key=by_value)[:most]]}
        for row in rows
    ]
    return {"content": content, "refusal": None}, first + len(rows), place


async def _turn_events(
    answer: CompletionResponse,
    pieces: AsyncGenerator[tuple[int, StreamedPiece], None],
    served: ContinuesTexts,
    asked: ChatRequest,
) -> AsyncGenerator[str, None]:
    begun: dict[int, Continued] = {}
    told: dict[int, tuple[int, int]] = {}  # tokens, and where the next begins
    async with aclosing(pieces):
        async for number, piece in pieces:
            if number not in begun:
                begun[number], told[number] = Continued(), (0, 0)
                yield answer.event(_delta(number, {"role": "assistant", "content": ""}))
            begun[number].add(piece)
            answer.made += piece.token is not None
            if not piece.text and not piece.finish:
                continue
            scores, first, place = _turn_scores(served, begun[number], asked, *told[number])
            told[number] = first, place
            said = {"content": piece.text} if piece.text else {}
            yield answer.event(_delta(number, said, piece.finish, scores))


async def _translate(hosted: Hosted, asked: ChatRequest) -> Response:
    """The `n` best translations of the user's last message."""
    if asked.logprobs or asked.top_logprobs:
        raise Refused(400, "logprobs is not served here: leave it out, or send false", param="logprobs")
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(asked, name):
            raise Refused(400, f"{name} is not served by a translator: leave it out, or send 0", param=name)
    said = next((message.text for message in reversed(asked.messages) if message.role == "user"), None)
    if said is None:
        raise Refused(400, 'messages: none is by "user", and so there is nothing to translate', param="messages")
    if len(said) > MOST_TRANSLATED:
        what = f"messages: at most {MOST_TRANSLATED:,} characters are translated at once"
        raise Refused(400, what, param="messages", code="context_length_exceeded")
    served = cast(TranslatorTokenizers, hosted.served)
    languages = {name: value for name in LANGUAGES if (value := getattr(asked, name))}
    if pair_of(hosted) is None:  # a summariser, which reads whole texts
        settings = {"decoding": {"n_best": asked.n}} if (asked.n or 1) > 1 else {}
        ((best,),) = await hosted.ask(TRANSLATE, [said], settings | languages)
        found = unique(each["text"] for each in best["hypotheses"])
    else:
        (found,) = await translated(hosted, [said], n=asked.n or 1, **languages)
    answer = _chat_response(hosted, asked)
    answer.read = len(served.source.encode([said])[0])
    cut = [_cut(served, text, asked.most_tokens, asked.stops) for text in found]
    answer.made = sum(count for *_, count in cut)
    made = [(text, finish) for text, finish, _ in cut]
    if asked.stream:
        return await streamed(answer, _chat_events(answer, made))
    return await answer.whole(lambda: [_turn(number, *one) for number, one in enumerate(made)])


def _cut(served: TranslatorTokenizers, text: str, most: int, stops: Sequence[str]) -> tuple[str, str, int]:
    """A translation cut to `most` tokens and before any of `stops`; why it ends, and its number of tokens."""
    ids, finish = served.target.encode([text])[0], "stop"
    if len(ids) > most:
        ids, finish = ids[:most], "length"
        text = served.target.decode(ids)
    ends = [at for each in stops if (at := text.find(each)) >= 0]
    if ends:
        text, finish = text[: min(ends)], "stop"
        (ids,) = served.target.encode([text])
    return text, finish, len(ids)


async def _chat_events(answer: CompletionResponse, made: Sequence[tuple[str, str]]) -> AsyncGenerator[str, None]:
    for number, (text, finish) in enumerate(made):
        for delta, end in (({"role": "assistant", "content": ""}, None), ({"content": text}, None), ({}, finish)):
            yield answer.event(_delta(number, delta, end))


def _embed(hosted: Hosted, asked: EmbeddingRequest) -> dict[str, Any]:
    """The vectors of texts, with norm 1 as OpenAI's; texts that are too long to be read completely are refused."""
    if hosted.row.embedder is None:
        raise Refused(400, f"this model {hosted.row.does}, and makes no vectors of texts", param="model")
    embedder = embedder_in(hosted.row, hosted.served)
    given = asked.input
    several = isinstance(given, list) and not isinstance(given[0], int)
    inputs = cast(list[str] | list[list[int]], given if several else [given])
    vectors, warned, read = _vectors(embedder, inputs)
    for number, warning in enumerate(warned):
        if warning:
            code = None if isinstance(embedder, WordTable) else "context_length_exceeded"
            raise Refused(400, f"input {number + 1}: {warning}", param="input", code=code)
    size = vectors.shape[1]
    if asked.dimensions not in (None, size):
        raise Refused(400, f"dimensions: the vectors of this model have {size}", param="dimensions")
    rows = [
        base64.b64encode(struct.pack(f"<{size}f", *row)).decode() if asked.encoding_format == "base64" else row
        for row in normalize(vectors, dim=1).tolist()
    ]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)],
        "model": hosted.name,
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }


def _vectors(embedder: Embedder, inputs: Sequence[str] | Sequence[list[int]]) -> tuple[Any, list[str], int]:
    """Vectors, a warning or "" for each, and how many tokens (for a table of word vectors: words) were read."""
    texts = [each for each in inputs if isinstance(each, str)]
    match embedder:
        case TextVectors() if texts:
            tokens = embedder.tokenizer.encode(texts)
            return *embedder.vectors_of(texts), sum(map(len, tokens))
        case TextVectors():
            rows = _token_rows(embedder, cast(Sequence[list[int]], inputs))
            return embedder.vectors(rows), [], sum(map(len, inputs))
        case TextSide() if texts:
            return *embedder.text_vectors(texts), sum(map(len, embedder.tokenizer.encode(texts)))
        case WordTable() if texts:
            return *embedder.vectors_of(texts), sum(len(text.split()) for text in texts)
    raise Refused(400, "input: this model reads no tokens: give texts", param="input")


def _token_rows(embedder: TextVectors, inputs: Sequence[list[int]]) -> list[Any]:
    size, room, own = embedder.tokenizer.size, embedder.context, embedder.frame.extra(pair=False)
    for number, ids in enumerate(inputs):
        if max(ids) >= size:
            what = f"input {number + 1}: {max(ids)} is no token of this model, which has {size:,}"
            raise Refused(400, what, param="input")
        if room is not None and len(ids) > room - own:
            what = f"input {number + 1}: {len(ids):,} tokens, but the model reads at most {room:,}"
            what += f" with {own} of its own"
            raise Refused(400, what, param="input", code="context_length_exceeded")
    return [embedder.frame.put(ids) for ids in inputs]
