"""The changes from one format of a model folder to the next, as plain data: reading an old one needs no old code.

A run that was begun in an older format keeps its `config.json`, and so the names of its tensors, for good; a
checkpoint is always written in today's format.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

FORMAT = 2  # of a model folder, a checkpoint's state.json, and the model that data.json says a run was begun with


class Migration(NamedTuple):
    """From one format to the next."""

    config: Callable[[Any], Any]  # a configuration, or any part of one
    names: Mapping[str, str]  # parts of a tensor's name, between its dots: no new one may have been there before


MIGRATIONS: dict[int, Migration] = {}  # by the format that they begin with; format 1 was never released


def migrated(config: Any, number: int) -> Any:
    """A configuration, or a part of one, of format `number` in today's. Raises KeyError for an unknown format."""
    for step in range(number, FORMAT):
        config = MIGRATIONS[step].config(config)
    return config


def in_todays_format(config: Mapping[str, Any]) -> Any:
    """A configuration in today's format, without its `format`. Raises KeyError for an unknown format."""
    return migrated({key: value for key, value in config.items() if key != "format"}, config["format"])


def renamed(tensors: Mapping[str, T], number: int) -> dict[str, T]:
    """A dict by tensor names of format `number`, with today's names."""
    for step in range(number, FORMAT):
        tensors = _renamed(tensors, MIGRATIONS[step].names)
    return dict(tensors)


def named_before(tensors: Mapping[str, T], number: int) -> dict[str, T]:
    """A dict by today's tensor names, with those of format `number`."""
    for step in reversed(range(number, FORMAT)):
        tensors = _renamed(tensors, {new: old for old, new in MIGRATIONS[step].names.items()})
    return dict(tensors)


def _renamed(tensors: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    return {".".join(names.get(part, part) for part in name.split(".")): value for name, value in tensors.items()}
