"""A translator is a value: task.json is read in one module, and nothing sets an attribute of a finished model."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful

ROOT = Path(heedful.__file__).parent
TASKS = ("translate", "denoise", "summarise")  # whose models are translators
SPEC = ROOT / "tasks" / "translate" / "spec.py"
SET_LATER = {"run", "verbs", "budget"}  # of every finished model, by `changed`
TREES = {path: ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}


def is_about(node: ast.expr) -> bool:
    """Whether this is what task.json says, by its usual name."""
    return (isinstance(node, ast.Name) and node.id == "about") or (
        isinstance(node, ast.Attribute) and node.attr == "about"
    )


def read_by_keys(tree: ast.Module) -> Iterator[int]:
    """The lines that read or write a key of task.json, or name the file."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=value) if is_about(value):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=value)) if is_about(value):
                yield node.lineno
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]) if is_about(value):
                yield node.lineno
            case ast.Constant(value="task.json"):
                yield node.lineno


def finished_models() -> dict[str, ast.ClassDef]:
    """All classes that derive from `Opened`."""
    classes = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known = {"Opened"}

    def bases(node: ast.ClassDef) -> set[str]:
        plain = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        return {base.id for base in plain if isinstance(base, ast.Name)}

    while more := {node.name for node in classes if bases(node) & known} - known:
        known |= more
    return {node.name: node for node in classes if node.name in known}


def set_in(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that are set in this part of the code."""
    for part in ast.walk(node):
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        if isinstance(part, ast.Assign | ast.AugAssign | ast.AnnAssign):
            yield from (one for target in targets if target for one in ast.walk(target) if is_set(one))


def is_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def test_task_json_of_a_translator_is_read_in_one_module() -> None:
    paths = [path for task in TASKS for path in (ROOT / "tasks" / task).rglob("*.py") if path != SPEC]
    assert len(paths) > 40
    found = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in read_by_keys(TREES[path])]
    assert not found, "TranslatorSpec has its keys as fields"


@pytest.mark.parametrize(
    "line", ['about["source"]', 'model.about.get("tags")', '"noise" in model.about', 'x = "task.json"']
)
def test_an_offender_is_found(line: str) -> None:
    assert [*read_by_keys(ast.parse(line))] == [1]


def test_nothing_sets_an_attribute_of_a_finished_model() -> None:
    models = finished_models()
    assert {"Translator", "LanguageModel", "Detector", "TextEncoder"} <= models.keys()
    known, found = set(SET_LATER), list[str]()
    for name, node in models.items():
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                known |= {one.attr for one in set_in(part) if of_self(one)} if name == "BaseTranslator" else set()
            else:
                found += [f"{name}.{one.attr}" for one in set_in(part) if of_self(one)]
    for path, tree in TREES.items():
        if path.relative_to(ROOT).parts[0] == "data":  # below the models; other libraries' trainers, and readers
            continue
        outside = [one for one in set_in(tree) if not of_self(one) and one.attr in known]
        found += [f"{path.relative_to(ROOT)}:{one.lineno} {one.attr}" for one in outside]
    assert not found, "changed() gives another model"
