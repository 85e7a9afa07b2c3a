"""Laws inside rooms: modules do not import each other in circles, only rows and commands name a `cli.py`, and a setting
of a search is declared in few modules. The lists of what is not so yet may only become shorter."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from heedful.decode.settings import Decoding, Sampling
from house.test_imports import imports, modules

# How many modules declare a setting as a field, a parameter or a key of its own.
DECLARED = {"beam": 14, "length_penalty": 10, "temperature": 7, "n_best": 6, "top_k": 2}  # one of 7: a teacher's
WORDS = {"own", "found", "one", "made", "said", "told"}  # that say nothing of what they hold
BINDINGS = {
    "core": 25, "models": 14, "decode": 77, "look": 34, "data": 566, "exchange": 141, "run": 72, "tasks": 1051,
    "verbs": 65, "serve": 138, "lab": 166,
}  # fmt: skip


def dotted(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")


def graph(root: Path) -> dict[str, set[str]]:
    """The modules that each module imports, wherever in it; what a row's `Lazy` names is not imported."""
    sources = {dotted(path): (path, source) for path, source in modules(root)}
    found = dict[str, set[str]]()
    for name, (path, source) in sources.items():
        named = {other for _, other in imports(without_rows(source), ".".join(Path(path).parts[:-1]))}
        known = {other if other in sources else other.rpartition(".")[0] for other in named}
        found[name] = {other for other in known if other in sources and other != name}
    return found


def without_rows(source: str) -> str:
    return source.replace("Lazy(", "_row(").replace("Lazy[", "_row[")


def circles(edges: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The sets of modules that reach each other (Tarjan 1972)."""
    index, low, stack = dict[str, int](), dict[str, int](), list[str]()
    done: list[set[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = set(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            done.append(members)

    for name in edges:
        if name not in index:
            visit(name)
    return (members for members in done if len(members) > 1)


def declared(source: str, name: str) -> bool:
    """Whether a module has a parameter or an annotated field of this name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return True
    return False


def bound(source: str) -> Iterator[str]:
    """The names that a module binds: variables and parameters."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_modules_import_each_other_in_no_circle(root: Path) -> None:
    assert not [*circles(graph(root))]


def test_circles_are_found() -> None:
    assert [*circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})] == [{"a", "b", "c"}]
    assert not [*circles({"a": {"b"}, "b": set()})]


def test_only_rows_and_commands_name_commands(root: Path) -> None:
    found = [
        f"{path}: {name}"
        for path, source in modules(root)
        if not path.endswith("/cli.py") and not path.startswith("heedful/cli/")
        for _, name in imports(without_rows(source), ".".join(Path(path).parts[:-1]))
        if name.startswith("heedful.tasks.") and ".cli." in f"{name}."
    ]
    assert not found, "\n".join(found)


def test_a_setting_of_a_search_is_declared_in_few_modules(root: Path) -> None:
    fields = {*Decoding.__dataclass_fields__, *Sampling.__dataclass_fields__}
    assert fields >= {*DECLARED}
    counts = {name: sum(declared(source, name) for _, source in modules(root)) for name in DECLARED}
    assert counts == DECLARED, "it may only become less: then lower the number here"


def test_names_that_say_nothing_become_fewer(root: Path) -> None:
    counts = dict.fromkeys(BINDINGS, 0)
    for path, source in modules(root):
        room = Path(path).parts[1]
        if room in counts:
            counts[room] += sum(name in WORDS for name in bound(source))
    assert all(counts[room] <= most for room, most in BINDINGS.items()), counts
