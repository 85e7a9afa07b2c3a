"""Imports go down: which room of the house may use which, checked over the source of all of them."""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful.run.task import Lazy
from heedful.tasks import TASKS


class Room(NamedTuple):
    """What the modules of one room may import beside each other and the standard library."""

    rooms: str
    libraries: str = "any"
    never: str = ""


def folder(task: str) -> str:
    """The room of a task."""
    return f"tasks.{task.replace('-', '_')}"


# Every task has a folder of its own below `tasks`, and all of them may use the same.
TASK = "errors core core.seeds core.arguments models decode look data data.text data.documents data.images data.made "
TASK += "data.sound metrics store training apply run exchange tasks.shared"

HOUSE = {
    # the ground, on which all stand
    "errors": Room("", libraries=""),
    # floor 1: readable in an afternoon
    "core.seeds": Room("", libraries="torch"),
    "core": Room("errors", libraries="torch jaxtyping"),
    "core.arguments": Room("errors core", libraries=""),
    # floor 2: they do not know each other
    "models": Room("errors core", libraries="torch jaxtyping"),
    "decode": Room("errors core.arguments", libraries="torch jaxtyping"),
    "look": Room("errors"),
    "data": Room("errors core.seeds", never="torch.nn"),
    "data.text": Room("errors data", never="torch.nn"),
    "data.documents": Room("errors data data.text", never="torch.nn"),
    "data.made": Room("errors", never="torch.nn"),
    "data.images": Room("errors core.seeds data data.made", never="torch.nn"),
    "data.sound": Room("errors core.seeds data data.images", never="torch.nn"),
    "metrics": Room("errors data data.text data.images", never="torch.nn"),
    # floor 3
    "store": Room("errors"),
    "training": Room("errors core core.seeds"),
    "apply": Room("errors core"),
    "figures": Room("core models look"),
    # floor 4: what every run is, and every exchange, without the word "translate"
    "run": Room("errors core models data look metrics store training apply"),
    "exchange": Room("errors core models data data.text data.images store apply run"),
    # floor 5: the tasks, which know each other only where their rows say so
    "tasks.shared": Room(
        "errors core core.seeds core.arguments models decode look data data.text data.images metrics store apply run"
    ),
    **{folder(name): Room(TASK) for name in TASKS},
    "tasks": Room(" ".join(["errors core run store tasks.shared", *map(folder, TASKS)])),
    # floor 6: what a terminal, a server and Python all call
    "verbs": Room("errors core models look figures data data.text metrics store apply run exchange tasks tasks.shared"),
    # the doors: `import heedful` hands verbs to Python, and the command line calls them
    "__init__": Room("core.arguments run tasks verbs"),
    "serve": Room(
        "errors core core.seeds look decode data.images data.sound data.text data.documents run store tasks "
        "tasks.shared verbs"
    ),
    "lab": Room("errors core models decode look figures data.text data.made training run tasks.generate"),
    "cli": Room("errors data data.text lab look run serve store tasks tasks.shared verbs"),
    "__main__": Room("cli"),
}
EVERYWHERE_BUT_TESTS = "transformers"  # what we are compared with, we are not built on

# Words that are the name of a task, and something else here.
HOMONYMS = {
    "heedful/run/recipe.py": {"answer", "classify"},  # sections of recipes before tasks had their own
    "heedful/tasks/classify/train.py": {"answer"},  # a key of data.json
    "heedful/tasks/classify_images/__init__.py": {"classify"},  # a verb
    "heedful/tasks/classify_sounds/__init__.py": {"classify"},
    "heedful/serve/public.py": {"generate", "transcribe", "translate"},  # verbs
    "heedful/serve/pages.py": {"chat"},  # a view
    "heedful/serve/transcriptions.py": {"segment"},  # of a transcript
    "heedful/tasks/generate/hub.py": {"chat"},  # a key of task.json
    "heedful/verbs/ranking.py": {"chat", "generate"},  # verbs
    "heedful/run/start.py": {"chat"},  # a key of task.json
    "heedful/run/teacher.py": {"answer"},  # a key of task.json
    "heedful/tasks/generate/in_context.py": {"match"},  # how answers are judged
    "heedful/tasks/prefer/rewards.py": {"answer"},  # a key of what is rewarded
    "heedful/tasks/reward/cli.py": {"answer"},
    "heedful/tasks/reward/use.py": {"answer"},
    "heedful/figures/__init__.py": {"vectors"},  # a kind of model
    "heedful/serve/own.py": {"vectors"},  # a key of an answer
    "heedful/tasks/match/use.py": {"vectors"},  # what is not finite
    "heedful/tasks/translate/pairs/tagged.py": {"tag"},  # a key of recipes
}


@functools.cache
def imports(source: str, package: str) -> list[tuple[int, str]]:
    """Line and full dotted name of all that `source`, a module of `package`, imports, wherever in it.

    `from a import b` gives a.b. A use of `torch.nn` counts as its import, and so does a name that is given to
    `import_module` or `Lazy`; a name that is computed there gives "?".
    """
    return [*_imports(ast.parse(source), package)]


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.nn":
            yield node.lineno, "torch.nn"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__", "Lazy")):
            words = [word.value for word in node.args[:1] if isinstance(word, ast.Constant)]
            yield node.lineno, str(words[0]).replace(":", ".") if words else "?"


def within(name: str, packages: str) -> bool:
    """Whether the dotted `name` is one of `packages` (separated by blanks) or inside one."""
    return any(f"{name}.".startswith(f"{package}.") for package in packages.split())


def room_of(module: str) -> str:
    """The room of a module of heedful, by its dotted name without the first: the longest that it is inside of."""
    if not module:
        return "__init__"
    return max((room for room in HOUSE if within(module, room)), key=len, default=module.split(".")[0])


def room_at(path: str) -> str:
    """The room of the module at `path`, seen from the project's folder."""
    return room_of(".".join(Path(path).with_suffix("").parts[1:]).removesuffix("__init__").rstrip("."))


def free_to(here: str) -> str:
    """The rooms that this one may import from: its own, those in its row, and those that its task's row uses."""
    uses = (row.uses for name, row in TASKS.items() if folder(name) == here)
    return " ".join([here, HOUSE[here].rooms, *(folder(name) for names in uses for name in names)])


def forbidden(path: str, source: str) -> list[str]:
    """What the module at `path`, seen from the project's folder, imports and must not: one line each."""
    here, package = room_at(path), ".".join(Path(path).parts[:-1])
    if here not in HOUSE:
        return [f"{path}: {here} has no place in the house: give it a row in HOUSE"]
    room, rooms = HOUSE[here], free_to(here).split()
    found = []
    for line, name in imports(source, package):
        top, _, inner = name.partition(".")
        if top == "heedful":
            culprit = room_of(inner)
            allowed = culprit in rooms
        elif top in sys.stdlib_module_names:
            continue
        elif name == "?" and path == "heedful/run/task.py":
            continue  # a row's Lazy, which is followed where it is written
        else:
            unknown = top == "?" or (room.libraries != "any" and not within(name, room.libraries))
            allowed = not unknown and not within(name, f"{room.never} {EVERYWHERE_BUT_TESTS}")
            culprit = name if within(name, room.never) else top
        if not allowed:
            found.append(f"{path}:{line}: {here} must not import {culprit}")
    return found


def named(path: str, source: str) -> list[str]:
    """Where a module names a task in a string that is its name and nothing else, and is neither the task's own nor that
    of one which uses it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        name = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(name, str) or name not in TASKS or name in HOMONYMS.get(path, ()):
            continue
        if folder(name) not in free_to(room_at(path)).split():
            found.append(f"{path}:{node.lineno}: names the task {name!r}: ask its row in TASKS")
    return found


def modules(root: Path) -> list[tuple[str, str]]:
    """Path and source of each module of the package."""
    files = sorted((root / "heedful").rglob("*.py"))
    assert len(files) > 100
    return [(file.relative_to(root).as_posix(), file.read_text("utf-8")) for file in files]


def test_imports_go_down(root: Path) -> None:
    found = [line for path, source in modules(root) for line in forbidden(path, source)]
    assert not found, "\n" + "\n".join(found)


def test_every_room_may_use_only_what_it_uses(root: Path) -> None:
    """The table says no more than is so, but of what all tasks share."""
    used: dict[str, set[str]] = {name: set() for name in HOUSE}
    for path, source in modules(root):
        for _, name in imports(source, ".".join(Path(path).parts[:-1])):
            if within(name, "heedful"):
                used[room_at(path)].add(room_of(name.partition(".")[2]))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and node.value in TASKS:
                used[room_at(path)].add(folder(node.value))
    idle = {name: set(room.rooms.split()) - used[name] for name, room in HOUSE.items() if room.rooms != TASK}
    assert not {name: rooms for name, rooms in idle.items() if rooms}
    for name, row in TASKS.items():
        assert set(map(folder, row.uses)) <= used[folder(name)], name


def test_floors_have_no_way_up() -> None:
    """The table itself: no two rooms lead to each other."""
    rows = list(HOUSE)
    for name, room in HOUSE.items():
        assert all(rows.index(other) < rows.index(name) for other in room.rooms.split()), name


def test_nothing_but_its_folder_and_the_table_names_a_task(root: Path) -> None:
    below = ("heedful/core/", "heedful/data/", "heedful/models/")  # have words of their own, and import no task
    found = [line for path, source in modules(root) if not path.startswith(below) for line in named(path, source)]
    assert not found, "\n" + "\n".join(found)


def test_no_room_is_crowded(root: Path) -> None:
    """The largest has less than a fifth of the code."""
    lines: dict[str, int] = {}
    for path, source in modules(root):
        lines[room_at(path)] = lines.get(room_at(path), 0) + len(source.splitlines())
    largest = max(lines, key=lambda room: lines[room])
    assert 5 * lines[largest] < sum(lines.values()), (
        f"{largest} has {lines[largest]:,} of {sum(lines.values()):,} lines"
    )


@pytest.mark.parametrize("name", TASKS)
def test_all_that_a_row_names_is_there(name: str) -> None:
    row = TASKS[name]
    parts = [value for one in (row, row.inside) for value in vars(one).values() if isinstance(value, Lazy)]
    parts += [value for table in (row.asks, row.engines) for value in table.values() if isinstance(value, Lazy)]
    assert len(parts) >= 3
    for part in parts:
        assert part() is not None, part.path
    assert set(row.uses) <= TASKS.keys() - {name}


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
        ("heedful/core/mask.py", "\nimport heedful.data.text.pairs", "mask.py:2: core must not import data.text"),
        ("heedful/core/mask.py", "from heedful import models", "core must not import models"),
        ("heedful/core/mask.py", "from ..look.record import record", "core must not import look"),
        ("heedful/core/mask.py", "from .. import cli", "core must not import cli"),
        ("heedful/core/mask.py", "import numpy", "core must not import numpy"),
        ("heedful/core/mask.py", "import heedful", "core must not import __init__"),
        ("heedful/models/lm.py", "def f():\n    import heedful.store", "2: models must not import store"),
        ("heedful/decode/search.py", "from heedful.models.lm import LM", "decode must not import models"),
        ("heedful/decode/search.py", "from heedful.core.mask import Mask", "decode must not import core"),
        ("heedful/look/draw.py", "from heedful.tasks import fill", "look must not import tasks"),
        ("heedful/look/record.py", "from heedful.models.rnn import RNN", "look must not import models"),
        ("heedful/data/batches.py", "from torch import nn", "data must not import torch.nn"),
        ("heedful/data/batches.py", "import torch\ntorch.nn.functional.pad()", "2: data must not import torch.nn"),
        ("heedful/data/batches.py", "from heedful.core.mask import Mask", "data must not import core"),
        ("heedful/data/batches.py", "from heedful.data.text import pairs", "data must not import data.text"),
        ("heedful/data/made/phrasebook/words.py", "from heedful.models import lm", "data.made must not import models"),
        ("heedful/data/made/phrasebook/words.py", "from ....models import lm", "data.made must not import models"),
        ("heedful/training/loop.py", "if True:\n    from heedful.run import job", "training must not import run"),
        ("heedful/run/job.py", "from heedful.tasks import TASKS", "run must not import tasks"),
        ("heedful/run/job.py", "Lazy('heedful.tasks.fill.use:Filler')", "run must not import tasks.fill"),
        ("heedful/tasks/shared/body.py", "import heedful.tasks.fill.use", "tasks.shared must not import tasks.fill"),
        ("heedful/tasks/tag/use.py", "import heedful.tasks.match.use", "tasks.tag must not import tasks.match"),
        ("heedful/tasks/tag/use.py", "from heedful.tasks import TASKS", "tasks.tag must not import tasks"),
        ("heedful/tasks/tag/use.py", "import heedful.cli", "tasks.tag must not import cli"),
        ("heedful/exchange/hf/bert.py", "import transformers", "exchange must not import transformers"),
        ("heedful/verbs/look.py", "import_module('heedful.cli')", "verbs must not import cli"),
        ("heedful/verbs/look.py", "importlib.import_module(name)", "verbs must not import ?"),
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
        ("heedful/data/made/phrasebook/words.py", "import num2words\nfrom . import dates\nfrom .. import shapes"),
        ("heedful/exchange/hf/bert.py", "from ...models.encoder import Encoder\nimport safetensors.torch"),
        ("heedful/tasks/denoise/use.py", "from heedful.tasks.translate.use import Translator"),
        ("heedful/__init__.py", "def load():\n    from heedful.tasks.load import load_model"),
        ("heedful/__main__.py", "from heedful.cli import main"),
    ],
)
def test_a_way_down_is_free(path: str, source: str) -> None:
    assert forbidden(path, source) == []


def test_a_task_that_is_named_elsewhere_is_found() -> None:
    assert named("heedful/verbs/info.py", 'if task == "translate":\n    pass') != []
    assert named("heedful/verbs/info.py", '"""Of translate, for example."""') == []
