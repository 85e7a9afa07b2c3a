"""Asking a model, as the terminal, a server and Python all do: plain records come out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.core.config import from_json, unknown_key
from heedful.errors import InputError
from heedful.run.task import Ask, Embedder, Served, Task
from heedful.tasks.load import row_of_model, row_of_run


@runtime_checkable
class Directed(Protocol):
    """What translates, maybe between several languages and in several kinds."""

    def directed(self, source: str = "", target: str = "", tag: str = "") -> Any: ...


def verbs_of(served: Served) -> list[str]:
    """What a model can be asked."""
    return [*row_of_model(served).asks]


def ask(served: Served, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None) -> list[Any]:
    """A record for each answer of a model to each input. `settings` are fields of the options of this verb; an unknown
    one is an error that names the nearest. Raises InputError."""
    question = question_of(row_of_model(served), verb)
    return list(question.answers(served, inputs, options_of(question, verb, settings)))


def ask_each(
    served: Served, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None
) -> list[list[Any]]:
    """`ask`, a list of records for each input."""
    question = question_of(row_of_model(served), verb)
    options = options_of(question, verb, settings)
    if question.each is not None:
        return [[*own] for own in question.each(served, inputs, options)]
    records = question.answers(served, inputs, options)
    return [[record] for _, record in zip(inputs, records, strict=True)]


def question_of(row: Task, verb: str) -> Ask:
    """Raises InputError for what a model of this row cannot be asked."""
    if verb not in row.asks:
        raise unknown_key(verb, [*row.asks], where="what this model can be asked")
    return row.asks[verb]()


def options_of(question: Ask, verb: str, settings: Mapping[str, Any] | None) -> Any:
    """The question's options; `settings` are fields of them. Raises InputError."""
    return from_json(question.options, dict(settings or {}), where=verb, largest=None)


def how_to_use(run: Path) -> str:
    """What a run does, and the command for it."""
    row = row_of_run(run)
    commands = () if row.commands is None else row.commands()
    verb = next(iter([*row.asks, *(command.name for command in commands)]), "embed")
    return f"this run {row.does}: heed {verb} {run}"


def embedder_in(row: Task, served: Served) -> Embedder:
    """What makes vectors with a model that is open, of a task that has an embedder."""
    assert row.embedder is not None
    return served if isinstance(served, Embedder) else row.embedder().of(served)


def embedder_of(run: Path, *, device: str = "cpu") -> Embedder:
    """What makes vectors of texts, or of pictures. Raises InputError for a model that reads neither by itself."""
    row = row_of_run(run)
    if row.embedder is None:
        what = f"a model for {row.name!r} makes no vectors of texts"
        raise InputError(what, where=str(run), fix=how_to_use(run))
    return row.embedder().load(run, device=device)
