"""Holds every function of heedful to its annotations while the tests run: types and, of tensors, shapes.

jaxtyping has an import hook too. It also wraps functions whose annotations name no shape, and wraps those that are
defined within another one anew at each call of that: the tests then take six times as long.
"""

import ast
import dataclasses
import functools
import importlib.machinery
import sys
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from beartype import beartype
from jaxtyping import jaxtyped

ONE_CALL = jaxtyped("context")
FIRST, THEN = 100, 10  # calls of a function in one test that are checked: these, and one in so many
called: Counter[Any] = Counter()  # how often, in this test


def checked(made: Any) -> Any:
    """The function, or the class with the function that fills it, held to its annotations."""
    if isinstance(made, type):
        if dataclasses.is_dataclass(made) and "__init__" in vars(made):
            made.__init__ = checked(made.__init__)  # type: ignore[misc]
        return made
    said = made.__annotations__
    made.__annotations__ = {name: known(hint, made.__globals__) for name, hint in said.items()}
    held = beartype(made)
    made.__annotations__ = held.__annotations__ = said
    if "jaxtyping" not in repr(said):
        return held

    @functools.wraps(held)
    def within(*args: Any, **named: Any) -> Any:
        called[made] += 1
        if called[made] > FIRST and called[made] % THEN:
            return made(*args, **named)
        with ONE_CALL:  # in which a letter is one size
            return held(*args, **named)

    return within


def known(hint: Any, names: dict[str, Any]) -> Any:
    """A hint in quotes as what it names, or as anything where nothing of that name is there (yet) at run time."""
    try:
        return eval(hint, names) if isinstance(hint, str) else hint
    except NameError:
        return Any


class Marking(ast.NodeTransformer):
    """Decorates the functions of modules and classes, and the classes, but nothing within a function."""

    def mark(self, node: Any) -> Any:
        name = ast.copy_location(ast.Name("__checked__", ast.Load()), node)
        is_class = isinstance(node, ast.ClassDef)
        node.decorator_list.insert(0 if is_class else len(node.decorator_list), name)
        return self.generic_visit(node) if is_class else node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = mark


class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        """Without the compiled file, which is that of the module as it stands."""
        path = self.get_filename(fullname)
        tree = Marking().visit(ast.parse(self.get_data(path), path))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__checked__"] = checked
        super().exec_module(module)


class Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name.split(".")[0] != "heedful":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """To be called before the first import of heedful."""
    sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]
