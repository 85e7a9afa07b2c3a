"""Options of `heed eval` for language models."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.tasks.shared.options import DataOptions


@dataclass(frozen=True, kw_only=True)
class TextScoring(DataOptions):
    """The options of `heed eval` for a language model."""

    shots: Annotated[int, typer.Option(min=0, help="Solved examples in each prompt.")] = 0
    shots_from: Annotated[str | None, typer.Option(help="A .jsonl file that they are taken from.")] = None
    delimiter: Annotated[str, typer.Option(help="Between an input and its answer.")] = " "
    separator: Annotated[str, typer.Option(help="After each answer; \\n is the end of a line.")] = "\\n"
    by: Annotated[str, typer.Option(help="likelihood (of the choices), or match (what is generated).")] = "likelihood"
    seed: Annotated[int, typer.Option(min=0, help="Draws the solved examples.")] = 0
