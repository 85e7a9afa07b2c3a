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

from heedful.decode.settings import SETTINGS, Decoding
from heedful.errors import InputError


def option_of(name: str, kind: type[Any] = Decoding, **more: Any) -> Any:
    """The option of a command for a field that is made by `setting`, with its bounds and help; of a search, unless it
    is that of another `kind`. `more`: what typer.Option takes besides."""
    about = kind.__dataclass_fields__[name].metadata
    return typer.Option(**{"min": about["least"], "max": about["most"], "help": about["help"]} | more)


class Offered:
    """Settings of a search as options of a command, whose parameter is `Annotated[DecodingOptions, Offered(...)]`.
    `names` are in the order of its help; `defaults` are the command's own, where None leaves out what is not given."""

    def __init__(self, *names: str, **defaults: float | int | None) -> None:
        self.defaults = {name: defaults.get(name, SETTINGS[name].default) for name in names}

    def parameters(self) -> dict[str, inspect.Parameter]:
        parameters = {}
        for name, default in self.defaults.items():
            kind: Any = SETTINGS[name].type
            kind = Annotated[kind | None if default is None else kind, option_of(name)]
            parameters[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        return parameters

    def __call__(self, **given: object) -> dict[str, object]:
        """What is given, for a search."""
        return {name: value for name, value in given.items() if value is not None}


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
TextEngine = Annotated[
    str,
    typer.Option(
        help="llama.cpp: write texts by that library, faster on a CPU; auto: where it is installed and gives the same."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 and so on; auto: CUDA where there is one.")]
Weights = Annotated[str, typer.Option(help="float32, int8 or int4, on a CPU: fewer bits are faster and less exact.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, such as train.lr=3e-4."),
]
Beam = Annotated[int | None, option_of("beam")]
LengthPenalty = Annotated[float | None, option_of("length_penalty")]
To = Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to, of several.")]
FromLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the texts, of several.")]
Seed = Annotated[int, option_of("seed")]


@dataclass(frozen=True, kw_only=True)
class StudentOptions:
    """Who learns from a teacher, of what, and how."""

    data: Annotated[
        list[str] | None,
        typer.Option(help="Data, as for heed train; may be given again.", show_default="the teacher's"),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="The size of the student; heed info lists them.", show_default="the task's usual one"),
    ] = None
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Begin with the weights of this run, such as the teacher, in place of a preset; of a translator, with "
            "--set model.decoder_layers=1 with those of so many of its layers.",
        ),
    ] = ""
    out: Annotated[Path, typer.Option(help="Where the student goes.")] = Path("runs/student")
    minutes: Annotated[float | None, typer.Option(min=0.01, help="How long to train the student.")] = None
    settings: Settings = None

    @property
    def path(self) -> str | list[str] | None:
        """The data as a recipe names them."""
        return self.data[0] if self.data and len(self.data) == 1 else self.data


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
    """Makes a command of a function: its keyword arguments are dataclasses, whose fields become options, or settings of
    a search (`Offered`)."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind != inspect.Parameter.KEYWORD_ONLY]
    groups = {one.name: _group(one.annotation) for one in signature.parameters.values() if one not in own}
    fields = {
        name: kind.parameters() if isinstance(kind, Offered) else parameters_of(kind) for name, kind in groups.items()
    }
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


def _group(annotation: Any) -> Any:
    """What makes an argument of its options: a dataclass, or `Offered`."""
    return next((mark for mark in typing.get_args(annotation)[1:] if isinstance(mark, Offered)), annotation)
