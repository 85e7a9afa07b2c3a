"""Refused requests: a status, one line, and a fix, in the form of our API or of a public protocol."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heedful.errors import BusyError, HeedError, InputError, LateError, TooMuchError

KINDS = {401: "auth", 403: "auth", 404: "not_found", 413: "too_large", 431: "too_large", 429: "busy", 503: "busy"}
OBJECT_TYPES = ("model_type", "model_attributes_type", "dataclass_type", "dict_type")  # of faults that name a class
OPENAI, DEEPL = "/v1/", "/v2/"
LIBRETRANSLATE = ("/translate", "/translate_file", "/detect", "/languages", "/frontend/settings", "/suggest")
DOWNLOAD = "/download_file/"  # of LibreTranslate


class Refused(Exception):
    """A request that is not answered, and the reason in one line; `param` and `code` are for OpenAI's protocol: the key
    that is wrong, and a word for the error."""

    def __init__(
        self,
        status: int,
        message: str,
        fix: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.fix, self.headers = status, message, fix, dict(headers or {})
        self.param, self.code = param, code


def refused(error: HeedError) -> Refused:
    """An error of a model as a refusal; the options of the command line become keys of a request."""
    said, fix = in_keys(str(error)), in_keys(error.fix) or None
    match error:
        case BusyError():
            return Refused(429, said, fix, {"Retry-After": "1"})
        case LateError():
            return Refused(504, said, fix)
        case TooMuchError():
            return Refused(413, said, fix)
        case InputError():
            return Refused(400, said, fix)
    return Refused(500, in_keys(error.what), fix)  # where it is may be a path


def in_keys(said: str) -> str:
    """A message with keys instead of options: "--from-language: ..." becomes "from_language: ...", and "leave out --to"
    becomes 'leave out "to"'. A message with a command stays as it is."""
    if "heed " in said:
        return said
    said = re.sub(r"^--([a-z][a-z-]*):", lambda found: f"{_key(found[1])}:", said)
    return re.sub(r"(?<!\S)--([a-z][a-z-]*)", lambda found: f'"{_key(found[1])}"', said)


def _key(option: str) -> str:
    return option.replace("-", "_")


def as_refused(error: Exception) -> Refused:
    """Any error as a refusal; one that the request did not cause has no details."""
    match error:
        case Refused():
            return error
        case HeedError():
            return refused(error)
        case HTTPException(status_code=404):
            return Refused(404, "there is no such route", "/openapi.json of heed serve lists all there are")
        case HTTPException(status_code=405):
            by = (error.headers or {}).get("Allow", "another method")
            return Refused(405, "this route is not asked so", f"ask by {by}", error.headers)
        case HTTPException():
            return Refused(error.status_code, str(error.detail), None, error.headers)
        case RequestValidationError():
            return Refused(422, first_fault(error.errors()))
    return Refused(500, "this request failed")


def first_fault(faults: Sequence[Any]) -> str:
    """The first of the faults that pydantic found, in one line."""
    fault = fault_by_its_type(faults)
    parts = [part for part in fault["loc"] if part != "body"]
    named = (str(part) for part in parts if isinstance(part, int) or part.isidentifier())  # no type of a union
    where = ".".join(named)
    said = said_of(fault)
    return f"{where}: {said}" if where else said


def said_of(fault: Mapping[str, Any]) -> str:
    """What pydantic found, in words of JSON."""
    if fault["type"] == "extra_forbidden":
        return "there is no such key"
    if fault["type"] in OBJECT_TYPES:
        whole = fault["loc"] in ((), ("body",))
        return "the body must be a JSON object" if whole else "this must be a JSON object"
    return str(fault["msg"])


def fault_by_its_type(faults: Sequence[Any]) -> Any:
    """The fault to report: where a key may have several types, that of the type which the value has."""
    alike = [fault for fault in faults if fault["loc"][:1] == faults[0]["loc"][:1]]
    deepest = max(alike, key=lambda fault: len(fault["loc"]))
    return next((fault for fault in alike if not fault["type"].endswith("_type")), deepest)


def is_libretranslate(path: str) -> bool:
    return path in LIBRETRANSLATE or path.startswith(DOWNLOAD)


def kind_of(status: int) -> str:
    return KINDS.get(status, "internal" if status >= 500 else "input")


def refusal(path: str, error: Refused) -> JSONResponse:
    """The response for a refusal, in the form of the API at this path."""
    says_forbidden = error.status == 401 and (path.startswith(DEEPL) or is_libretranslate(path))
    status = 403 if says_forbidden else error.status
    return JSONResponse(shaped(path, error), status_code=status, headers=error.headers)


def shaped(path: str, error: Refused) -> dict[str, Any]:
    """The body of that response."""
    said = f"{error.message}: {error.fix}" if error.fix else error.message
    if path.startswith(OPENAI):
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        kind = "rate_limit_error" if error.status == 429 else kind
        code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(error.status, error.code)
        return {"error": {"message": said, "type": kind, "param": error.param, "code": code}}
    if path.startswith(DEEPL):
        return {"message": said}
    if is_libretranslate(path):
        return {"error": said}
    return {"error": {"message": " ".join(error.message.split()), "fix": error.fix, "type": kind_of(error.status)}}


STATUSES = {
    400: "what is asked cannot be answered",
    401: "the key is missing or wrong",
    403: "of another host or origin",
    404: "no such model",
    408: "the body was late",
    413: "too large",
    415: "of another content type",
    422: "a field is not what it must be",
    429: "busy: ask again later",
    503: "no room to keep pictures",
    504: "no answer in time",
}
