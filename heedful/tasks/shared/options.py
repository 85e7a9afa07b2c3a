"""Options of a command, grouped in dataclasses: each field is an option, with an annotation for typer."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any


def parameters_of(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as keyword-only parameters."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found: dict[str, inspect.Parameter] = {}
    for field in dataclasses.fields(kind):
        usual = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found[field.name] = inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=hints[field.name]
        )
    return found


def by_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function: its keyword arguments are dataclasses, whose fields become options."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind != inspect.Parameter.KEYWORD_ONLY]
    groups = {one.name: one.annotation for one in signature.parameters.values() if one not in own}
    fields = {name: parameters_of(kind) for name, kind in groups.items()}
    taken = signature.replace(parameters=[*own, *(one for each in fields.values() for one in each.values())])

    def command(*given: object, **words: object) -> None:
        bound = taken.bind(*given, **words)
        bound.apply_defaults()
        made = {name: kind(**{field: bound.kwargs[field] for field in fields[name]}) for name, kind in groups.items()}
        function(*bound.args, **made)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = taken  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in taken.parameters.values()}
    return command
