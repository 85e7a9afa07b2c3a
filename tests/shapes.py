"""Checks every function of heedful against its annotations while the tests run: types, and shapes of tensors.

jaxtyping has an import hook too. But it also wraps functions whose annotations have no shapes, and wraps functions that
are defined within others anew at each call: the tests then take six times as long.
"""

import ast
import dataclasses
import functools
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy
from beartype import beartype
from beartype.door import die_if_unbearable
from jaxtyping import jaxtyped
from torch import Tensor

ONE_CALL = jaxtyped("context")
Seen = Any  # a hashable summary of what annotations can check
MOST = 16  # values of a list; a longer one is summarised by its length and its ends
EACH_TIME = inspect.CO_GENERATOR | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def checked(made: Any) -> Any:
    """The function, or the class with its __init__, with a check of its annotations."""
    if isinstance(made, type):
        if dataclasses.is_dataclass(made) and "__init__" in vars(made):
            made.__init__ = checked(made.__init__)  # type: ignore[misc]
        return made
    said = made.__annotations__
    hints = {name: known(hint, made.__globals__) for name, hint in said.items()}
    made.__annotations__ = hints
    held = beartype(made)
    made.__annotations__ = held.__annotations__ = said
    if "jaxtyping" not in repr(said):
        return held
    return each_time(made, held) if made.__code__.co_flags & EACH_TIME else once(made, held, hints)


def each_time(made: Any, held: Any) -> Any:
    @functools.wraps(made)
    def within(*args: Any, **named: Any) -> Any:
        with ONE_CALL:  # within which a letter is one size
            return held(*args, **named)

    return within


def once(made: Any, held: Any, hints: dict[str, Any]) -> Any:
    """A function that is checked whenever its arguments or its result have a new summary: the check has the same result
    for tensors of the same shapes and types."""
    returned: dict[Seen, set[Seen]] = {}

    @functools.wraps(made)
    def within(*args: Any, **named: Any) -> Any:
        given: Seen = tuple([SEEN[type(value)](value) for value in args])
        if named:
            given = (given, *named, *[SEEN[type(value)](value) for value in named.values()])
        before = returned.get(given)
        if before is None:
            with ONE_CALL:
                result = held(*args, **named)
            returned[given] = {seen(result)}
            return result
        result = made(*args, **named)
        if (now := SEEN[type(result)](result)) not in before:
            with ONE_CALL:
                for name, value in (inspect.getcallargs(made, *args, **named) | {"return": result}).items():
                    die_if_unbearable(value, hints.get(name, Any))
            before.add(now)
        return result

    return within


def seen(value: Any) -> Seen:
    """A summary: the shape and dtype of a tensor, the items of a container, a string or bool itself, and otherwise the
    type."""
    return SEEN[type(value)](value)


def held_by(value: Any) -> Seen:
    kind = type(value)
    held = [*value.items()] if kind is dict else value
    if len(held) > MOST:
        return kind, len(held), seen(held[0]), seen(held[-1])
    return kind, *map(seen, held)


class SeenBy(dict[type, Callable[[Any], Seen]]):
    """The function that summarises a value, by type: written in C except for containers, because every call in a test
    uses it."""

    def __missing__(self, kind: type) -> Callable[[Any], Seen]:
        has_shape = issubclass(kind, Tensor | numpy.ndarray)
        self[kind] = attrgetter("__class__", "dtype", "shape") if has_shape else type
        return self[kind]


SEEN = SeenBy({tuple: held_by, list: held_by, dict: held_by, str: str, bool: bool})


def known(hint: Any, names: dict[str, Any]) -> Any:
    """A quoted hint as the object that it names, or Any where that does not exist (yet) at run time."""
    try:
        return eval(hint, names) if isinstance(hint, str) else hint
    except NameError:
        return Any


class Marking(ast.NodeTransformer):
    """Decorates classes and the functions of modules and classes, but nothing within a function."""

    def mark(self, node: Any) -> Any:
        name = ast.copy_location(ast.Name("__checked__", ast.Load()), node)
        is_class = isinstance(node, ast.ClassDef)
        node.decorator_list.insert(0 if is_class else len(node.decorator_list), name)
        return self.generic_visit(node) if is_class else node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = mark


class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return compile(Marking().visit(ast.parse(data, path)), path, "exec", dont_inherit=True)

    def path_stats(self, path: str) -> Any:
        """The time of the file plus that of this one: compiled code depends on both."""
        stats = super().path_stats(path)
        return {**stats, "mtime": stats["mtime"] + super().path_stats(__file__)["mtime"]}

    def get_data(self, path: str) -> bytes:
        return super().get_data(beside(path))

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        super().set_data(beside(path), data, _mode=_mode)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__checked__"] = checked
        super().exec_module(module)


def beside(path: str) -> str:
    """A name of its own for a compiled file, apart from that of the unchanged module."""
    return path.replace(".pyc", ".shapes.pyc")


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
    """Must be called before the first import of heedful."""
    sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]
