"""Shared by the routes of public protocols: reading requests, and errors in one line."""

import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Annotated, Any, ClassVar, TypeVar, cast

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from heedful.errors import BusyError, HeedError, InputError, LateError
from heedful.serve.bodies import Form, FormFile, form_of, is_form, json_of
from heedful.serve.refusals import Refused, as_refused, fault_by_its_type, refusal, said_of

GENERATE, TRANSLATE, FRAGMENT, PASSAGE = "generate", "translate", "fragment", "passage"  # verbs
TRANSCRIBE = "transcribe"

Name = Annotated[str, Field(min_length=1, max_length=200)]
Body = TypeVar("Body", bound="RequestBody")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]

OF_A_KEY = ("extra_forbidden", "literal_error", "missing")  # kinds of faults that belong to one key

log = logging.getLogger(__name__)


class RequestBody(BaseModel):
    """The body of a request. `IGNORED` has the protocol's keys that cannot change an answer here, with the reason;
    `ONLY` has the keys that are not supported, with the values that ask for nothing. Any other key is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    IGNORED: ClassVar[Mapping[str, str]] = {}
    ONLY: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    LISTS: ClassVar[frozenset[str]] = frozenset()  # keys that are lists in a form too, where there is one value

    @model_validator(mode="before")
    @classmethod
    def without_what_changes_no_answer(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        for key, allowed in cls.ONLY.items():
            if key in data and data[key] not in (None, *allowed):
                words = ", ".join(json.dumps(each) for each in allowed)
                what = f"{key} is not served here: leave it out" + (f", or send {words}" if words else "")
                raise PydanticCustomError("refused", "{what}", {"what": what, "key": key})
        return {key: value for key, value in data.items() if key not in cls.IGNORED and key not in cls.ONLY}


def verdict(error: ValidationError | RequestValidationError) -> Refused:
    """The first fault of a body, in one line."""
    first = fault_by_its_type(error.errors())
    named = [part for part in first["loc"] if isinstance(part, str) and part not in ("body", "query")]
    param = first.get("ctx", {}).get("key") or next(iter(named), None)
    said = said_of(first)
    if first["type"] in OF_A_KEY and len(named) > 1:
        said = f"{named[-1]}: {said}"
    return Refused(400, said if first["type"] == "refused" or not param else f"{param}: {said}", param=param)


def in_one_line(error: Exception) -> Refused:
    """`as_refused` for protocols without a field for the fix; errors that the request did not cause are logged."""
    match error:
        case Refused() | HTTPException():
            return as_refused(error)
        case RequestValidationError() | ValidationError():
            return verdict(error)
        case ClientDisconnect():
            return Refused(400, "whoever asked has left")
        case BusyError() | LateError() | InputError():
            told = as_refused(error)
            message = f"{told.message} ({told.fix})" if told.fix else told.message
            return Refused(told.status, " ".join(message.split()), headers=told.headers)
    log.error("a request failed", exc_info=error)
    return Refused(500, error.what if isinstance(error, HeedError) else "this request failed inside the server")


class Direct(APIRoute):
    """A route whose function may take only the request (`alone`), and read it itself: FastAPI's own parsing would take
    longer than everything else that the server does."""

    @property
    def alone(self) -> bool:
        return [*inspect.signature(self.endpoint).parameters] == ["request"]

    def get_route_handler(self) -> Handler:
        return cast(Handler, self.endpoint) if self.alone else super().get_route_handler()


def door(*, most_bytes: int) -> type[Direct]:
    """Routes that report errors as their protocol does, and accept bodies of at most `most_bytes`."""

    class Door(Direct):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def guarded(request: Request) -> Response:
                try:
                    if len(await request.body()) > most_bytes:
                        raise Refused(413, f"the request's body is larger than {most_bytes:,} bytes: send less at once")
                    return await handle(request)
                except Exception as error:
                    return refusal(path_of(request.scope), in_one_line(error))

            return guarded

    return Door


class EventStream(StreamingResponse):
    """Server-sent events, which nginx hands on as they come."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str]) -> None:
        super().__init__(events, headers={"X-Accel-Buffering": "no"})


def path_of(scope: Scope) -> str:
    """The path of a request, also where the application is mounted below another path."""
    path, root = scope["path"], scope.get("root_path", "").rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


async def fields_of(request: Request) -> dict[str, list[str]]:
    """A form's fields, in their order, each with all its values. Files are refused."""
    return _by_name(await form_of(request))


def _by_name(form: Form) -> dict[str, list[str]]:
    """The values of each field; those of files are left out."""
    found: dict[str, list[str]] = {}
    for key, value in form:
        if not isinstance(value, FormFile):
            found.setdefault(key, []).append(value)
    return found


async def read_upload(request: Request, kind: type[Body], what: str = "document") -> tuple[Body, FormFile]:
    """The fields of a form with one file (`what`), in the field `file`, and that file. Raises Refused."""
    form = await form_of(request, files=1)
    file = next((value for key, value in form if key == "file" and isinstance(value, FormFile)), None)
    if file is None:
        raise Refused(400, f"file: the {what} is missing: send it here, in multipart/form-data", param="file")
    return _of_form(kind, _by_name(form)), file


async def read_body(request: Request, kind: type[Body]) -> Body:
    """The body of a request, as JSON or as a form; a form's values are converted to the types of the fields."""
    if not is_form(request.headers):
        return kind.model_validate(await json_of(request, empty={}))
    fields = await fields_of(request)
    if any(key.lstrip().startswith("{") for key in fields):  # curl sends JSON with this content type by default
        raise Refused(400, "the body is JSON, and is called a form: send Content-Type: application/json")
    return _of_form(kind, fields)


def _of_form(kind: type[Body], fields: Mapping[str, list[str]]) -> Body:
    return kind.model_validate({key: _value(kind, key, values) for key, values in fields.items()})


WORDS = {"1": True, "true": True, "0": False, "false": False}


def _value(kind: type[RequestBody], key: str, values: list[str]) -> object:
    """A form's value, converted to the type of the field."""
    if key in kind.LISTS or len(values) > 1:
        return values
    annotation = kind.model_fields[key].annotation if key in kind.model_fields else None
    if annotation is bool:
        return WORDS.get(values[0].lower(), values[0])
    if annotation is int and values[0].isascii() and values[0].isdigit() and len(values[0]) < 10:
        return int(values[0])
    return values[0]


def body_shown(kind: type[RequestBody], *, forms: bool = True) -> dict[str, Any]:
    """The OpenAPI description of a body that `read_body` reads."""
    shape = {"schema": inlined(kind.model_json_schema())}
    content = dict.fromkeys(("application/json", "application/x-www-form-urlencoded")[: 1 + forms], shape)
    return {"requestBody": {"required": True, "content": content}}


def form_shown(kind: type[RequestBody]) -> dict[str, Any]:
    """The OpenAPI description of a form that `read_upload` reads."""
    shape = inlined(kind.model_json_schema())
    shape["properties"]["file"] = {"type": "string", "format": "binary"}
    shape["required"] = [*shape.get("required", ()), "file"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": shape}}}}


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its definitions inlined."""
    definitions = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            shape = put(definitions[value["$ref"].rpartition("/")[2]]) if "$ref" in value else {}
            return shape | {key: put(each) for key, each in value.items() if key != "$ref"}
        return [put(each) for each in value] if isinstance(value, list) else value

    made: dict[str, Any] = put(schema)
    return made
