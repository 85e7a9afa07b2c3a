"""The reference: what each public package exports, from its signatures and docstrings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from docs.book.pages import Page, Text

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
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = "(...)"
    signature = re.sub(r"<(?:class |function |object )?'?([\w.]+)[^>]*>", r"\1", signature)
    yield f"```text\n{name}{signature}\n```\n"
    yield from _docstring(thing)


def _docstring(thing: Any) -> Iterator[str]:
    """Its paragraphs as text; what is indented in it as code."""
    for block in re.split(r"\n\s*\n", inspect.getdoc(thing) or ""):
        if block.startswith("    "):
            yield f"```python\n{inspect.cleandoc(block)}\n```\n"
        elif block.strip():
            yield re.sub(r"([\\*_{}\[\]<>#|$])", r"\\\1", block) + "\n"
