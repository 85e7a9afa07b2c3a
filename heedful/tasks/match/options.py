"""Options of `heed look` for models of pictures and texts."""

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, kw_only=True)
class MatchLook:
    """The options of `heed look` for a model of pictures and texts."""

    shown: Annotated[
        list[str] | None, typer.Option("--text", help="Where in a picture is this near? May be given again.")
    ] = None
