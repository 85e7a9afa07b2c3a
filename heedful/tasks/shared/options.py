"""Options of commands. Those that several commands have, as annotations for typer; and options in groups: dataclasses,
each field of which is an option. It imports no torch."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.errors import InputError

Run = Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)]
Texts = Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")]
Pictures = Annotated[list[str] | None, typer.Argument(help="Files of pictures; without any, lines of standard input.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="ctranslate2: search by that library, the faster one on a CPU; auto: where it can.", show_default="own"
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 and so on; auto: CUDA where there is one.")]
Weights = Annotated[str, typer.Option(help="float32, int8 or int4, on a CPU: fewer bits are faster and less exact.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, such as train.lr=3e-4.")
]
Beam = Annotated[int | None, typer.Option(min=1, max=64, help="Width of the beam; 1 is greedy search.")]
LengthPenalty = Annotated[float | None, typer.Option(help="Scores are divided by length to this power.")]
Temperature = Annotated[
    float, typer.Option(min=0.0, help="Divides the logits before sampling; 0 takes the most probable token.")
]
TopK = Annotated[int, typer.Option(min=0, help="Sample from this many most probable tokens; 0 is off.")]
TopP = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Sample from the most probable tokens whose probabilities sum to this (nucleus); 1 is off.",
    ),
]
To = Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to, of several.")]
FromLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the texts, of several.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The options of `heed eval` for most tasks."""

    data: Annotated[str | None, typer.Option(help="A file, or data as for train, whose test sets are scored.")] = None

    @property
    def path(self) -> str:
        """Raises InputError where no data were given."""
        if self.data is None:
            raise InputError("nothing to score", fix="give --data PATH")
        return self.data


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """The options of `heed look` for models with attention layers."""

    layer: Annotated[str | None, typer.Option(help='Names, such as "decoder.*.cross_attention".')] = None
    head: Annotated[int | None, typer.Option(min=0, help="One head, large (png and svg), from 0.")] = None


@dataclass(frozen=True, kw_only=True)
class PatchOptions(LayerOptions):
    """The same for models that read pictures in patches."""

    patch: Annotated[
        int | None,
        typer.Option(min=0, help="Show the attention of this patch (from 0, row by row) instead of the class token's."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TextPairOptions(LayerOptions):
    """The same for models that read texts in twos."""

    pair: Annotated[
        str | None, typer.Option(help="The second of two texts; for a question, the text that answers it.")
    ] = None


def parameters_of(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as keyword-only parameters."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found: dict[str, inspect.Parameter] = {}
    for field in dataclasses.fields(kind):
        usual = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found[field.name] = inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=hints[field.name]
        )
    return found


def by_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function: its keyword arguments are dataclasses, whose fields become options."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind != inspect.Parameter.KEYWORD_ONLY]
    groups = {one.name: one.annotation for one in signature.parameters.values() if one not in own}
    fields = {name: parameters_of(kind) for name, kind in groups.items()}
    taken = signature.replace(parameters=[*own, *(one for each in fields.values() for one in each.values())])

    def command(*given: object, **words: object) -> None:
        bound = taken.bind(*given, **words)
        bound.apply_defaults()
        made = {name: kind(**{field: bound.kwargs[field] for field in fields[name]}) for name, kind in groups.items()}
        function(*bound.args, **made)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = taken  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in taken.parameters.values()}
    return command
