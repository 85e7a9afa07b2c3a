"""What a task must offer: a row for `heedful.tasks.TASKS`, and the interfaces of the row's parts.

A row names its parts, and each is imported when it is first used: `heed --help` needs no torch, and a translator
nothing that only detectors need. The users of a row know these interfaces, and no task.
"""

import base64
import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from heedful.run.folder import Saved
    from heedful.run.job import Job
    from heedful.run.passes import BatchShape
    from heedful.run.prepared import WorkPart
    from heedful.run.recipe import Recipe

Part = TypeVar("Part", covariant=True)


@dataclass(frozen=True)
class Lazy(Generic[Part]):
    """A part of a row: `Lazy("heedful.tasks.tag.train:TagJob")()` imports the module and returns the object."""

    path: str

    def __call__(self) -> Part:
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)


@runtime_checkable
class Served(Protocol):
    """A finished model in use. `about` is the content of task.json."""

    @property
    def model(self) -> "nn.Module": ...
    @property
    def about(self) -> Mapping[str, Any]: ...


# Calls a function with each of some numbers, and yields once for each that is done.
Each = Callable[[Callable[[int], object], Iterable[int]], Iterable[object]]


class Preparation(Protocol):
    """What can be made of large data. `refused`: why it cannot, or ""; `told`: what it takes, in a line; `into` fills a
    folder, or does a part of that, and shows what is done and how much of it; it returns the parts that are missing."""

    @property
    def refused(self) -> str: ...
    def told(self, out: Path) -> str: ...
    def into(
        self, out: Path, shown: Callable[[str, float], object] = ..., *, part: "WorkPart | None" = ..., each: Each = ...
    ) -> list[int]: ...


@dataclass(frozen=True)
class Law:
    """Two ways of computing something that must give the same result."""

    name: str
    figure: float | None  # the largest difference (relative, unless it must be exactly 0); None: not measured
    limit: float
    notes: tuple[str, ...] = ()  # what is broken, or why nothing was measured, a line each
    otherwise: str = ""  # the consequence where it does not hold

    @property
    def holds(self) -> bool:
        return self.figure is None or self.figure <= self.limit


class Scored(NamedTuple):
    """The scores on one test set, and a line that reports them (None: one is made from the scores). `examples` have the
    form of `Job.trained_on`, to find those that the model was trained on."""

    name: str
    scores: dict[str, Any]
    told: str | None = None
    notes: tuple[str, ...] = ()
    examples: Iterable[str] = ()


class Ask(NamedTuple):
    """A question that a model can be asked. `answers(served, inputs, options)` gives a record for each answer: plain
    data that a terminal prints, a server sends and Python returns. `options` is a frozen dataclass whose fields all
    have defaults."""

    answers: Callable[[Any, Sequence[str], Any], Iterator[Mapping[str, Any]]]
    options: type[Any]
    # The list of records of each input, where there may be several or none.
    each: Callable[[Any, Sequence[str], Any], Iterator[Sequence[Mapping[str, Any]]]] | None = None
    # Whether requests with these options may be answered as one list of inputs: not where the options have an entry for
    # each input, or an answer depends on the position of its input.
    gathers: Callable[[Any], bool] = lambda options: True
    reads: str = "texts"  # what an input is: "texts", or "pictures" or "sounds", given by the names of their files
    makes: bool = False  # whether an input may be "": then a new picture is made
    local: bool = False  # options name files or folders of this machine: not offered over HTTP


@dataclass(frozen=True)
class NoOptions:
    """For a question without options."""


NOTHING = NoOptions()


SVG, PNG = b"<?xml", b"\x89PNG"  # the first bytes of such a picture; any other is an html page


class Looked(NamedTuple):
    """A picture of what a model looked at (the content of a file), a text for people, and facts for programs."""

    picture: bytes
    told: str
    facts: dict[str, Any]

    def __repr__(self) -> str:
        return f"Looked({self.told!r}, a picture of {len(self.picture):,} bytes)"

    def _repr_html_(self) -> str:
        """For a notebook: the picture, and the text."""
        told = f"<pre>{html.escape(self.told)}</pre>"
        if self.picture.startswith((SVG, PNG)):
            kind = "png" if self.picture.startswith(PNG) else "svg+xml"
            data = base64.b64encode(self.picture).decode()
            return f'<img alt="{html.escape(self.told)}" src="data:image/{kind};base64,{data}">{told}'
        what = 'sandbox="allow-scripts allow-downloads" width="100%" height="700"'
        return f'<iframe {what} srcdoc="{html.escape(self.picture.decode())}"></iframe>{told}'


class NamedWeights(NamedTuple):
    """Attention weights, and the names of their dimensions: "head", "query" and "key" of texts, "row" and "column" of
    pictures. `labels` are the tokens of a dimension, where it has some."""

    weights: "Tensor"
    dims: tuple[str, ...]
    labels: Mapping[str, Sequence[str]]


class Feed(NamedTuple):
    """One input of a model, for watching its forward pass: the input in readable tokens; the pass, which returns the
    logits (V) of the answer, or None; and the names of the V answers."""

    tokens: Sequence[str]
    run: "Callable[[], Tensor | None]"
    name_of: Callable[[int], str] = str


@dataclass(frozen=True)
class Inside:
    """How to look inside a task's models at one input; the options are a dataclass."""

    look: Lazy[Callable[[Any, str, str, Any], Looked]] | None = None
    options: Lazy[type[Any]] = Lazy("heedful.run.task:NoOptions")
    attention: Lazy[Callable[[Any, str, Any], Mapping[str, NamedWeights]]] | None = None  # what `look` draws
    feed: Lazy[Callable[[Any, str, str | None], Feed]] | None = None  # of a Served, an input, and its pair


class HubFiles(NamedTuple):
    """The files beside the weights in a folder of the Hub; the ids and names that its config.json repeats; further keys
    of config.json; and lines about what is not kept."""

    files: dict[str, Any]
    ids: dict[str, Any]
    said: Mapping[str, Any] = {}
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Hub:
    """Converts the files beside the weights from and to a folder of the Hub.

    `read` gets their folder, their config.json with its defaults, and our configuration, and returns a run's small
    files, task.json among them; `write` gets a run's folder and its model. `recast` returns an equal model, as a
    `heedful.exchange.hf.rules.Recast`, where the Hub has in the weights what a run has in other files. `told_by`:
    whether their folder is of this task, where another task has models of the same kind.
    """

    read: Callable[[Path, dict[str, Any], Any], dict[str, Any]]
    write: Callable[[Path, Any], HubFiles]
    recast: Callable[[Any], Any] | None = None
    told_by: Callable[[Path], bool] | None = None


class LibraryEngine(NamedTuple):
    """Another library that can run a task's models.

    `export(run, served, out, quantize=None)` makes that library's folder, and returns the largest difference of a
    log-probability, in nats; `laws(run, served, texts)` are the laws that the result must keep.
    """

    load: Callable[[Path], Any] | None  # a model that searches by the library
    export: Callable[..., float]
    laws: Callable[[Path, Any, Sequence[str]], Iterator[Law]]
    kind: str  # the library's class for such a model
    library: str = "CTranslate2"
    lost: Callable[[Any], Sequence[str]] = lambda served: ()  # lines about what its folder does not keep


@runtime_checkable
class Embedder(Protocol):
    """Turns texts or pictures into vectors."""

    def embed(self, inputs: str | Sequence[str]) -> Any: ...

    def vectors_of(self, inputs: Sequence[str]) -> tuple[Any, list[str]]:
        """The vectors of several inputs, and for each a warning if it was not read as a whole, or ""."""


class Lesson(NamedTuple):
    """A student's recipe, and what its teacher does before, on a device, told in lines."""

    recipe: "Recipe"
    prepare: Callable[[str], Iterable[str]] = lambda device: ()


class TrainOption(NamedTuple):
    """A task's own option of `heed train`: the key of the recipe that it sets, and its help. `several`: it may be given
    more than once."""

    key: str
    help: str
    metavar: str | None = None
    several: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One row: a task of `heed train`, or a kind of model that is only imported (without a `job`)."""

    name: str  # after `heed train`, and in task.json
    data: str  # what it is trained on, in a few words
    does: str = ""  # what its models do: "this run ..."
    example: str = ""  # an example input, for runs that have none of their own
    served: "Lazy[type[Any]]"  # has `load(run, device=...)`, which returns a Served
    facts: "Lazy[Callable[[Saved], dict[str, Any]]]"  # what `heed info` prints about a run
    laws: Lazy[Callable[[Any, Sequence[str]], Iterable[Law]]]  # checks a Served on some texts
    # Training.
    job: "Lazy[type[Job[Any, Any, Any]]] | None" = None
    recipe: "Lazy[type[Recipe]] | None" = None
    # The shape of its batches before there are data: of a recipe, a configuration, and the mean tokens of a text.
    batch: "Lazy[Callable[..., BatchShape]] | None" = None
    train_options: Mapping[str, TrainOption] = field(default_factory=dict)  # by their names
    counted: str = "tokens"  # what its loss is a mean over
    # Fits a model to a budget of minutes: gets the recipe, the folder, the device, and the data if they are in memory.
    sized: "Lazy[Callable[[Recipe, Path, torch.device, Any], tuple[Recipe, str]]] | None" = None
    # Settings for a training that starts from a trained model, by its recipe, and the reason.
    tuned: "Lazy[Callable[[Any], tuple[dict[str, Any], str]]] | None" = None
    # Settings for a training of a new model whose size is not given, by its recipe and the data if they are in memory.
    suited: "Lazy[Callable[[Any, Any], tuple[dict[str, Any], str]]] | None" = None
    # How its models teach, where that is not beside the data: gets the teacher's folder, the student's options and the
    # task's own, which are a dataclass.
    lesson: Lazy[Callable[[Path, Any, Any], Lesson]] | None = None
    lesson_options: Lazy[type[Any]] = Lazy("heedful.run.task:NoOptions")
    # What can be made of a recipe's data where they are too many for the memory.
    prepares: Lazy[Callable[[Any], Preparation]] | None = None
    headline: tuple[str, ...] = ()  # the scores that `heed info` prints
    # Use. A module's COMMANDS are functions with the annotations of the command line.
    asks: Mapping[str, Lazy[Ask]] = field(default_factory=dict)  # by their verbs
    streams: str = ""  # the verb whose answers can be streamed
    converses: str = ""  # the verb whose answers are turns of a conversation; they can be streamed too
    commands: Lazy[Sequence[Any]] | None = None
    evaluate: Lazy[Callable[[Any, Any], Iterator[Scored]]] | None = None
    eval_options: Lazy[type[Any]] | None = None  # a dataclass of the options that `evaluate` reads; None: `data` alone
    inside: Inside = Inside()
    # From task.json: the languages that it translates from and to.
    languages: Lazy[Callable[[Mapping[str, Any]], tuple[str, str] | None]] | None = None
    # From task.json: all directions of a model that has several; empty where it has one.
    directions: Lazy[Callable[[Mapping[str, Any]], list[tuple[str, str]]]] | None = None
    # Gets a run's folder and two languages; returns the files that name its languages, with these. None: no file does.
    renamed: "Lazy[Callable[[Path, str, str], dict[str, bytes]]] | None" = None
    # Has `load(run, device=...)`, which returns an Embedder, and `of(served)`, unless the Served is an Embedder itself.
    embedder: Lazy[type[Any]] | None = None
    # Other libraries.
    hub: Lazy[Hub] | None = None
    hub_kind: str = ""  # the kind in config.json of the models that `hub` converts; of several, with spaces between
    hub_head: str = ""  # their head, where models of this kind may have different ones
    hub_lacks: str = ""  # why there is no `hub`
    engines: Mapping[str, Lazy[LibraryEngine]] = field(default_factory=dict)
    # Gets a loaded model, its run, and the words `engine` and `weights`: the model, whose texts that engine writes.
    with_engine: Lazy[Callable[..., Any]] | None = None
    # Files of a run that are fitted to its weights, and the command that makes each again for {run}.
    fitted: Mapping[str, str] = field(default_factory=dict)
    # The task that task.json names, where it is not `name`; and a key that tells this task from that one.
    saved_as: str = ""
    marked: str = ""
    uses: tuple[str, ...] = ()  # other tasks that its modules may import
