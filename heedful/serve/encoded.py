"""Answers as JSON. Numbers that are not finite become null."""

import asyncio
import io
import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fastapi.responses import JSONResponse, Response

PART = 2000  # values that are encoded together, about: meanwhile all threads wait


async def in_json(value: Any) -> Response:
    """A response with the value. One of many values is encoded in another thread, so that others are answered
    meanwhile."""
    if _count(value) < PART:
        return JSONResponse(plain(value))
    return Response(await asyncio.to_thread(encoded, value), media_type="application/json")


def encoded(value: Any) -> bytes:
    whole = io.BytesIO()
    for part in _parts(value):
        whole.write(part)
    return whole.getvalue()


def _parts(value: Any) -> Iterator[bytes]:
    if not isinstance(value, Mapping | list | tuple) or _count(value) < PART:
        yield _in_one_part(value)
    elif isinstance(value, Mapping):
        for number, (key, each) in enumerate(value.items()):
            yield b"%s%s:" % (b"," if number else b"{", _in_one_part(str(key)))
            yield from _parts(each)
        yield b"}"
    else:
        yield b"["
        for number, group in enumerate(_groups(value)):
            yield b"," * bool(number)
            if len(group) > 1:
                yield _in_one_part(group)[1:-1]
            else:
                yield from _parts(group[0])
        yield b"]"


def _groups(values: Any) -> Iterator[list[Any]]:
    """The values of a list in groups of at most PART values in all, or a single one."""
    group, count = list[Any](), 0
    for value in values:
        more = _count(value)
        if group and count + more > PART:
            yield group
            group, count = [], 0
        group.append(value)
        count += more
    yield group


def _count(value: Any) -> int:
    """The values in a value, itself included; PART where it has more."""
    count, left = 0, [value]
    while left and count < PART:
        count += 1
        match left.pop():
            case Mapping() as each:
                left += islice(each.values(), PART)
            case list() | tuple() as each:
                left += islice(each, PART)
    return count


def _in_one_part(value: Any) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """The value for JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value
