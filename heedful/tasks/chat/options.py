"""What chat models are asked, and the options of `heed eval` for them."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.decode.settings import SamplingOptions, setting
from heedful.tasks.shared.options import DataOptions


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """`system` is the system's message for conversations that have none."""

    tokens: int = setting(200, "The most new tokens of an answer.", 1)
    system: str = setting("", "What the system says first, in conversations without its message.")
    stop: tuple[str, ...] = setting((), "A text that ends an answer, before it; may be given again.")
    sampling: SamplingOptions = setting(SamplingOptions, "How tokens are drawn.")


@dataclass(frozen=True, kw_only=True)
class ChatScoring(DataOptions):
    """The options of `heed eval` for a chat model."""

    answers: Annotated[
        int, typer.Option(min=0, help="Of a chat model: how many answers are generated to be compared; 0: none.")
    ] = 100
