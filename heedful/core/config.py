"""Configurations are frozen dataclasses, and JSON is their only other form.

An unknown key or a value of the wrong type is an error that names the nearest right one: a misspelt option that is
ignored silently costs a training run. Of a field that may be one dataclass or another, the keys tell which.
"""

import dataclasses
import difflib
import functools
import types
import typing
from typing import Any, Literal, TypeVar

from heedful.errors import InputError

C = TypeVar("C")
LARGEST = 1 << 24


def to_json(config: Any) -> Any:
    """The configuration as a JSON value; `from_json` is the inverse."""
    if dataclasses.is_dataclass(config):
        return {field.name: to_json(getattr(config, field.name)) for field in dataclasses.fields(config)}
    if isinstance(config, tuple):
        return [to_json(item) for item in config]
    return config


def from_json(kind: type[C], data: Any, where: str = "config", *, largest: int | None = LARGEST) -> C:
    """Builds the dataclass `kind` from a JSON object. Its whole numbers must be at most `largest`, as sizes of a model
    are (None: any number).

    Raises InputError for a key that `kind` does not have, a missing key, or a value of another type.
    """
    if not isinstance(data, dict):
        raise InputError(f"expected an object, found {data!r}", where=where)
    hints = _types_of(kind)  # type: ignore[arg-type]  # classes are hashable
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # a dataclass
    for key in data:
        if key not in fields:
            raise unknown_key(key, list(fields), where=where)
    values = {key: _value(hints[key], value, f"{where}.{key}", largest) for key, value in data.items()}
    needed = [name for name, field in fields.items() if name not in data and _required(field)]
    if needed:
        raise InputError(f"missing {', '.join(needed)}", where=where)
    return kind(**values)


def unknown_key(key: str, known: list[str], *, where: str, what: str = "key") -> InputError:
    """The error for a misspelt key: it names the nearest right one."""
    same = [own for own in known if own.lower() == key.lower()]  # but for capitals
    near = same or difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    fix = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}" if known else "leave it out"
    return InputError(f"unknown {what} {key!r}", where=where, fix=fix)


def check_words(config: Any) -> None:
    """Raises InputError for a `Literal` field with another value, in a dataclass that was made from Python."""
    for name, kind in _types_of(config.__class__).items():
        if any(typing.get_origin(option) is Literal for option in (kind, *typing.get_args(kind))):
            _value(kind, getattr(config, name), f"{type(config).__name__}.{name}", None)


@functools.cache
def _types_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return typing.get_type_hints(kind)


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value is of this dataclass, or has no keys but its own."""
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return False
    return value.keys() <= _types_of(kind).keys() if isinstance(value, dict) else isinstance(value, kind)


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _value(kind: Any, value: Any, where: str, largest: int | None) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        options = [option for option in arguments if option is not type(None)]
        return _value(next((each for each in options if _fits(each, value)), options[0]), value, where, largest)
    if origin is Literal:
        if value not in arguments:
            raise InputError(f"{value!r} is not one of {', '.join(map(repr, arguments))}", where=where)
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise InputError(f"expected a list, found {value!r}", where=where)
        return origin(_value(arguments[0], item, f"{where}[{i}]", largest) for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"expected an object, found {value!r}", where=where)
        return {key: _value(arguments[1], item, f"{where}.{key}", largest) for key, item in value.items()}
    if typing.is_typeddict(kind):
        if not isinstance(value, dict):
            raise InputError(f"expected an object, found {value!r}", where=where)
        hints = _types_of(kind)
        if unknown := [key for key in value if key not in hints]:
            raise unknown_key(unknown[0], [*hints], where=where)
        return {key: _value(hints[key], item, f"{where}.{key}", largest) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else from_json(kind, value, where, largest=largest)  # type: ignore[arg-type]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"expected {kind.__name__}, found {value!r}", where=where)
    if kind is int and largest is not None and not 0 <= value <= largest:
        raise InputError(f"{value}, but it must be from 0 to {largest:,}", where=where)
    return value
