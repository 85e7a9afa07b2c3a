"""`heed chat`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.tasks.shared.cli import Command, DataOptions


@dataclass(frozen=True, kw_only=True)
class ChatScoring(DataOptions):
    """What `heed eval` is told for a chat model."""

    answers: Annotated[
        int, typer.Option(min=0, help="Of a chat model: how many answers are generated to be compared; 0: none.")
    ] = 100


COMMANDS: tuple[Command, ...] = ()
