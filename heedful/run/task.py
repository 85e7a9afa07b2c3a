"""What a task must offer: a row for `heedful.tasks.TASKS`, and what the parts of the row promise.

A row names its parts, and each is imported when it is asked for: `heed --help` needs no torch, and a translator needs
nothing of what only detectors do. Whoever uses a row knows these promises and no task.
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

    from heedful.data.tokenizer import Tokenizer
    from heedful.run.job import Job
    from heedful.run.recipe import Recipe

Part = TypeVar("Part", covariant=True)


@dataclass(frozen=True)
class Lazy(Generic[Part]):
    """A part of a row: `Lazy("heedful.tasks.tag.train:TagJob")()` imports the module and hands over what it names."""

    path: str

    def __call__(self) -> Part:
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)


@runtime_checkable
class Served(Protocol):
    """A finished model in use. `about` is what task.json says of it."""

    @property
    def model(self) -> "nn.Module": ...
    @property
    def about(self) -> Mapping[str, Any]: ...


class Saved(NamedTuple):
    """What a run's folder says of its model, which is not made. `tokenizers` are the source's and the target's."""

    config: Any
    about: Mapping[str, Any]
    tokenizers: "tuple[Tokenizer, Tokenizer] | None"
    parameters: int


@dataclass(frozen=True)
class Law:
    """Something that must come to the same, asked in two ways."""

    name: str
    figure: float | None  # the largest difference, relative for what is not exact; None: not measured
    limit: float
    notes: tuple[str, ...] = ()  # what is broken, or why nothing was measured, a line each
    otherwise: str = ""  # what would be wrong, did it not hold

    @property
    def holds(self) -> bool:
        return self.figure is None or self.figure <= self.limit


class Scored(NamedTuple):
    """What a model is worth on one test set, and a line that tells it (None: the scores tell it themselves).
    `examples` are told as `Job.trained_on` tells them, so that it is known which of them were learnt from."""

    name: str
    scores: dict[str, Any]
    told: str | None = None
    notes: tuple[str, ...] = ()
    examples: Iterable[str] = ()


def may_be_gathered(options: Any) -> bool:
    return True


class Ask(NamedTuple):
    """A question that a model can be asked. `answers(served, inputs, options)` gives a record for each answer: plain
    data that a terminal prints, a server sends and Python returns. `options` is a frozen dataclass of what can be
    chosen, all of which has defaults."""

    answers: Callable[[Any, Sequence[str], Any], Iterator[Mapping[str, Any]]]
    options: type[Any]
    # The records of each input, where it may have another number of them than one.
    each: Callable[[Any, Sequence[str], Any], Iterator[Sequence[Mapping[str, Any]]]] | None = None
    # Whether inputs of several who ask with these options may be asked as one list: not where options are listed by
    # input, or an answer depends on the number of its input.
    gathers: Callable[[Any], bool] = may_be_gathered
    reads: str = "texts"  # what an input is: "texts", or "pictures", the names of their files
    makes: bool = False  # whether an input may be "", no picture: a new one is made
    local: bool = False  # options name files or folders of the machine: nothing that others may ask


@dataclass(frozen=True)
class NoOptions:
    """Of a question of which nothing can be chosen."""


NOTHING = NoOptions()


SVG, PNG = b"<?xml", b"\x89PNG"  # how such a picture begins; any other is a page


class Looked(NamedTuple):
    """A picture of what a model looked at, as the content of a file, what a person reads, and what a machine does."""

    picture: bytes
    told: str
    facts: dict[str, Any]

    def __repr__(self) -> str:
        return f"Looked({self.told!r}, a picture of {len(self.picture):,} bytes)"

    def _repr_html_(self) -> str:
        """For a notebook: the picture, and what is told of it."""
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
    """How a model reads one input, for who watches its forward pass: what goes in, as people read it; the pass, which
    gives the logits (V) of what is said in the end, or None; and the names of those V answers."""

    tokens: Sequence[str]
    run: "Callable[[], Tensor | None]"
    name_of: Callable[[int], str] = str


@dataclass(frozen=True)
class Inside:
    """How models are looked into: at one input, with options that are a dataclass."""

    look: Lazy[Callable[[Any, str, str, Any], Looked]] | None = None
    options: Lazy[type[Any]] = Lazy("heedful.run.task:NoOptions")
    attention: Lazy[Callable[[Any, str, Any], Mapping[str, NamedWeights]]] | None = None  # what `look` draws
    feed: Lazy[Callable[[Any, str, str | None], Feed]] | None = None  # of a Served, an input, and its pair


class HubFiles(NamedTuple):
    """What stands beside the weights in a folder of the Hub, the ids and names that its config.json repeats, what it
    says beside what makes the model, and lines about what is not kept."""

    files: dict[str, Any]
    ids: dict[str, Any]
    said: Mapping[str, Any] = {}
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Hub:
    """How what stands beside the weights moves from and to a folder of the Hub.

    `read` gets their folder, their config.json completed by what it leaves out, and our configuration, and gives a
    run's small files, task.json among them; `write` gets a run's folder and its model. `recast`: an equal model, as a
    `heedful.exchange.hf.rules.Recast`, where what stands beside the weights here is part of them there. `told_by`:
    whether their folder is of this task, where another has models of the same kind.
    """

    read: Callable[[Path, dict[str, Any], Any], dict[str, Any]]
    write: Callable[[Path, Any], HubFiles]
    recast: Callable[[Any], Any] | None = None
    told_by: Callable[[Path], bool] | None = None


class LibraryEngine(NamedTuple):
    """Another library that serves a run's models: makes a folder of its own of a run, and models that search by it.

    `export(run, served, out, quantize=None)` gives the largest difference of a log-probability, in nats; `laws(run,
    served, texts)` are what must hold of it.
    """

    load: Callable[[Path], Any] | None
    export: Callable[..., float]
    laws: Callable[[Path, Any, Sequence[str]], Iterator[Law]]
    kind: str  # what the library calls such a model
    library: str = "CTranslate2"
    lost: Callable[[Any], Sequence[str]] = lambda served: ()  # lines about what its folder does not keep of a model


@runtime_checkable
class Embedder(Protocol):
    """Texts, or pictures, as vectors."""

    def embed(self, inputs: str | Sequence[str]) -> Any: ...

    def vectors_of(self, inputs: Sequence[str]) -> tuple[Any, list[str]]:
        """The vectors of several, and a warning for each that was not read as a whole, or ""."""


class TrainOption(NamedTuple):
    """An option of `heed train` that a task has of its own: the key of the recipe that it sets, and what that is.
    `metavar` is what stands for its value; an option of `several` may be given again."""

    key: str
    help: str
    metavar: str | None = None
    several: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One row: a task of `heed train`, or a kind of model that is only imported (without a `job`)."""

    name: str  # after `heed train`, and in task.json
    data: str  # what it learns from, in a few words
    does: str = ""  # what its models do: "this run ..."
    example: str = ""  # a text that they may be asked, where the run knows none of its own
    served: "Lazy[type[Any]]"  # has `load(run, device=...)`, and gives a Served
    facts: Lazy[Callable[[Saved], dict[str, Any]]]  # what `heed info` tells of a run
    laws: Lazy[Callable[[Any, Sequence[str]], Iterable[Law]]]  # of a Served, and texts to check it on
    # Training.
    job: "Lazy[type[Job[Any, Any, Any]]] | None" = None
    recipe: "Lazy[type[Recipe]] | None" = None
    train_options: Mapping[str, TrainOption] = field(default_factory=dict)  # by their names
    counted: str = "tokens"  # what its loss is a mean over
    # Fits a model to a budget of minutes, by its recipe, its folder, a device, and the data where they are in memory.
    sized: "Lazy[Callable[[Recipe, Path, torch.device, Any], tuple[Recipe, str]]] | None" = None
    # What a training is told that begins with a model that has learnt already, by its recipe, and why.
    tuned: "Lazy[Callable[[Any], tuple[dict[str, Any], str]]] | None" = None
    # And one that begins with nothing, of which no size is chosen; by its data too, where they are in memory.
    suited: "Lazy[Callable[[Any, Any], tuple[dict[str, Any], str]]] | None" = None
    headline: tuple[str, ...] = ()  # the scores that `heed info` tells
    # Use. A module's COMMANDS are functions with the annotations of the command line.
    asks: Mapping[str, Lazy[Ask]] = field(default_factory=dict)  # by their verbs
    streams: str = ""  # the verb whose answers a language model gives piece by piece
    converses: str = ""  # the verb whose answers are its turns in a conversation, piece by piece too
    commands: Lazy[Sequence[Any]] | None = None
    evaluate: Lazy[Callable[[Any, Any], Iterator[Scored]]] | None = None
    eval_options: Lazy[type[Any]] | None = None  # a dataclass of the options that `evaluate` reads; None: `data` alone
    inside: Inside = Inside()
    # By task.json: what it translates from and to.
    languages: Lazy[Callable[[Mapping[str, Any]], tuple[str, str] | None]] | None = None
    # Likewise all of its directions, where it has several; none where it has one.
    directions: Lazy[Callable[[Mapping[str, Any]], list[tuple[str, str]]]] | None = None
    # Has `load(run, device=...)` and, unless what is served is one, `of(served)`, and gives an Embedder.
    embedder: Lazy[type[Any]] | None = None
    # Other libraries.
    hub: Lazy[Hub] | None = None
    hub_kind: str = ""  # what config.json calls the models that `hub` moves
    hub_head: str = ""  # which of their heads, where models of this kind have one of several
    hub_lacks: str = ""  # why there is no `hub`
    engines: Mapping[str, Lazy[LibraryEngine]] = field(default_factory=dict)
    # Files of a run that are fitted to its weights, and the command that makes each again, of {run}.
    fitted: Mapping[str, str] = field(default_factory=dict)
    # task.json of such a run says this task, where it is not `name`; and holds this key, where others say so too.
    saved_as: str = ""
    marked: str = ""
    uses: tuple[str, ...] = ()  # other tasks that its modules know of
