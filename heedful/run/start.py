"""Starting a training from the model of another run: its tokenizers, configuration and weights; and its teacher."""

from collections.abc import Collection, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from heedful.data.parts import some_of
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, counted
from heedful.run.folder import load_weights, parameters, read_textless_run, task_name
from heedful.run.recipe import DistilledRecipe, Recipe
from heedful.run.teacher import Teacher
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files
from heedful.store.migrations import FORMAT, in_todays_format
from heedful.store.model import MODEL, read_model
from heedful.store.tensors import Tensors

# The keys of task.json about tokens around texts, languages, conversations, how sound is heard and the family of the
# model: a run that starts from this one keeps them.
AROUND = (
    "before",
    "after",
    "begin",
    "end",
    "forbidden",
    "forbidden_first",
    "languages",
    "hearing",
    "family",
    "chat",
    "tags",
    "tagged",
)


class Start(NamedTuple):
    source: Tokenizer
    target: Tokenizer  # the same object where the run has one for both sides
    model: dict[str, Any]  # the configuration, as `models.model_from` takes it
    around: dict[str, Any]  # the keys AROUND of task.json

    def facts(self) -> dict[str, Any]:
        """For data.json, where `read_start` finds it again."""
        return {"start": {"format": FORMAT} | self.model, "around": self.around}


def read_start(recipe: Recipe, begun: Path | None, *tasks: str) -> Start | None:
    """The model of `recipe.start_from`, a run of one of `tasks`; None where the recipe names none.

    A run that has begun, in the folder `begun`, has it in its own files. Raises InputError or MissingError.
    """
    if not recipe.start_from:
        return None
    known = None if begun is None else read_tokenizers(begun)
    if begun is not None and known is not None:
        facts = files.read_json(begun / "data.json")
        return Start(*known, in_todays_format(facts["start"]), facts.get("around", {}))
    folder, about = started_from(recipe, *tasks)
    tokenizers = read_tokenizers(folder)
    assert tokenizers is not None  # `task_name` found a whole model
    return Start(*tokenizers, begun_with(recipe, folder), {key: about[key] for key in AROUND if key in about})


def read_teacher(recipe: Recipe) -> Teacher | None:
    """The teacher that the recipe names, if any. Raises MissingError, StorageError or InputError where that is no run
    of the recipe's task."""
    if not isinstance(recipe, DistilledRecipe) or not recipe.distil.teacher:
        return None
    folder = Path(recipe.distil.teacher)
    name, about = task_name(folder)
    if name != recipe.task:
        what = f"a model for {name!r} does not teach one for {recipe.task!r}"
        raise InputError(what, where=str(folder), fix=f"name a run of heed train {recipe.task}")
    tokenizers, (_, weights) = read_tokenizers(folder), files.size_and_sha256(folder / MODEL)
    model = read_textless_run(folder)[0].eval()
    return Teacher(folder, model, about, None if tokenizers is None else tokenizers[0], weights, recipe.distil)


def started_from(recipe: Recipe, *tasks: str) -> tuple[Path, dict[str, Any]]:
    """The folder of `recipe.start_from`, and its task.json. Raises InputError for a run of another task than `tasks`,
    and where the recipe sets fields of the model that the run determines."""
    folder = Path(recipe.start_from)
    name, about = task_name(folder)
    if name not in tasks:
        what = f"not a model of heed train {' or '.join(tasks)}"
        raise InputError(what, where=str(folder), fix="start from another run")
    if key := next((key for key in recipe.model if key not in ("dropout", *recipe.STACKS)), ""):
        what = f"model.{key} cannot be chosen: the model is that of {folder}"
        raise InputError(what, fix=f"leave out model.{key}, or start_from")
    return folder, about


def begun_with(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """The configuration of the model in `folder`, with the dropout and the numbers of layers that the recipe sets.
    Raises InputError."""
    model = read_model(folder)[0]
    for key, stack in recipe.STACKS.items():
        if key in recipe.model:
            model = with_layers(model, stack, recipe.model[key], where=f"model.{key}")
    return with_dropout(model, recipe.model["dropout"]) if "dropout" in recipe.model else model


def with_layers(config: dict[str, Any], stack: str, number: object, *, where: str) -> dict[str, Any]:
    """A configuration with fewer layers in that stack. Raises InputError."""
    config = deepcopy(config)
    own = config["model"].get(stack)
    if not isinstance(own, dict) or "n_layers" not in own or own.get("pattern"):
        raise InputError(f"the model that it starts from has no {stack} with layers that are alike", where=where)
    most = own["n_layers"]
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        what = f"{number!r}, and the model that it starts from has {counted(most, 'layer')} there"
        raise InputError(what, where=where, fix="give as many or fewer")
    own["n_layers"] = number
    return config


def with_dropout(config: dict[str, Any], share: object) -> dict[str, Any]:
    """A configuration with this dropout wherever it has some; where it has none, at the embeddings and at the ends of
    residual branches. Raises InputError for a number that is no share."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise InputError(f"model.dropout is {share!r}, expected a number from 0 and below 1", fix="0.1 is usual")
    config = deepcopy(config)
    shares = [*_dropouts(config)]
    used = [(own, key) for own, key in shares if own[key]]
    plain = [(own, key) for own, key in shares if key == "dropout" and not {"n_heads", "n_layers"} & own.keys()]
    for own, key in used or plain:
        own[key] = float(share)
    return config


def _dropouts(config: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The dropout fields in a configuration: the dict that has each, and its key."""
    if isinstance(config, list):
        for one in config:
            yield from _dropouts(one)
    elif isinstance(config, dict):
        for key, value in config.items():
            if key.endswith("dropout"):
                yield config, key
            else:
                yield from _dropouts(value)


def copy_weights(
    module: nn.Module,
    folder: str,
    *,
    grown: Collection[str] = (),
    without: tuple[str, ...] = (),
    new: tuple[str, ...] = (),
    stacks: Collection[str] = (),
) -> None:
    """Copies the weights of the run in `folder` into `module`. Tensors of `grown` may have more rows in `module`: only
    the first ones are copied. Names that begin with one of `without` are skipped; those that begin with one of `new`
    may be missing in the run. The `stacks` of `module` may have fewer layers: these are taken from the run's at equal
    distances (Shleifer and Rush 2020, section 3.1)."""
    _, tensors = read_model(Path(folder))
    own = parameters(module)
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(without)}
    tensors = {name: own[name] for name in own if name.startswith(new)} | tensors
    for stack in stacks:
        tensors = _some_layers(tensors, own, f"{stack}.blocks.")
    for name in grown:
        if name in own and name in tensors:
            tensors[name] = torch.cat([tensors[name], own[name][len(tensors[name]) :]])
    load_weights(module, tensors, where=str(Path(folder) / "model.safetensors"))


def _some_layers(tensors: Tensors, own: Collection[str], prefix: str) -> Tensors:
    """The tensors, with as many layers under this prefix as the names in `own` have."""

    def layer(name: str) -> int:
        return int(name.removeprefix(prefix).split(".")[0])

    has, wanted = (1 + max(layer(name) for name in names if name.startswith(prefix)) for names in (tensors, own))
    numbers = {number: new for new, number in enumerate(some_of(has, wanted))}
    found = {}
    for name, tensor in tensors.items():
        if not name.startswith(prefix):
            found[name] = tensor
        elif layer(name) in numbers:
            rest = name.removeprefix(f"{prefix}{layer(name)}.")
            found[f"{prefix}{numbers[layer(name)]}.{rest}"] = tensor
    return found
