"""Reads recipes, given as the name of a task, as YAML or as a Python file."""

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from heedful.core.config import unknown_key
from heedful.errors import InputError, MissingError
from heedful.run.recipe import LARGEST, Recipe, Section, read_yaml, recipe_text, validated
from heedful.store import files
from heedful.tasks import DEFAULT, TASKS, trained

# Top-level keys in the configurations of other programs, which no recipe has.
OTHERS = {"OpenNMT-py": {"save_data", "save_model", "src_vocab", "tgt_vocab"}, "Joey NMT": {"training", "testing"}}


class Sections(TypedDict, total=False):
    """The sections of a recipe besides its task. Each task reads some of these; any other is an error."""

    preset: str
    start_from: str
    model: Mapping[str, object]
    data: Section | Mapping[str, object]
    noise: Section | Mapping[str, object]
    train: Section | Mapping[str, object]
    decode: Section | Mapping[str, object]
    images: Section | Mapping[str, object]
    sound: Section | Mapping[str, object]
    classify: Section | Mapping[str, object]
    answer: Section | Mapping[str, object]
    reward: Section | Mapping[str, object]
    prefer: Section | Mapping[str, object]
    distil: Section | Mapping[str, object]


def recipe(task: str | None = None, **sections: Unpack[Sections]) -> Recipe:
    """Makes a recipe for a task: `recipe("tag", data={"path": "tags.tsv"}, train={"minutes": 5})`. Raises
    InputError."""
    return build({"task": task or DEFAULT, **sections}, where="recipe")


def build(data: object, *, where: str) -> Recipe:
    """Makes a recipe from plain data, with errors in one line."""
    return validated(kind_of_recipe(data, where=where), data, where=where)


def kind_of_recipe(data: object, *, where: str) -> type[Recipe]:
    task = data.get("task", DEFAULT) if isinstance(data, dict) else DEFAULT
    row = TASKS.get(task) if isinstance(task, str) else None
    if row is None or row.recipe is None:
        raise unknown_key(str(task), [*trained()], where=f"{where}: task")
    return row.recipe()


def from_yaml(text: str, *, where: str) -> Recipe:
    """Reads a recipe from YAML text."""
    data = read_yaml(text, where=where)
    data = {} if data is None else data
    for program, keys in OTHERS.items():
        if isinstance(data, dict) and not keys.isdisjoint(data):
            fix = "heed train translate --data train.en train.de --out RUN; docs/migration.md has its keys"
            raise InputError(f"a configuration of {program}, and no recipe", where=where, fix=fix)
    kind = kind_of_recipe(data, where=where)
    return validated(kind, data, where=where)


def saved_recipe(out: Path) -> Recipe:
    """Reads the recipe of the run in `out`."""
    return from_yaml(recipe_text(out), where=str(out / "recipe.yaml"))


def read_recipe(name: str) -> Recipe:
    """Reads a recipe, given the name of a task, a Python file that defines `recipe`, or a YAML file."""
    if name in trained():
        return recipe(name)
    path = Path(name)
    if (path / "recipe.yaml").is_file():
        raise InputError("a run, and no task", where=name, fix=f"to continue it: heed train --resume --out {name}")
    if path.suffix not in (".py", ".yaml", ".yml"):
        raise unknown_key(name, [*trained()], where="heed train", what="task")
    if not path.is_file():
        raise MissingError("there is no such recipe", where=name)
    if path.suffix == ".py":
        found = runpy.run_path(str(path)).get("recipe")
        if not isinstance(found, Recipe):
            raise InputError('defines no `recipe = heedful.recipe("translate", ...)`', where=name)
        return found
    try:
        return from_yaml(files.read_bytes(path, limit=LARGEST).decode("utf-8-sig"), where=name)
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=name, fix="save the file again, as UTF-8") from None


def by_key(options: Mapping[str, object], task: str) -> dict[str, object]:
    """The task's own options, by the keys of its recipe. Raises InputError for an option that it does not have."""
    known = TASKS[task].train_options
    for name, value in options.items():
        if value is not None and name not in known:
            raise InputError(f"--{name} is not used by {task}", where="heed train", fix="leave it out")
    return {option.key: options[name] for name, option in known.items() if options.get(name) is not None}
