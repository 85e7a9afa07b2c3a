"""Options of commands that the tasks define: each task has a dataclass with the options that its models use."""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from heedful.errors import InputError
from heedful.run.task import Task, TrainOption
from heedful.tasks.shared.options import parameters_of


def united(kinds: Iterable[type[Any]]) -> dict[str, inspect.Parameter]:
    """The fields of these dataclasses as parameters, each name once."""
    found: dict[str, inspect.Parameter] = {}
    for kind in dict.fromkeys(kinds):
        for name, parameter in parameters_of(kind).items():
            found.setdefault(name, parameter)
    return found


def of_training(rows: Iterable[Task]) -> dict[str, inspect.Parameter]:
    """The options of `heed train` that only some tasks have, as parameters, each name once."""
    told: dict[str, dict[TrainOption, list[str]]] = {}
    for row in rows:
        for name, option in row.train_options.items():
            told.setdefault(name, {}).setdefault(option, []).append(row.name)
    return {name: _training_option(name, by_task) for name, by_task in told.items()}


def _training_option(name: str, by_task: Mapping[TrainOption, Sequence[str]]) -> inspect.Parameter:
    """The parameter of an option, which several tasks may have; all of them agree on whether it is repeatable."""
    text = "; ".join(f"of {' and '.join(tasks)}: {option.help}" for option, tasks in by_task.items())
    first = next(iter(by_task))
    mark = typer.Option(help=f"{text[0].upper()}{text[1:]}.", metavar=first.metavar, show_default=False)
    annotation = Annotated[list[str] | None, mark] if first.several else Annotated[str | None, mark]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def with_options(function: Callable[..., None], options: Mapping[str, inspect.Parameter]) -> Callable[..., None]:
    """A command that takes these options too; `function` gets them as `options`, a dict by name."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "options"]
    positional = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    parameters = [*positional, *options.values()]

    def command(**words: object) -> None:
        chosen = {name: words.pop(name) for name in options}
        function(**words, options=chosen)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def chosen_of(kind: type[Any], options: Mapping[str, Any], known: Mapping[str, inspect.Parameter], where: str) -> Any:
    """An instance of the dataclass `kind` with its options. Raises InputError if any other option was given."""
    own = {field.name for field in dataclasses.fields(kind)}
    for name, value in options.items():
        if name not in own and value != known[name].default:
            raise InputError(f"{_word(known[name])} is not used by this model", where=where, fix="leave it out")
    return kind(**{name: value for name, value in options.items() if name in own})


def _word(parameter: inspect.Parameter) -> str:
    """The option as it is typed, such as --beam."""
    marks = (mark for mark in typing.get_args(parameter.annotation)[1:] if isinstance(mark, OptionInfo))
    words = (word for mark in marks for word in (mark.default, *(mark.param_decls or ())))
    return next((word for word in words if isinstance(word, str)), f"--{parameter.name.replace('_', '-')}")
