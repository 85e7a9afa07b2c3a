"""The verbs of the command line as methods of every finished model."""

import base64
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

from torch import nn

from heedful.core.arguments import checks_arguments
from heedful.decode.contract import Budget
from heedful.errors import InputError
from heedful.run.task import Law, Looked, NamedWeights
from heedful.tasks.shared.one_or_many import is_one, listed

Model = TypeVar("Model", bound="Opened")
Settings = Mapping[str, object]  # options of a verb, by the names that they have after "--"


@runtime_checkable
class RunVerbs(Protocol):
    """The functions of `heedful.verbs` that `heedful.load` gives to a model."""

    def look(self, served: Any, given: str, kind: str, settings: Settings) -> Looked: ...
    def attention(self, served: Any, given: str, settings: Settings) -> Mapping[str, NamedWeights]: ...
    def ask(self, served: Any, verb: str, inputs: Sequence[str], settings: Settings) -> list[list[Any]]: ...
    def evaluate(self, served: Any, data: object, settings: Settings) -> dict[str, dict[str, Any]]: ...
    def check(self, run: Path, texts: Sequence[str]) -> Iterator[Law]: ...
    def facts(self, run: Path) -> dict[str, Any]: ...
    def scores(self, run: Path) -> dict[str, float]: ...
    def curve(self, run: Path) -> bytes | None: ...
    def trainable(self, run: Path) -> nn.Module: ...
    def save(self, run: Path, model: nn.Module, out: Path) -> None: ...


class OpenedChanges(TypedDict, total=False):
    """What another model may have in place of a model's own: see `Opened.changed`."""

    model: Any
    run: Path | None
    budget: Budget | None
    verbs: RunVerbs | None


def changed(model: Model, values: Mapping[str, object]) -> Model:
    """A copy of the model with these attributes."""
    other = copy(model)
    vars(other).update(values)
    return other


class Opened:
    """A finished model. It is not changed after it was made: `heedful.load` gives one with its run and its verbs."""

    purpose: ClassVar[str]  # in words
    model: nn.Module
    run: Path | None = None
    budget: Budget | None = None  # of each request, in a server
    verbs: RunVerbs | None = None

    def changed(self: Model, **values: Unpack[OpenedChanges]) -> Model:
        """Another model with these attributes, which shares the others, such as weights; this one stays as it is."""
        return changed(self, values)

    @property
    def at_once(self) -> int | None:
        """Tokens, times beams, that may be kept at the same time; None: any number."""
        return None if self.budget is None else self.budget.at_once

    def spend(self, tokens: int, at_once: int) -> None:
        """Asks the budget before anything is computed. Raises TooMuchError."""
        if self.budget is not None:
            self.budget.spend(tokens, at_once)

    @checks_arguments
    def ask(self, verb: str, given: str | Path | Sequence[str | Path], settings: Settings | None = None) -> list[Any]:
        """The records that a server sends and `heed VERB RUN --json` prints: those of a text or of a picture's file;
        for a list of inputs, a list for each. `settings` are the "options" of such a request. Raises InputError, which
        names the known verbs or settings."""
        inputs: Sequence[str | Path] = listed(given)
        found = self._verbs().ask(self, verb, [*map(_text_or_file, inputs)], settings or {})
        return found[0] if is_one(given) else found

    @checks_arguments
    def look(self, given: str | Path, settings: Settings | None = None, *, kind: str = "svg") -> Looked:
        """What the model looks at in a text, or in a picture's file: as a picture ("svg", "png", or an "html" page), in
        words, and as facts. `settings` are the options of `heed look`, such as {"layer": "*.0.*", "head": 1}. Raises
        InputError."""
        return self._verbs().look(self, _text_or_file(given), kind, settings or {})

    @checks_arguments
    def attention(self, given: str | Path, settings: Settings | None = None) -> Mapping[str, NamedWeights]:
        """The attention weights that `look` draws, by layer. Raises InputError."""
        return self._verbs().attention(self, _text_or_file(given), settings or {})

    @checks_arguments
    def evaluate(
        self,
        data: str | Path | Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        settings: Settings | None = None,
    ) -> dict[str, dict[str, Any]]:
        """The scores on each test set of `data`, as `heed eval` gives them, by name; `settings` are its options. `data`
        is a path, or rows in memory as `heedful.train` takes them, which are all scored. Raises InputError or
        MissingError."""
        return self._verbs().evaluate(self, data, settings or {})

    @checks_arguments
    def check(self, texts: str | Sequence[str] = ()) -> list[Law]:
        """The laws that `heed check` checks, each with its figure; without texts, on random tokens."""
        return list(self._verbs().check(self._run(), listed(texts)))

    def trainable(self) -> nn.Module:
        """A copy of the model for a training loop of your own: a plain torch module, on the CPU and in training mode.
        (`model` can only be read, and refuses to train.) Raises InputError, MissingError or StorageError."""
        return self._verbs().trainable(self._run())

    @checks_arguments
    def save(self, model: nn.Module, out: str | Path) -> None:
        """Saves a model from `trainable` as the run `out`, after you have trained it. The other files are copied from
        this run, which does not change; scores and confidence are not copied, as they belong to the old weights. Raises
        InputError for a model of another shape and where `out` is not empty, NonFiniteError for weights that are not
        finite, and StorageError."""
        self._verbs().save(self._run(), model, Path(out))

    def __repr__(self) -> str:
        if self.run is None or self.verbs is None:
            return f"{type(self).__name__}({type(self.model).__name__})"
        size = sum(parameter.numel() for parameter in self.model.parameters())
        scores = [f"{name} {value:.3g}" for name, value in self.verbs.scores(self.run).items()]
        parts = [str(self.run), self.purpose, f"{type(self.model).__name__} of {size:,} parameters", *scores]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """For a notebook: the facts of `heed info`, and the training's curves."""
        if self.run is None or self.verbs is None:
            return f"<p>{html.escape(repr(self))}</p>"
        facts = {"run": self.run, "what it does": self.purpose, **self.verbs.facts(self.run)}
        rows = "".join(
            f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_in_words(value))}</td></tr>"
            for name, value in facts.items()
        )
        curve = self.verbs.curve(self.run)
        data = base64.b64encode(curve or b"").decode()
        drawn = f'<img alt="loss and scores" src="data:image/png;base64,{data}">' if data else ""
        return f"<h4>{html.escape(type(self).__name__)}</h4><table>{rows}</table>{drawn}"

    def _verbs(self) -> RunVerbs:
        if self.verbs is None:
            raise InputError("this model belongs to no run that was opened", fix="open it by heedful.load(RUN)")
        return self.verbs

    def _run(self) -> Path:
        if self.run is None:
            raise InputError("this model belongs to no run that was opened", fix="open it by heedful.load(RUN)")
        return self.run


def _text_or_file(given: object) -> str:
    """Raises InputError for anything but a text or a path, such as an array of texts or a message of a conversation."""
    if not isinstance(given, str | Path):
        fix = "give a string, or a list of strings; the messages of a conversation are one: json.dumps(messages)"
        raise InputError(f"{str(given)[:60]!r} is a {type(given).__name__}, expected a text or a path", fix=fix)
    return str(given)


def _in_words(value: object) -> str:
    return f"{value:,}" if type(value) is int else f"{value:.4g}" if isinstance(value, float) else str(value)
