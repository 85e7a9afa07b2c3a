"""Asks a model, for the terminal, the server and Python; returns plain records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.core.config import from_json, unknown_key
from heedful.errors import InputError
from heedful.run.task import Ask, Embedder, Served, Task
from heedful.tasks.load import row_of_model, row_of_run


@runtime_checkable
class Directed(Protocol):
    """A translator, which may have several languages and kinds of translations."""

    @property
    def languages(self) -> tuple[str, str]: ...
    def directed(self, source: str = "", target: str = "", tag: str = "") -> Any: ...


def verbs_of(served: Served) -> list[str]:
    """The verbs of a model."""
    return [*row_of_model(served).asks]


def ask(served: Served, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None) -> list[Any]:
    """The records of a model's answers to the inputs. `settings` are fields of the verb's options; an unknown one is an
    error that names the nearest. Raises InputError."""
    question = question_of(row_of_model(served), verb)
    return list(question.answers(served, inputs, options_of(question, verb, settings)))


def ask_each(
    served: Served, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
) -> list[list[Any]]:
    """`ask`, with a list of records for each input."""
    question = question_of(row_of_model(served), verb)
    options = options_of(question, verb, settings)
    if question.each is not None:
        return [[*own] for own in question.each(served, inputs, options)]
    records = question.answers(served, inputs, options)
    return [[record] for _, record in zip(inputs, records, strict=True)]


def question_of(row: Task, verb: str) -> Ask:
    """The question of a verb. Raises InputError for a verb that models of this task do not have."""
    if verb not in row.asks:
        raise unknown_key(verb, [*row.asks], where="what this model can be asked")
    return row.asks[verb]()


def options_of(question: Ask, verb: str, settings: Mapping[str, Any] | None) -> Any:
    """The question's options, with `settings` as their fields. Raises InputError."""
    return from_json(question.options, dict(settings or {}), where=verb, largest=None)


def how_to_use(run: Path) -> str:
    """A hint: what a run does, and the command for it."""
    row = row_of_run(run)
    commands = () if row.commands is None else row.commands()
    verb = next(iter([*row.asks, *(command.name for command in commands)]), "embed")
    return f"this run {row.does}: heed {verb} {run}"


def embedder_in(row: Task, served: Served) -> Embedder:
    """The embedder of a loaded model; its task must have one."""
    assert row.embedder is not None
    return served if isinstance(served, Embedder) else row.embedder().of(served)


def embedder_of(run: Path, *, device: str = "cpu") -> Embedder:
    """The embedder of a run, for texts or pictures. Raises InputError for a model without one."""
    row = row_of_run(run)
    if row.embedder is None:
        what = f"a model for {row.name!r} makes no vectors of texts"
        raise InputError(what, where=str(run), fix=how_to_use(run))
    return row.embedder().load(run, device=device)
