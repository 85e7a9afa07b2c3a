"""Options of `heed eval` for chat models."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.tasks.shared.options import DataOptions


@dataclass(frozen=True, kw_only=True)
class ChatScoring(DataOptions):
    """The options of `heed eval` for a chat model."""

    answers: Annotated[
        int, typer.Option(min=0, help="Of a chat model: how many answers are generated to be compared; 0: none.")
    ] = 100
