"""Imports go down: which room of the house may use which, checked over the source of all of them."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest


class Room(NamedTuple):
    """What the modules of one room may import beside each other and the standard library."""

    rooms: str
    libraries: str = "any"
    never: str = ""


HOUSE = {
    # the ground, on which all stand
    "errors": Room("", libraries=""),
    # floor 1: readable in an afternoon
    "core": Room("errors", libraries="torch jaxtyping"),
    # floor 2: the four of it do not know each other, but that look knows what it looks at
    "models": Room("errors core", libraries="torch jaxtyping"),
    "decode": Room("errors", libraries="torch jaxtyping"),
    "look": Room("errors core models"),
    "data": Room("errors core", never="torch.nn"),
    # floor 3
    "store": Room("errors core models"),
    "train": Room("errors core store"),
    # floor 4
    "tasks": Room("errors core models decode look data store train"),
    "export": Room("errors core models decode look data store train"),
    # floor 5
    "serve": Room("errors core models decode look data store train tasks export"),
    # the doors: `import heedful` hands tasks to Python, and the command line calls whatever it names
    "__init__": Room("tasks"),
    "cli": Room("__init__ errors core models decode look data store train tasks export serve"),
    "__main__": Room("cli"),
}
EVERYWHERE_BUT_TESTS = "transformers"  # what we are compared with, we are not built on


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of all that `source`, a module of `package`, imports, wherever in it.

    `from a import b` gives a.b. A use of `torch.nn` counts as its import, and so does a name that is given to
    `import_module`; a name that is computed there gives "?".
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.nn":
            yield node.lineno, "torch.nn"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            words = [word.value for word in node.args[:1] if isinstance(word, ast.Constant)]
            yield node.lineno, str(words[0]) if words else "?"


def within(name: str, packages: str) -> bool:
    """Whether the dotted `name` is one of `packages` (separated by blanks) or inside one."""
    return any(f"{name}.".startswith(f"{package}.") for package in packages.split())


def forbidden(path: str, source: str) -> list[str]:
    """What the module at `path`, seen from the project's folder, imports and must not: one line each."""
    *folders, file = Path(path).with_suffix("").parts
    here = folders[1] if len(folders) > 1 else file
    if here not in HOUSE:
        return [f"{path}: {here} has no place in the house: give it a row in HOUSE"]
    room = HOUSE[here]
    found = []
    for line, name in imports(source, ".".join(folders)):
        top, *inner = name.split(".")
        if top == "heedful":
            there = inner[0] if inner else "__init__"
            allowed = there == here or there in room.rooms.split()
            culprit = there
        elif top in sys.stdlib_module_names:
            continue
        else:
            unknown = top == "?" or (room.libraries != "any" and not within(name, room.libraries))
            allowed = not unknown and not within(name, f"{room.never} {EVERYWHERE_BUT_TESTS}")
            culprit = name if within(name, room.never) else top
        if not allowed:
            found.append(f"{path}:{line}: {here} must not import {culprit}")
    return found


def test_imports_go_down(root: Path) -> None:
    modules = sorted((root / "heedful").rglob("*.py"))
    assert len(modules) > 10
    found = [line for file in modules for line in forbidden(file.relative_to(root).as_posix(), file.read_text("utf-8"))]
    assert not found, "\n" + "\n".join(found)


def test_floors_have_no_way_up() -> None:
    """The table itself: no two rooms lead to each other."""
    rows = list(HOUSE)
    for name, room in HOUSE.items():
        assert all(rows.index(other) < rows.index(name) for other in room.rooms.split()), name


def test_transformers_is_only_compared_with(root: Path) -> None:
    found = [
        f"{file.relative_to(root)}:{line}"
        for folder in ("heedful", "recipes")
        for file in sorted((root / folder).rglob("*.py"))
        for line, name in imports(file.read_text("utf-8"), "")
        if within(name, EVERYWHERE_BUT_TESTS)
    ]
    assert not found, "transformers belongs under tests/ and benchmarks/: " + ", ".join(found)


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("heedful/core/mask.py", "\nimport heedful.data.text", "heedful/core/mask.py:2: core must not import data"),
        ("heedful/core/mask.py", "from heedful import models", "core must not import models"),
        ("heedful/core/mask.py", "from ..look.record import record", "core must not import look"),
        ("heedful/core/mask.py", "from .. import cli", "core must not import cli"),
        ("heedful/core/mask.py", "import numpy", "core must not import numpy"),
        ("heedful/core/mask.py", "import heedful", "core must not import __init__"),
        ("heedful/models/lm.py", "def f():\n    import heedful.store", "2: models must not import store"),
        ("heedful/decode/search.py", "from heedful.models.lm import LM", "decode must not import models"),
        ("heedful/decode/search.py", "from heedful.core.mask import Mask", "decode must not import core"),
        ("heedful/look/draw.py", "from heedful.tasks import fill", "look must not import tasks"),
        ("heedful/data/collate.py", "from torch import nn", "data must not import torch.nn"),
        ("heedful/data/collate.py", "import torch\ntorch.nn.functional.pad()", "2: data must not import torch.nn"),
        ("heedful/data/phrasebook/words.py", "from heedful.models import lm", "data must not import models"),
        ("heedful/data/phrasebook/words.py", "from ...models import lm", "data must not import models"),
        ("heedful/train/loop.py", "if True:\n    from heedful.tasks import fill", "train must not import tasks"),
        ("heedful/tasks/fill.py", "import heedful.cli", "tasks must not import cli"),
        ("heedful/store/hf/bert.py", "import transformers", "store must not import transformers"),
        ("heedful/serve/server.py", "import_module('heedful.cli')", "serve must not import cli"),
        ("heedful/serve/server.py", "importlib.import_module(name)", "serve must not import ?"),
        ("heedful/__init__.py", "import heedful.cli", "__init__ must not import cli"),
        ("heedful/cellar/wine.py", "", "cellar has no place in the house"),
    ],
)
def test_a_way_up_is_found(path: str, source: str, message: str) -> None:
    found = forbidden(path, source)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("heedful/core/mask.py", "import math\nimport torch.nn.functional\nfrom .config import load"),
        ("heedful/core/mask.py", "from heedful.errors import InputError\nfrom jaxtyping import Bool"),
        ("heedful/data/phrasebook/words.py", "import num2words\nfrom . import dates\nfrom .. import tokenizer"),
        ("heedful/store/hf/bert.py", "from ...models.encoder import Encoder\nimport safetensors.torch"),
        ("heedful/__init__.py", "def load():\n    from heedful.tasks.translate import Translator"),
        ("heedful/__main__.py", "from heedful.cli import main"),
    ],
)
def test_a_way_down_is_free(path: str, source: str) -> None:
    assert forbidden(path, source) == []
