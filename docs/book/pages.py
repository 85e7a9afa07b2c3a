"""A page of text and code, as Markdown for the site and as a notebook."""

import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """Markdown."""

    markdown: str


@dataclass(frozen=True)
class Code:
    """Python that was run, and what it printed."""

    source: str
    printed: str = ""


@dataclass(frozen=True)
class Page:
    """`pictures` are files beside the page, by name; the first two are its light and its dark one."""

    name: str
    title: str
    cells: Sequence[Text | Code]
    pictures: Mapping[str, bytes] = field(default_factory=dict)


def run(source: str, names: dict[str, Any], where: str) -> Code:
    """Runs a block of a page, in the page's own names. Raises SystemExit where it fails, saying which."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, where, "exec"), names)  # the pages' own code, written in this folder
    except Exception as error:
        raise SystemExit(f"{where}: {type(error).__name__}: {error}\n{source}") from error
    return Code(source, printed.getvalue())


def plain(text: str) -> str:
    """Text whose signs mean nothing to Markdown, but for backticks around code."""
    return re.sub(r"(`[^`]*`)|([\\*_{}\[\]<>#|$`])", lambda at: at[1] or f"\\{at[2]}", text)


def as_markdown(page: Page) -> str:
    """For MyST: behind the first text its picture, the light and the dark one."""
    parts = [f"# {page.title}\n"]
    for number, cell in enumerate(page.cells):
        if isinstance(cell, Text):
            parts.append(f"{cell.markdown}\n")
        else:
            parts.append(f"```python\n{cell.source.rstrip()}\n```\n")
            if cell.printed:
                parts.append(f"```text\n{cell.printed.rstrip()}\n```\n")
        if number == 0:
            for file, light in zip(page.pictures, ("only-light", "only-dark"), strict=False):
                parts.append(f"```{{image}} {file}\n:class: {light}\n:alt: {page.title}\n```\n")
    return "\n".join(parts)


def as_notebook(page: Page) -> str:
    """Format 4.5 of Jupyter, with what was printed: tables and pictures come when it is run."""
    cells: list[dict[str, Any]] = [_cell("markdown", f"# {page.title}", 0)]
    for cell in page.cells:
        if isinstance(cell, Text):
            cells.append(_cell("markdown", cell.markdown, len(cells)))
            continue
        printed = {"name": "stdout", "output_type": "stream", "text": _lines(cell.printed)}
        run_once = {"outputs": [printed] if cell.printed else [], "execution_count": None}
        cells.append(_cell("code", cell.source, len(cells)) | run_once)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
