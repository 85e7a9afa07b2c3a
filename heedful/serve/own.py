"""Our own API: a route for each verb of the served models, one for vectors, and the state of the server."""

import asyncio
import dataclasses
import json
import logging
import re
import tempfile
import types
import typing
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from heedful.core.config import unknown_key
from heedful.data.images.files import ImageFile, image_header
from heedful.data.sound.files import sound_seconds
from heedful.decode.settings import SETTINGS
from heedful.errors import HeedError, StorageError
from heedful.run.task import Ask
from heedful.serve.bodies import MULTIPART, FormFile, form_of, json_of, media_type, strict_json
from heedful.serve.encoded import in_json, plain
from heedful.serve.hosted import Hosted, Models, StreamedPiece, Writing
from heedful.serve.meters import Meters
from heedful.serve.openai_requests import StopTexts
from heedful.serve.public import Direct, EventStream, inlined
from heedful.serve.refusals import STATUSES, Refused, fault_by_its_type, first_fault, refused
from heedful.store import files
from heedful.verbs.use import options_of

EMBED = "embed"
MOST_INPUTS = 128
MOST_LETTERS = 20_000  # of a text
MOST_ANSWERS = 256  # of a request
MOST_CHOSEN = 4096  # choices times texts: each is read together with its text
MOST_TOKENS = 2048  # in a list of them
MOST_LOOKED = 2000  # characters of a text whose attention is computed: weights and pictures grow with its square
LOOKED_AT_ONCE = 16 * MOST_LOOKED  # of all texts of a request
LOOKING = ("align", "steps")  # verbs that compute it, or the chances of all words at each step
MOST_PIXELS = 1 << 24  # of all pictures of a request
MOST_SECONDS = 1800  # of all sounds of a request
MOST_FILES = 16
STRICT = ConfigDict(extra="forbid", strict=True)
Text = Annotated[str, Field(max_length=MOST_LETTERS)]
Name = Annotated[str, Field(max_length=200)]
UNSAFE = re.compile(r"[^\w.-]", re.ASCII)  # characters in the name of a file
# The most that a request may ask of an option that has no bound of its own.
CAPS: Mapping[str, float | int] = {
    "batch": 256,
    "best_of": 64,
    "chosen": 1 << 31,
    "first": 1 << 20,
    "groups": 64,
    "head": 1024,
    "longest": 4096,
    "most": 64,
    "n_best": 64,
    "no_repeat": 256,
    "patch": 1 << 20,
    "repetition_penalty": 100,
    "samples": 64,
    "seed": 2**53,
    "shortest": 4096,
    "temperature": 100,
    "tokens": 4096,
    "top": 100,
    "top_k": 1 << 20,
    "word": 4096,
}
OTHERWISE = (-1000, 1000)
log = logging.getLogger(__name__)


def routes(models: Models, meters: Meters) -> APIRouter:
    router = APIRouter(route_class=Direct)
    for verb, asks in verbs_of(models).items():
        _add(router, verb, asks, models)
    if any(model.row.embedder is not None for model in models.values()):
        router.add_api_route(
            f"/api/{EMBED}", _embedding(models), methods=["POST"], openapi_extra=openapi_body(EmbedRequest)
        )

    @router.get("/health")
    async def health() -> JSONResponse:
        """Whether the server is up; needs no key."""
        return JSONResponse({"status": "ok"})

    @router.get("/ready")
    async def ready() -> JSONResponse:
        """The models that answer; 503 where one does not."""
        if trouble := [model.trouble for model in models.values() if model.trouble]:
            raise Refused(503, "; ".join(trouble), "start the server again")
        return JSONResponse({"status": "ready", "models": sorted(models)})

    @router.get("/metrics")
    async def metrics() -> Response:
        """Requests, latencies and queues, for Prometheus."""
        return Response(meters.page(), media_type=CONTENT_TYPE_LATEST)

    return router


def verbs_of(models: Models) -> dict[str, dict[str, Ask]]:
    """The verbs that can be asked over HTTP, each with its models."""
    found: dict[str, dict[str, Ask]] = {}
    for name, model in models.items():
        for verb, part in model.row.asks.items():
            if verb != model.row.converses and not (question := part()).local:
                found.setdefault(verb, {})[name] = question
    return found


def model_for(models: Models, verb: str, able: Sequence[str], name: str | None) -> Hosted:
    """The model with this name, or the only one that has the verb. Raises Refused."""
    listed = ", ".join(able)
    if name is None:
        if len(able) != 1:
            raise Refused(400, f"{len(able)} models {verb}", f'give "model": one of {listed}')
        return models[able[0]]
    if name not in models:
        raise Refused(404, f"no model is called {name[:100]!r}", f"choose one of {', '.join(models)}")
    if name not in able:
        raise Refused(400, f"{name} does not {verb}", f"these do: {listed}")
    return models[name]


class EmbedRequest(BaseModel):
    model_config = STRICT
    model: Name | None = Field(None, description="The name of a model, where several can do it.")
    inputs: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS)] | None = Field(
        None, description="A text, or several."
    )
    text: Text | None = Field(None, description="A text, in place of inputs.")


def request_model(verb: str, kinds: Sequence[type]) -> type[BaseModel]:
    """The body of a request: inputs, and `options`, with the fields of all of these dataclasses. An option that is a
    text may also stand beside the inputs."""
    fields: dict[str, Any] = {}
    for kind in kinds:
        hints = typing.get_type_hints(kind, include_extras=True)
        for option in dataclasses.fields(kind):
            fields.setdefault(option.name, _field(option.name, hints[option.name], option.metadata))
    options = create_model(f"{verb}_options", __config__=STRICT, **fields)
    more: dict[str, Any] = {key: (Text, about) for key, (hint, about) in fields.items() if hint in (Text, Text | None)}
    more["options"] = (options, Field(None, description="What the answer depends on, besides the inputs."))
    more["stream"] = (bool, Field(False, description="Whether to send the answer piece by piece, as it is made."))
    return create_model(f"{verb}_request", __base__=EmbedRequest, **more)


def _field(key: str, hint: Any, about: Mapping[str, Any]) -> tuple[Any, Any]:
    """The type of an option, and what it is, for pydantic. `about`: its help and bounds, unless these are those of an
    option of a command (`typer.Option`)."""
    if typing.get_origin(hint) is Annotated:
        hint, command, *_ = typing.get_args(hint)
        about = {"help": command.help, "least": command.min, "most": command.max}
    return _bounded(key, hint, about), Field(None, description=about.get("help"))


def _bounded(key: str, hint: Any, about: Mapping[str, Any]) -> Any:
    """The type of an option with its bounds."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [_bounded(key, each, about) for each in arguments if each is not type(None)]
        return kinds[0] | None
    if key == "stop":
        return StopTexts
    if origin in (tuple, list):
        listed: Any = list.__class_getitem__(_bounded(key, arguments[0], about))
        return Annotated[listed, Field(max_length=MOST_TOKENS if arguments[0] is int else MOST_ANSWERS)]
    if typing.is_typeddict(hint):
        known = {name: SETTINGS[name].metadata for name in typing.get_type_hints(hint)}
        fields: dict[str, Any] = {
            name: _field(name, kind, known[name]) for name, kind in typing.get_type_hints(hint).items()
        }
        return create_model(f"{key}_settings", __config__=STRICT, **fields)
    least, most = about.get("least"), CAPS.get(key, about.get("most"))
    least, most = OTHERWISE[0] if least is None else least, OTHERWISE[1] if most is None else most
    if hint is int:
        return Annotated[int, Field(ge=int(least), le=int(most))]
    if hint is float:
        return Annotated[float, Field(ge=least, le=most, allow_inf_nan=False)]
    if origin is Literal or hint is bool:
        return hint
    return Text


def _add(router: APIRouter, verb: str, asks: Mapping[str, Ask], models: Models) -> None:
    shape = request_model(verb, [question.options for question in asks.values()])
    able = list(asks)
    by_file = [name for name in able if asks[name].reads != "texts"]
    texts = [name for name in able if asks[name].reads == "texts" or asks[name].makes]

    async def answer(request: Request) -> Response:
        if media_type(request.headers) == MULTIPART:
            return await _answer_files(request, shape, verb, by_file, models)
        given = await given_json(request, shape)
        model = model_for(models, verb, able, given["model"])
        question = asks[model.name]
        inputs, settings = _inputs(given), settings_of(given)
        if verb in LOOKING:
            refuse_long([*((f"text {number}", text) for number, text in enumerate(inputs, 1)), *settings.items()])
            if (letters := sum(map(len, inputs))) > LOOKED_AT_ONCE:
                raise Refused(413, f"{letters:,} characters, at most {LOOKED_AT_ONCE:,} at once", "send fewer texts")
        if question.reads != "texts" and not (question.makes and not any(inputs)):
            raise Refused(
                415, f"{model.name} reads {question.reads}", "send them as multipart/form-data, in the field file"
            )
        _refuse_too_much(verb, inputs, settings, question)
        if given["stream"]:
            return await _stream(model, verb, inputs, settings, question)
        found = await model.ask(verb, inputs, settings)
        return await _answers(model, found, several=question.each is not None)

    router.add_api_route(
        f"/api/{verb}",
        answer,
        methods=["POST"],
        name=verb,
        openapi_extra=openapi_body(shape, texts=bool(texts), files=MOST_FILES if by_file else 0),
    )


async def given_json(request: Request, shape: type[BaseModel]) -> dict[str, Any]:
    """The fields of a JSON body; its options are those that were given. Raises Refused."""
    if media_type(request.headers) != "application/json":
        raise Refused(415, "the body is not JSON", "send Content-Type: application/json")
    return _validated(shape, await json_of(request))


def _validated(shape: type[BaseModel], value: object) -> dict[str, Any]:
    """The fields of a request; its options are those that were given. Raises Refused."""
    try:
        given = shape.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        raise Refused(422, first_fault(faults), _other_key(shape, fault_by_its_type(faults))) from None
    return {"stream": False, **dict.fromkeys(shape.model_fields), **given.model_dump(exclude_unset=True)}


def _other_key(shape: type[BaseModel], fault: Mapping[str, Any]) -> str | None:
    """What could stand in place of a key that is not known."""
    if fault["type"] != "extra_forbidden":
        return None
    *above, key = fault["loc"]
    for part in above:
        if part in shape.model_fields:
            shape = next(_shapes_in(shape.model_fields[part].annotation), shape)
    return unknown_key(key[:100], [*shape.model_fields], where="").fix


def _shapes_in(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for each in typing.get_args(hint):
        yield from _shapes_in(each)


def _inputs(given: Mapping[str, Any]) -> list[str]:
    if (given["inputs"] is None) == (given["text"] is None):
        raise Refused(422, "one of inputs and text is needed", 'give "inputs": "a text", or several as a list')
    inputs = given["text"] if given["inputs"] is None else given["inputs"]
    return [inputs] if isinstance(inputs, str) else inputs


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options, including those that stand beside the inputs."""
    beside = {
        key: value
        for key, value in given.items()
        if key not in ("model", "inputs", "text", "options", "stream") and value is not None
    }
    return {**(given["options"] or {}), **beside}


def refuse_long(texts: Iterable[tuple[str, Any]]) -> None:
    """Raises Refused for a text (with its name) that is too long to compute its attention."""
    for name, text in texts:
        if isinstance(text, str) and len(text) > MOST_LOOKED:
            what = f"{name}: {len(text):,} characters, at most {MOST_LOOKED:,} are looked into"
            raise Refused(413, what, "choose a part of it")


def _refuse_too_much(verb: str, inputs: Sequence[str], settings: Mapping[str, Any], question: Ask) -> None:
    if not settings:
        return
    options = options_of(question, verb, settings)
    for key in (field.name for field in dataclasses.fields(options)):
        listed = getattr(options, key)
        per_input = key in ("pairs", "contexts")  # an entry for each input
        if per_input and listed and len(listed) != len(inputs):
            raise Refused(400, f"{len(listed)} {key} for {len(inputs)} inputs", f"give one of {key} for each")
    if (weighed := len(inputs) * len(settings.get("choices") or ())) > MOST_CHOSEN:
        raise Refused(400, f"{weighed:,} choices at once, at most {MOST_CHOSEN:,}", "ask for fewer")
    nested = [settings, *(value for value in settings.values() if isinstance(value, dict))]
    each = max([1, *(own.get("samples", 1) * own.get("best_of", 1) for own in nested)])
    if each * len(inputs) > MOST_ANSWERS:
        raise Refused(400, f"{each * len(inputs)} answers at once, at most {MOST_ANSWERS}", "ask for fewer")


async def _answers(model: Hosted, found: Sequence[Sequence[Any]], *, several: bool) -> Response:
    """A record for each input, or a list of them where there may be `several`."""
    answers = found if several else [record for own in found for record in own]
    return await in_json({"model": model.name, "answers": answers})


async def _stream(
    model: Hosted, verb: str, inputs: Sequence[str], settings: Mapping[str, Any], question: Ask
) -> Response:
    if verb != model.row.streams:
        refuse_stream(verb)
    options = options_of(question, verb, settings)
    if len(inputs) != 1 or options.samples != 1:
        raise Refused(400, "one text is streamed at a time", "give one input, and no samples")
    if options.compares:
        raise Refused(400, "a text that is searched for cannot be streamed", "leave out stream")
    pieces = model.write(inputs[0], Writing(tokens=options.tokens, stop=tuple(options.stop), sampling=options.sampling))
    return EventStream(sse(await anext(pieces), pieces))


def refuse_stream(verb: str) -> NoReturn:
    """Raises Refused: the verb has no streamed answer."""
    raise Refused(400, f"{verb} gives its answer as a whole", "leave out stream")


async def sse(first: StreamedPiece, pieces: AsyncIterator[StreamedPiece]) -> AsyncIterator[str]:
    """Server-sent events, one for each piece."""
    async with aclosing(typing.cast("typing.AsyncGenerator[StreamedPiece, None]", pieces)) as rest:
        try:
            yield _event(first)
            if first.finish is None:
                async for piece in rest:
                    yield _event(piece)
        except HeedError as error:
            yield f"data: {json.dumps({'error': {'message': str(error), 'fix': error.fix or None}})}\n\n"
    yield "data: [DONE]\n\n"


def _event(piece: StreamedPiece) -> str:
    said: dict[str, Any] = {"text": piece.text, "token": piece.token, "logprob": plain(piece.logprob)}
    if piece.finish is not None:
        said["finish"] = piece.finish
    return f"data: {json.dumps(said, ensure_ascii=False)}\n\n"


async def _answer_files(
    request: Request, shape: type[BaseModel], verb: str, able: Sequence[str], models: Models
) -> Response:
    if not able:
        raise Refused(415, f"no model reads files for {verb}", "send JSON")
    given, sent = await sent_files(request, shape, "file")
    if given["stream"]:
        refuse_stream(verb)
    model = model_for(models, verb, able, given["model"])
    settings = settings_of(given)
    question = model.row.asks[verb]()
    _refuse_too_much(verb, [name for name, _ in sent], settings, question)
    async with kept_files(sent, question.reads) as names:
        found = await model.ask(verb, [*names], settings)
    told = [[{**each, "input": names[each["input"]]} for each in own] for own in found]
    return await _answers(model, told, several=False)


Sent = list[FormFile]


async def sent_files(
    request: Request, shape: type[BaseModel], what: str, *, most: int = MOST_FILES
) -> tuple[dict[str, Any], Sent]:
    """The files of the field `file`, and the other fields, from `json`; `what` is sent in them. Raises Refused."""
    form = await form_of(request, files=most)
    sent = [value for key, value in form if key == "file" and isinstance(value, FormFile)]
    rest = [value for key, value in form if key == "json" and isinstance(value, str)]
    if not sent or len(rest) > 1 or len(sent) + len(rest) < len(form):
        raise Refused(422, f"a {what} is sent in the field file, all else in json", "send json once, as a text")
    given = _validated(shape, strict_json(rest[0].encode()) if rest else {})
    if given["inputs"] is not None or given["text"] is not None:
        raise Refused(422, f"a {what} is sent as a file, and not by its name", "leave out inputs and text")
    return given, sent


@asynccontextmanager
async def kept_files(sent: Sent, reads: str) -> AsyncIterator[dict[str, str]]:
    """Saves pictures or sounds (`reads`) in a temporary folder for as long as the block lasts; yields the names that
    they were sent with, by their files. Errors use these names. Raises Refused."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="heed-")
    except OSError as error:
        raise _no_room(error, reads) from None
    with folder as above:
        paths = [Path(above) / str(i) / _safe(name) for i, (name, _) in enumerate(sent)]
        names = {str(path): name[:200] for path, (name, _) in zip(paths, sent, strict=True)}
        keeping = asyncio.ensure_future(asyncio.to_thread(_keep, paths, sent, reads))
        try:
            await asyncio.shield(keeping)
            yield names
        except HeedError as error:
            raise _renamed(refused(error), names) from None
        finally:
            await asyncio.gather(keeping, return_exceptions=True)  # before the folder is removed


def _safe(name: str) -> str:
    return UNSAFE.sub("_", name)[-80:].lstrip(".") or "file"


def _keep(paths: Sequence[Path], sent: Sent, reads: str) -> None:
    try:
        for path, (_, content) in zip(paths, sent, strict=True):
            files.make_folder(path.parent)
            files.write_bytes(path, content)
    except StorageError as error:
        raise _no_room(error, reads) from None
    if reads == "pictures":
        headers = [image_header(ImageFile(path)) for path in paths]
        if (pixels := sum(rows * columns for _, rows, columns in headers)) > MOST_PIXELS:
            of = f"{headers[0][2]:,} x {headers[0][1]:,}" if len(headers) == 1 else f"together {pixels:,}"
            raise Refused(413, f"{of} pixels, at most {MOST_PIXELS:,} are read", "make it smaller, or send fewer")
    if reads == "sounds" and (seconds := sum(map(sound_seconds, paths))) > MOST_SECONDS:
        raise Refused(413, f"{seconds:,.0f} seconds of sound, at most {MOST_SECONDS:,} are read", "cut it in pieces")


def _no_room(error: Exception, reads: str) -> Refused:
    log.error("%s cannot be kept: %s", reads, error)
    return Refused(503, f"there is no room to keep {reads}", "ask again later", {"Retry-After": "60"})


def _renamed(error: Refused, names: Mapping[str, str]) -> Refused:
    """The error, with the names that the client sent."""
    for place, name in names.items():
        error.message = error.message.replace(place, name)
        error.fix = None if error.fix is None else error.fix.replace(place, name)
    return error


def _embedding(models: Models) -> Any:
    able = [name for name, model in models.items() if model.row.embedder is not None]

    async def embed(request: Request) -> Response:
        given = await given_json(request, EmbedRequest)
        model, inputs = model_for(models, EMBED, able, given["model"]), _inputs(given)
        vectors, warned = await model.embedded(inputs)
        told = {"warnings": warned} if any(warned) else {}
        return await in_json({"model": model.name, "vectors": vectors, **told})

    return embed


def openapi_body(shape: type[BaseModel], *, texts: bool = True, files: int = 0) -> dict[str, Any]:
    """The body of a route for the OpenAPI page: JSON with `texts`, or a form with at most so many `files`."""
    schema = inlined(shape.model_json_schema())
    content: dict[str, Any] = {"application/json": {"schema": schema}} if texts else {}
    if files:
        binary = {"type": "string", "format": "binary"}
        file = {"type": "array", "items": binary, "minItems": 1, "maxItems": files}
        fields = {"file": file, "json": {"type": "string", "description": "a JSON object with model and options"}}
        form = {"type": "object", "properties": fields, "required": ["file"], "additionalProperties": False}
        content["multipart/form-data"] = {"schema": form}
    said = {str(status): {"description": what} for status, what in STATUSES.items()}
    return {"requestBody": {"required": True, "content": content}, "responses": said}
