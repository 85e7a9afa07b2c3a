"""The options of `heed look` for models that write texts about pictures."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.tasks.shared.options import LayerOptions


@dataclass(frozen=True, kw_only=True)
class DescribeLook(LayerOptions):
    question: Annotated[str | None, typer.Option(help="What is asked about the picture.")] = None
