"""Reads the bodies of requests, JSON and forms: strictly, and in time that grows with their size.

What two programs could read in two ways is refused: a key that comes twice, another encoding than UTF-8, half a
character, a form without its end.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from email.message import Message
from email.parser import HeaderParser
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from heedful.serve.refusals import Refused

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MOST_DEPTH = 32  # of JSON
MOST_NAMED = 1 << 14  # lists, objects and keys of JSON together
MOST_FIELDS = 1000  # of a form
MOST_FIELD_BYTES = 1 << 20  # of one of its fields that is no file
MOST_HEAD = 4096  # letters of the headers of a field, and of the content type
MOST_IN_HEAD = 32  # lines and parameters in them: reading takes time that grows with their product with the letters

# Of JSON without its strings, brackets are kept, and all of them made square.
SQUARE = bytes.maketrans(b"{}", b"[]")
NO_BRACKETS = bytes(sorted({*range(256)} - {*b"[]{}"}))
WHOLE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")  # two escapes that are one character
HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # a lone surrogate, which is possible only as an escape


class FormFile(NamedTuple):
    """A file in a form, with the name that it was sent by."""

    name: str
    content: bytes


Form = list[tuple[str, str | FormFile]]  # the fields in their order


def media_type(headers: Mapping[str, str]) -> str:
    """The content type in the headers."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_form(headers: Mapping[str, str]) -> bool:
    return media_type(headers) in (FORM, MULTIPART)


async def json_of(request: Request, *, empty: object = None) -> Any:
    """The JSON of a body, parsed once; `empty` is what no body at all stands for. Raises Refused."""
    if "json" not in request.scope:
        body = await request.body()
        request.scope["json"] = strict_json(body) if body or empty is None else empty
    return request.scope["json"]


def strict_json(data: bytes) -> Any:
    """Parses JSON in UTF-8, with finite numbers, whole characters and no key twice, nested at most MOST_DEPTH deep.
    Raises Refused."""
    escapes = data.replace(rb"\\", b"")
    outside = b"".join(escapes.replace(rb"\"", b"").split(b'"')[::2])  # of the strings
    brackets = outside.translate(SQUARE, NO_BRACKETS)
    if outside.count(b":") + len(brackets) // 2 > MOST_NAMED:
        raise Refused(400, f"the body has more than {MOST_NAMED:,} lists, objects and keys", "send less at once")
    try:
        value = json.loads(
            data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_once
        )
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        why = error.args[0] if isinstance(error, _BodyError) else "is not JSON in UTF-8"
        raise Refused(400, f"the body {why}", "send one JSON value") from None
    for _ in range(MOST_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise Refused(400, f"the body is nested deeper than {MOST_DEPTH}", "send it flatter")
    if HALF.search(WHOLE.sub(b"", escapes)):
        raise Refused(400, "the body has half a character (a lone surrogate)", "send whole characters")
    return value


class _BodyError(ValueError):
    pass


def _no_number(word: str) -> Any:
    raise _BodyError(f"is not JSON: {word} is no number")


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _no_number(word[:20])


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise _BodyError(f"has the key {twice[:100]!r} twice")
    return made


async def form_of(request: Request, *, files: int = 0) -> Form:
    """The fields of a form. Raises Refused, also for more than so many files."""
    form = read_form(request.headers, await request.body())
    count = sum(isinstance(value, FormFile) for _, value in form)
    if count > files:
        raise Refused(400, f"{count} files, at most {files} are read" if files else "a file, which is not read here")
    return form


def read_form(headers: Mapping[str, str], body: bytes) -> Form:
    """The fields of a form, or none of another body. Raises Refused."""
    try:
        if media_type(headers) == MULTIPART:
            return _multipart(headers["content-type"], body)
        if media_type(headers) == FORM:
            _refuse_many(body.count(b"&") + 1)
            return [*parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict")]
    except UnicodeError:
        raise Refused(400, "the form is not in UTF-8", "send it in UTF-8") from None
    return []


def _refuse_many(fields: int) -> None:
    if fields > MOST_FIELDS:
        raise Refused(400, f"a form of more than {MOST_FIELDS:,} fields", "send less at once")


def _multipart(content_type: str, body: bytes) -> Form:
    """Reads multipart/form-data (RFC 7578)."""
    boundary = _parameter(_parsed(f"content-type: {content_type}"), "content-type", "boundary") or ""
    if not isinstance(boundary, str):
        raise Refused(400, "the boundary of the form names an encoding", "send boundary=, not boundary*=")
    if not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
        raise Refused(400, "the form has no boundary of 1 to 70 characters")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1"), MOST_FIELDS + 2)
    _refuse_many(len(parts) - 1)
    if not parts or not parts.pop().startswith(b"--"):
        raise Refused(400, "the form has no end", "send all of it")
    return [_field(part) for part in parts]


def _field(part: bytes) -> tuple[str, str | FormFile]:
    """The name of a field, and its text or file."""
    head, blank, content = part.partition(b"\r\n\r\n")
    if not blank:
        raise Refused(400, "the form has a field without an empty line above its content")
    headers = _parsed(head.decode("utf-8").lstrip())
    if headers.get("content-transfer-encoding", "binary").lower() not in ("7bit", "8bit", "binary"):
        raise Refused(400, "the form has a field that is encoded", "send its bytes as they are")
    name = _parameter(headers, "content-disposition", "name")
    if not isinstance(name, str):
        raise Refused(400, "the form has a field without a name")
    if (file := _file_name(headers)) is not None:
        return name, FormFile(file, content)
    if len(content) > MOST_FIELD_BYTES:
        raise Refused(413, f"{name[:100]}: more than {MOST_FIELD_BYTES:,} bytes", "send less at once")
    return name, content.decode("utf-8")


def _file_name(headers: "Message") -> str | None:
    given = _parameter(headers, "content-disposition", "filename")
    given = _parameter(headers, "content-type", "name") if given is None else given
    if isinstance(given, tuple):  # RFC 5987: bytes in a charset, escaped
        charset, _, escaped = given
        if (charset or "").lower() != "utf-8":
            raise Refused(400, f"a file's name in {str(charset or 'no charset')[:100]!r}", "send filename*=UTF-8''NAME")
        given = escaped.encode("latin-1").decode("utf-8")
    return given if given is None else given.strip()


def _parameter(headers: "Message", header: str, name: str) -> "str | tuple[str | None, str | None, str] | None":
    """A parameter of a header: a tuple with its charset where it has one. No codec is looked up. Raises Refused."""
    try:
        return headers.get_param(name, header=header)
    except (TypeError, ValueError):  # parts of it are numbered, and others are not
        raise Refused(400, f"{header}: a parameter comes twice", "send it once") from None


def _parsed(head: str) -> "Message":
    """Parses headers. Raises Refused for long ones."""
    if len(head) > MOST_HEAD or head.count("\n") + head.count(";") > MOST_IN_HEAD:
        raise Refused(400, f"the form has headers of more than {MOST_HEAD:,} letters or {MOST_IN_HEAD} parts")
    return HeaderParser().parsestr(head)
