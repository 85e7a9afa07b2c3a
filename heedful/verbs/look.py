"""Looking inside a model: who looked at whom, or at what, as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.attention import Attention
from heedful.errors import InputError
from heedful.look.walk import tapped, walk
from heedful.run.task import Looked, NamedWeights, Served, Task
from heedful.tasks import TASKS
from heedful.tasks.load import load_model, row_of_model, row_of_run

KINDS = ("png", "svg", "html", "json")


def refuse_blind(run: Path) -> None:
    """Raises InputError for a run whose model cannot be looked into, MissingError where there is none."""
    row = row_of_run(run)
    if row.look is None:
        raise _blind(row, str(run))


def look(run: Path, text: str, kind: str, options: object, *, device: str = "cpu") -> Looked:
    """What a model looked at while it read `text`, or the picture in that file; `kind` is one of KINDS, and `options`
    are of the kind that the task's row names."""
    refuse_blind(run)
    return look_into(load_model(run, device=device), text, kind, options)


def look_into(served: Served, given: str, kind: str, options: object) -> Looked:
    """The same of a model that is loaded already. Raises InputError for one that cannot be looked into."""
    row = row_of_model(served)
    if row.look is None:
        raise _blind(row, "task.json")
    return row.look()(served, given, kind, options)


def weights_of(served: Served, given: str, options: object) -> Mapping[str, NamedWeights]:
    """What such a picture is drawn from, by the names of the layers."""
    row = row_of_model(served)
    if row.attention is None:
        raise _blind(row, "task.json")
    return row.attention()(served, given, options)


def walk_through(served: Served, given: str, options: object, *, layer: str, head: int, query: int) -> dict[str, Any]:
    """The numbers of one head and query (`heedful.look.walk`) of a layer that `weights_of` names, with the tokens of
    its queries and keys. Raises InputError for a layer that is no attention of queries, keys and values."""
    row = row_of_model(served)
    if row.attention is None:
        raise _blind(row, "task.json")
    every = served.model.named_modules()
    found = [own for name, own in every if name == layer or name.endswith(f".{layer}")]
    if len(found) != 1 or not isinstance(found[0], Attention):
        layers = ", ".join(name for name, own in served.model.named_modules() if isinstance(own, Attention)) or "none"
        raise InputError(f"{layer!r} is no attention of queries, keys and values", fix=f"this model's are: {layers}")
    attention = found[0]
    with tapped(attention) as tap:
        named = row.attention()(served, given, options)
    labels = next((own.labels for name, own in named.items() if name == layer), {})
    queries, keys = [*labels.get("query", ())], [*labels.get("key", ())]
    if queries and not 0 <= query < len(queries):
        raise InputError(f"{len(queries)} queries, no query {query}", fix="they are counted from 0")
    made = walk(attention, tap, head=head, query=query - len(queries) if queries else query)
    return {"layer": layer, "head": head, "query": query, "queries": queries, "keys": keys, **made}


def _blind(row: Task, where: str) -> InputError:
    known = ", ".join(each.name for each in TASKS.values() if each.look is not None and not each.saved_as)
    return InputError(f"a model for {row.name!r}", where=where, fix=f"look at one for {known}")
