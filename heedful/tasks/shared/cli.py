"""What the commands share: words that several take, and how lines come in and answers go out. It imports no torch."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.errors import InputError, MissingError

if TYPE_CHECKING:
    from PIL.Image import Image

Run = Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)]
Texts = Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")]
Pictures = Annotated[list[str] | None, typer.Argument(help="Files of pictures; without any, lines of standard input.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON.")]
Engine = Annotated[
    str | None, typer.Option(help="ctranslate2: search by that library, the faster one on a CPU.", show_default="own")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 and so on; auto: CUDA where there is one.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, such as train.lr=3e-4.")
]
Beam = Annotated[int | None, typer.Option(min=1, max=64, help="1 is greedy.")]
LengthPenalty = Annotated[float | None, typer.Option(help="Exponent of the length that scores are divided by.")]
Temperature = Annotated[float, typer.Option(min=0.0, help="0 takes the most probable.")]
TopK = Annotated[int, typer.Option(min=0, help="Only the so many most probable may be drawn; 0: any.")]
TopP = Annotated[float, typer.Option(min=0.0, max=1.0, help="Only the most probable, until they sum up to this.")]
Seed = Annotated[int, typer.Option(min=0, help="Of what is drawn at random.")]


class Command(NamedTuple):
    """A command of the command line; without a `help`, the function's own. `group` is the heading that it is under."""

    name: str
    run: Callable[..., None]
    help: str | None = None
    group: str = "Use"


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What `heed eval` is told for most tasks."""

    data: Annotated[str | None, typer.Option(help="Data as for train: its test sets are scored.")] = None

    @property
    def path(self) -> str:
        """Raises InputError where nothing was given."""
        if self.data is None:
            raise InputError("nothing to score", fix="give --data PATH")
        return self.data


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """What `heed look` is told for models whose layers can be looked at."""

    layer: Annotated[str | None, typer.Option(help='Names, such as "decoder.*.cross_attention".')] = None
    head: Annotated[int | None, typer.Option(min=0, help="One head, large (png and svg), from 0.")] = None


@dataclass(frozen=True, kw_only=True)
class PairOptions(LayerOptions):
    """The same for models that read texts in twos."""

    pair: Annotated[
        str | None, typer.Option(help="The second of two texts; for a question, the text that answers it.")
    ] = None


def say(text: str) -> None:
    """What a person reads goes to standard error, so that standard output is the result alone."""
    print(text, file=sys.stderr, flush=True)


def tell(record: Mapping[str, Any], plain: str | Iterable[str], *, as_json: bool) -> None:
    """An answer on standard output: its record as a line of JSON, or lines for a person."""
    if as_json:
        print(json.dumps(record, ensure_ascii=False), flush=True)
        return
    for line in [plain] if isinstance(plain, str) else plain:
        print(line, flush=True)


def expand_escapes(text: str) -> str:
    r"""A shell hands \n and \t on as two characters each."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def texts_given(inputs: Sequence[str] | None) -> Iterator[list[str]]:
    """`given`, as texts that UTF-8 can hold."""
    from heedful.data.lines import sanitise

    for lines in given(inputs):
        yield [sanitise(line) for line in lines]


def texts_in_twos(inputs: Sequence[str] | None) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """The same, and what follows each on standard input, after a TAB."""
    for lines in texts_given(inputs):
        split = [line.partition("\t") if inputs is None else (line, "", "") for line in lines]
        yield [first for first, _, _ in split], tuple(second for _, _, second in split)


def given(inputs: Sequence[str] | None) -> Iterator[list[str]]:
    """The words of the command line as one group of lines; without any, those of standard input: one at a time at a
    terminal, many where they come from a file."""
    yield from [list(inputs)] if inputs else _input_lines()


def one_by_one(inputs: Sequence[str] | None) -> Iterator[list[str]]:
    """The same, each by itself, so that each answer comes at once."""
    for lines in given(inputs):
        yield from ([line] for line in lines)


def _input_lines() -> Iterator[list[str]]:
    size = 1 if sys.stdin.isatty() else 512
    group: list[str] = []
    reader = open(0, encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False)  # noqa: SIM115
    for line in reader:
        group.append(line.rstrip("\r\n"))
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


class OutputFiles:
    """Where the pictures go that are drawn: one file, or a folder with one for each."""

    def __init__(self, pictures: Sequence[str] | None, out: Path | None, *, folder: bool = False) -> None:
        self.out, self.taken = out, set[Path]()
        self.folder = out is not None and (folder or out.is_dir() or pictures is None or len(pictures) > 1)
        if out is None:
            return
        if self.folder and out.suffix:
            raise InputError("not a folder's name", where=str(out), fix="name a folder")
        if not self.folder and out.suffix != ".png":
            raise InputError(f"{out.suffix or 'no suffix'} is not .png", where=str(out), fix="--out found.png")
        if not self.folder and not out.parent.is_dir():
            raise MissingError("no such folder", where=str(out.parent), fix="make it first, or change --out")

    def __call__(self, file: str) -> Path:
        assert self.out is not None
        if not self.folder:
            return self.out
        place = self.out / f"{Path(file).stem}.png"
        if place in self.taken:
            raise InputError("two pictures of one name", where=file, fix="do them one by one")
        self.taken.add(place)
        return place


def write_png(place: Path, image: "Image") -> None:
    from heedful.look.sheet import png
    from heedful.store import files

    files.make_folder(place.parent)
    files.write_bytes(place, png(image))
    say(str(place))
