"""Shared by the finished models of several tasks: loading them from a run's folder, and facts about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from heedful.apply.inference import for_inference
from heedful.core.arguments import checks_arguments
from heedful.core.config import from_json, unknown_key
from heedful.data.frame import Frame, Framed
from heedful.data.images.files import ImageFile, ImageFiles, Preparation
from heedful.data.tokenizer import Tokenizer
from heedful.errors import HeedError, InputError, NonFiniteError, OtherTaskError
from heedful.models.encoder import Encoder
from heedful.models.lm import LM
from heedful.run.device import Device, chosen_device, known_device
from heedful.run.folder import Saved, read_run, read_textless_run, task_name
from heedful.run.task import Served, Task
from heedful.tasks.shared.opened import Opened
from heedful.tasks.shared.pieces import readable_pieces

Spec = TypeVar("Spec")
M = TypeVar("M", bound=nn.Module)
T = TypeVar("T", bound="TextModel[Any]")
P = TypeVar("P", bound="TextlessModel[Any]")
S = TypeVar("S", bound=Served)


@dataclass(frozen=True)
class Reads:
    """How a model reads texts, for looking inside: its body, the tokens around a text, how a text is encoded, and
    whether the body reads one text at a time, two, or either."""

    body: LM | Encoder
    frame: Frame
    encode: Callable[[Sequence[str]], list[list[int]]]
    texts: Literal["one", "two", "either"] = "one"
    sums_up: Literal["first", "last"] = "first"  # the token whose hidden state stands for the whole text
    says: bool = False  # whether the body was trained to predict the next token
    names: Mapping[int, str] = field(default_factory=dict)  # of tokens that the tokenizer does not have

    def pieces(self, tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
        """`readable_pieces`, with the names of tokens that the tokenizer does not have."""
        shown = readable_pieces(tokenizer, tokens)
        return [self.names.get(token, piece) for token, piece in zip(tokens, shown, strict=True)]

    def framed(self, text: str, pair: str | None, purpose: str) -> Framed:
        """One text or two, as the body reads them. `purpose`: a verb for the error message. Raises InputError for an
        empty text, for more tokens than it can read, for a pair where it reads one text, and for no pair where it reads
        two."""
        first, *second = self.encode([text] if pair is None else [text, pair])
        if not first or second == [[]]:
            raise InputError(f"there is no text to {purpose}", fix="give one")
        if pair is not None and self.texts == "one":
            raise InputError("this model reads one text", fix="leave out --pair")
        if pair is None and self.texts == "two":
            raise InputError("a question without a text to answer it from", fix='give --pair "the text"')
        framed, most = self.frame.put(first, *second), self.body.config.embed.context_length
        if len(framed.tokens) > most:
            what = f"{len(framed.tokens)} tokens, but the model reads at most {most}"
            raise InputError(what, where=f"{text[:40]}...", fix="give less text")
        return framed


@runtime_checkable
class TextReader(Served, Protocol):
    """A finished model that reads texts."""

    tokenizer: Tokenizer

    @property
    def reads(self) -> Reads: ...


class TextModel(Opened, Generic[M]):
    """A finished model of texts, and its tokenizer. `about` is the content of task.json."""

    model: M
    task: ClassVar[str]  # in task.json

    def __init__(self, model: M, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about

    @classmethod
    @checks_arguments
    def load(cls: type[T], run: str | Path, *, device: Device = "cpu") -> T:
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, cls.task, cls.purpose)
        model, tokenizer, _, about = read_run(Path(run))
        return cls(for_inference(model.to(known_device(device))), tokenizer, about)


class TextlessModel(Opened, Generic[M]):
    """A finished model that reads no text. `about` is the content of task.json."""

    model: M
    task: ClassVar[str]

    def __init__(self, model: M, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.about = about

    @classmethod
    @checks_arguments
    def load(cls: type[P], run: str | Path, *, device: Device = "cpu") -> P:
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, cls.task, cls.purpose)
        model, about = read_textless_run(Path(run))
        return cls(for_inference(model.to(known_device(device))), about)


def in_bits(served: S, weights: str) -> S:
    """The model, with the weights of its linear maps in fewer bits (`heedful.apply.inference`): "int8" or "int4";
    "float32" leaves them as they are. Raises InputError for another word, and for fewer bits on another device than a
    CPU."""
    if weights != "float32":
        for_inference(served.model, weights)
    return served


def load_in_bits(load: Callable[..., S], run: Path, device: str, weights: str) -> S:
    """Loads a run with weights in fewer bits, for a command: `device` is a word for `chosen_device`."""
    return in_bits(load(run, device=chosen_device(device, weights=weights)), weights)


def by_library(row: Task, run: Path) -> tuple[Any, str]:
    """The model in another library; or None and the reason: that library cannot hold the model, or not do what its
    task.json asks. "" where the task has no such library."""
    load = next((load for engine in row.engines.values() if (load := engine().load) is not None), None)
    if load is None:
        return None, ""
    try:
        served, ask = load(run), next(iter(row.asks.values()))()
        list(ask.answers(served, ["a"], ask.options()))
    except (HeedError, RuntimeError) as error:
        return None, " ".join(str(error).split())
    return served, ""


def load_by(row: Task, run: Path, *, device: str, engine: str | None, weights: str) -> Any:
    """Loads a run. `engine`: None or "own" for our own code, the name of another library, or "auto" for that library
    where it can be used: on a CPU, in float32. Raises InputError for an engine that the task does not have, or that
    cannot do this."""
    if row.with_engine is not None:
        own = in_bits(row.served().load(run, device=device), weights)
        return row.with_engine()(own, run, engine=engine or "own", weights=weights)
    if engine == "auto" and device == "cpu" and weights == "float32":
        fast, _ = by_library(row, run)
        if fast is not None:
            return fast
    if engine in (None, "own", "auto"):
        return in_bits(row.served().load(run, device=device), weights)
    load = row.engines[engine]().load if engine in row.engines else None
    if load is None:
        known = [name for name, lazy in row.engines.items() if lazy().load is not None]
        raise unknown_key(engine, ["auto", "own", *known], where="engine")
    if weights != "float32":
        fix = f"heed export RUN --to {engine} --weights {weights}"
        raise InputError(f"{weights} weights by the engine {engine!r}", where=str(run), fix=fix)
    if device != "cpu":
        raise InputError(f"the engine {engine!r} serves a CPU", where=str(run), fix="leave out the engine")
    return load(run)


def refuse_run_of_another(run: str | Path, task: str, purpose: str) -> None:
    """Raises OtherTaskError for a run of another task, and MissingError where there is no run, before reading a
    model."""
    refuse_other(task_name(Path(run))[1], run, task, purpose)


def refuse_other(about: dict[str, Any], run: str | Path, task: str, purpose: str) -> None:
    """Raises OtherTaskError for a model of another task."""
    if about.get("task") != task:
        raise OtherTaskError(f"a model for {about.get('task')!r}, not for {purpose}", where=str(run))


def spec_of(kind: type[Spec], about: dict[str, Any]) -> Spec:
    """The content of task.json, without the task's name and the Hub's family."""
    own = {key: value for key, value in about.items() if key not in ("task", "family")}
    return from_json(kind, own, where="task.json")


def refuse_nan_answers(answers: Tensor, what: str = "answers") -> None:
    """Raises NonFiniteError where there is a NaN."""
    if answers.isnan().any():
        raise NonFiniteError(f"the model's {what} are not finite", fix="train it with a lower train.lr")


def opened(files: Sequence[str | Path], preparation: Preparation) -> ImageFiles:
    """Picture files to use a model on; they are not kept in memory."""
    return ImageFiles([ImageFile(Path(file)) for file in files], channels=preparation.channels, most=0)


def text_facts(saved: Saved, context: int | None) -> dict[str, Any]:
    """What `heed info` prints about a run on texts."""
    assert saved.tokenizers is not None
    return {"task": saved.about["task"], "vocabulary": saved.tokenizers[0].size, "context": context}


def body_facts(saved: Saved) -> dict[str, Any]:
    """The same for a run whose model has an embedding with a context length."""
    return text_facts(saved, saved.config.embed.context_length)


def picture_facts(saved: Saved, labels: tuple[str, ...], seen: Preparation) -> dict[str, Any]:
    """What `heed info` prints about a run that labels pictures."""
    answers = ", ".join(labels) if len(labels) <= 20 else f"{len(labels):,} labels"
    return {"task": saved.about["task"], "answers": answers, "pictures": size_in_words(seen)}


def size_in_words(seen: Preparation) -> str:
    """The size to which pictures are resized, in words."""
    size = " x ".join(map(str, seen.crop or seen.resize)) or "any"
    if seen.longest is not None and not seen.crop:
        size = f"edges of {size} to {seen.longest}"
    return f"{size} pixels, {seen.channels} channel{'s' if seen.channels > 1 else ''}"


def on_device(parts: tuple[Tensor, ...], device: torch.device) -> tuple[Tensor, ...]:
    return tuple(part.to(device) for part in parts)
