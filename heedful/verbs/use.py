"""Asking a model, as the terminal, a server and Python all do: plain records come out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, unknown_key
from heedful.errors import InputError
from heedful.run.task import Embedder, Served
from heedful.tasks.load import row_of_model, row_of_run


def verbs_of(served: Served) -> list[str]:
    """What a model can be asked."""
    return [*row_of_model(served).asks]


def ask(served: Served, verb: str, inputs: Sequence[str], settings: Mapping[str, Any] | None = None) -> list[Any]:
    """A record for each answer of a model to each input. `settings` are fields of the options of this verb; an unknown
    one is an error that names the nearest. Raises InputError."""
    asks = row_of_model(served).asks
    if verb not in asks:
        raise unknown_key(verb, [*asks], where="what this model can be asked")
    question = asks[verb]()
    options = from_json(question.options, dict(settings or {}), where=verb, largest=None)
    return list(question.answers(served, inputs, options))


def how_to_use(run: Path) -> str:
    """What a run does, and the command for it."""
    row = row_of_run(run)
    commands = () if row.commands is None else row.commands()
    verb = next(iter([*row.asks, *(command.name for command in commands)]), "embed")
    return f"this run {row.does}: heed {verb} {run}"


def embedder_of(run: Path, *, device: str = "cpu") -> Embedder:
    """What makes vectors of texts, or of pictures. Raises InputError for a model that reads neither by itself."""
    row = row_of_run(run)
    if row.embedder is None:
        what = f"a model for {row.name!r} makes no vectors of texts"
        raise InputError(what, where=str(run), fix=how_to_use(run))
    return row.embedder().load(run, device=device)
