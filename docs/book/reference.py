"""The reference: what each public package exports, from its signatures and docstrings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from docs.book.pages import Page, Text, plain

WIDTH = 88  # of a signature in one line
PACKAGES = ("heedful", "heedful.core", "heedful.models", "heedful.decode", "heedful.look")


def reference_pages() -> list[Page]:
    return [Page(name.replace(".", "-"), name, [Text("\n".join(_package(name)))]) for name in PACKAGES]


def _package(name: str) -> Iterator[str]:
    package = importlib.import_module(name)
    yield from _docstring(package)
    for exported in sorted(package.__all__, key=str.lower):
        thing = getattr(package, exported)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            yield from _documented(exported, thing, 2)
            if inspect.isclass(thing):
                for method, own in _methods(thing):
                    yield from _documented(method, own, 3)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Its own public ones that say something."""
    for name, thing in vars(kind).items():
        own = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
        if not name.startswith("_") and inspect.isfunction(own) and own.__doc__:
            yield f"{kind.__name__}.{name}", own


def _documented(name: str, thing: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield f"```python\n{name}{_signature(thing)}\n```\n"
    yield from _docstring(thing)


def _signature(thing: Any) -> str:
    """With bare names of types, a line each where they are too many for one."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    if inspect.isclass(thing):
        found = found.replace(return_annotation=found.empty)
    whole, parts = str(found), [str(one) for one in found.parameters.values()]
    if len(whole) > WIDTH and parts:
        kinds = [one.kind for one in found.parameters.values()]
        if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
            parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
        end = whole.rpartition(")")[2] if "-> " in whole else ""
        whole = "(\n" + "".join(f"    {part},\n" for part in parts) + ")" + end
    whole = re.sub(r"<(?:class |function |object )?'?([\w.]+)[^>]*>", r"\1", whole)
    return re.sub(r"\b(?:jaxtyping|torch|collections\.abc|typing|pathlib|heedful(?:\.\w+)+)\.(?=\w)", "", whole)


def _docstring(thing: Any) -> Iterator[str]:
    """Its paragraphs as text; what is indented in it as code."""
    for block in re.split(r"\n\s*\n", inspect.getdoc(thing) or ""):
        if block.startswith("    "):
            yield f"```python\n{inspect.cleandoc(block)}\n```\n"
        elif block.strip():
            yield plain(block) + "\n"
