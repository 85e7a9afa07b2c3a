"""What is asked of models that decide, and the options of commands for them."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from heedful.decode.settings import setting
from heedful.tasks.shared.options import DataOptions, LayerOptions, option_of


@dataclass(frozen=True, kw_only=True)
class ActOptions:
    """`asked` is the return of the whole episode that is asked for; `seed` that of an episode that is played."""

    asked: float | None = setting(None, "The return of the whole episode that is asked for.")
    seed: int = setting(0, "Seed of an episode that is played.", 0)


Asked = Annotated[float | None, option_of("asked", ActOptions, show_default="the best that was learnt")]


@dataclass(frozen=True, kw_only=True)
class DecideScoring(DataOptions):
    """The options of `heed eval`."""

    environment: Annotated[
        str, typer.Option(metavar="NAME", help="Where episodes are played.", show_default="that of the training")
    ] = ""
    episodes: Annotated[int, typer.Option(min=1, help="Episodes that are played for each return.")] = 100
    returns: Annotated[
        list[float],
        typer.Option("--asked", help="A return to ask for; may be given again.", show_default="five of those learnt"),
    ] = field(default_factory=list)
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw what was asked against what was reached (.png, .svg).")
    ] = None


@dataclass(frozen=True, kw_only=True)
class EpisodeLook(LayerOptions):
    """The options of `heed look`."""

    asked: Asked = None
