"""What a training run needs of the thing that is trained: a job, which each task fills in."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from heedful.apply.lora import LoRAConfig, adapters, merged
from heedful.core.config import to_json
from heedful.data.parts import Parts, spread
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, counted
from heedful.run.card import CardText, Scores, data_facts, fingerprint, model_card
from heedful.run.folder import parameters, read_tokenizers, tokenizer_files, write_adapters, write_model
from heedful.run.recipe import Recipe
from heedful.run.start import copy_weights
from heedful.training.loop import Trainable

R = TypeVar("R", bound=Recipe)
C = TypeVar("C", bound=Parts[Any])  # the data
M = TypeVar("M", bound=nn.Module)  # the model


@dataclass(frozen=True)
class Measurement:
    """A model on the validation data: its loss in nats a token, its scores by name, and some of what it says, as text
    or a PNG."""

    loss: float
    scores: dict[str, float]
    rank: float  # the larger the better: what "best" means
    sample: str | bytes


class Job(ABC, Generic[R, C, M]):
    """A recipe and its data, read and found right before anything is written.

    `corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizers and knows what it was started
    from. Raises InputError or MissingError for whatever is wrong with either.

    A task's own job says all that has no value here: what it is of the class, what its `__init__` finds, and the
    abstract methods. What has one it may say otherwise.
    """

    unit: ClassVar[str]  # what data.json counts: "pairs", "texts"
    kinds: ClassVar[str]  # of data, for who gave none
    served: ClassVar[Any]  # has `load(folder, device=...)`: the model to be scored at the end

    config: Any  # of the model
    answers: object  # what task.json says of the model's answers, where `spec` does not
    fingerprint: str  # of the training data
    score_names: tuple[str, ...]  # of those that `measure` gives: what is plotted

    tokenizer: Tokenizer | None = None  # of both sides, where there are two
    counted: str = ""  # what its loss is a mean over, where that is not what the task's row says
    halves: bool = True  # whether two halves of a batch may be computed apart: its loss is a sum over rows
    fewest_steps: int = 0  # that are made where no budget is given
    saved: str = ""  # which part of the model is the one that is saved, by its name; "": the whole
    # What is plotted, in a panel each by its heading: the keys of metrics.jsonl; without any, losses and scores.
    panels: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(self, recipe: R, corpus: C | None = None, begun: Path | None = None) -> None:
        self.recipe, self.begun = recipe, begun
        if corpus is None and not recipe.data.path:
            raise InputError("no data was given", fix=f"--data PATH: {self.kinds}")
        if recipe.train.lora and (not recipe.start_from or recipe.train.optimizer != "adam"):
            what = "train.lora is for a model that training begins with, and for Adam"
            raise InputError(what, fix="--from RUN and --set train.optimizer=adam, or leave out --lora")
        self.start: Any = self.read_start()
        self.corpus: C = self.read() if corpus is None else corpus
        self.valid: Any = self.corpus.valid  # what `measure` looks at: as a subclass keeps it, or some of it
        self.notes = list(self.corpus.notes)  # that a person should see
        self.companions: dict[str, nn.Module] = {}  # models that its loss needs, which do not learn

    @classmethod
    def first_look(cls, recipe: R, begun: Path | None) -> tuple[C | None, list[str]]:
        """The data, and what a person should see of them before the job is made of them, where that takes long with
        many: these lines are among its `notes`. None where it is soon made, and reads them itself. `begun`: as of the
        job."""
        return None, []

    @abstractmethod
    def read(self) -> C:
        """The data that the recipe names."""

    @abstractmethod
    def describe(self) -> str:
        """How much there is to learn from, in a few words."""

    @abstractmethod
    def own_facts(self) -> dict[str, object]:
        """What data.json says beside the files, how many examples there are, and the notes."""

    @abstractmethod
    def task(self, model: M) -> Trainable:
        """Batches and a loss."""

    @abstractmethod
    def measure(self, model: M) -> Measurement:
        """The averaged model, on `valid`."""

    @abstractmethod
    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        """The model card. `best` is the row of metrics.jsonl of the step that was kept."""

    def read_start(self) -> Any:
        """What the training begins with, which has `facts()` for data.json; None where it begins from nothing."""
        return None

    def kept_tokenizer(self, train: Callable[[], Tokenizer]) -> Tokenizer:
        """That of the run that is continued, or a new one."""
        known = None if self.begun is None else read_tokenizers(self.begun)
        return known[0] if known else train()

    @cached_property
    def tokenizer_hash(self) -> str:
        """Of what turns examples into ids: a training is continued with the same."""
        return "" if self.tokenizer is None else self.tokenizer.fingerprint

    def spec(self) -> dict[str, Any]:
        """task.json: what the model is for, and what its answers mean."""
        return {"task": self.recipe.task, **to_json(self.answers)}

    def score(self, best: Any, part: Any) -> Mapping[str, Any]:
        """What the finished model is worth on a test set."""
        return best.measure(part)

    def portion(self, valid: Any, share: float) -> Any:
        """A share of what `valid` holds, evenly spread over it, and enough to measure on."""
        return [valid[i] for i in spread(len(valid), share)]

    def chance(self) -> float | None:
        """The validation loss of a model that knows how often each answer is right and nothing of what is asked, about;
        None where that says little."""
        return None

    def tokenizers(self) -> dict[str, bytes]:
        """The files of the tokenizers, by name."""
        return {} if self.tokenizer is None else tokenizer_files(self.tokenizer, self.tokenizer)

    def tensors(self, model: M) -> dict[str, Tensor]:
        """The weights that are saved of the model."""
        return parameters(model.get_submodule(self.saved))

    def remembered(self) -> dict[str, Tensor]:
        """What batches are made of that came of the model as it was when their epoch began: a checkpoint holds it."""
        return {}

    def remember(self, tensors: dict[str, Tensor]) -> None:
        """Takes back what `remembered` gave."""

    def begin(self, model: M) -> None:
        """Gives a new model, as it was initialised, the weights that its training starts from, if any; new heads stay
        as they are."""
        if self.start:
            stacks = [stack for key, stack in self.recipe.STACKS.items() if key in self.recipe.model]
            new = tuple(f"{name}." for name in self.new_heads())
            copy_weights(model, self.recipe.start_from, without=new, new=new, stacks=stacks)

    def new_heads(self) -> Collection[str]:
        """The parts of the model that the one it starts from does not have, or not so."""
        return ()

    @property
    def lora(self) -> LoRAConfig | None:
        """The adapters that are learnt in place of all weights."""
        plan = self.recipe.train
        if not plan.lora:
            return None
        alpha = 2.0 * plan.lora if plan.lora_alpha is None else plan.lora_alpha
        return LoRAConfig(rank=plan.lora, alpha=alpha, targets=plan.lora_targets)

    def trained_on(self) -> Iterable[str]:
        """What is trained on, as `Scored.examples` tells what is scored."""
        return map(repr, self.corpus.train)

    @cached_property
    def valid_fingerprint(self) -> str:
        """Of what is validated on: the models of a training that is continued are measured on the same."""
        return fingerprint(map(repr, self.corpus.valid))

    def facts(self) -> dict[str, object]:
        """What data.json says."""
        own = {"fingerprint": self.fingerprint, "notes": self.notes}
        started = {} if self.start is None else self.start.facts()
        return data_facts(self.corpus, self.unit) | self.own_facts() | own | started

    def write(self, folder: Path, model: M) -> None:
        """Saves the model as one to be used: adapters are added to its weights, and kept, with the new heads, in a file
        of their own."""
        tensors = self.tensors(model)
        if self.lora is not None:
            write_adapters(folder, adapters(tensors, new=self.new_heads()), self.lora)
            tensors = merged(tensors, self.lora)
        write_model(folder, model.get_submodule(self.saved), tensors, self.tokenizers() | {"task.json": self.spec()})

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores of the model in `folder`, loaded on `device`, on each test set, or on the validation data where
        there is none."""
        best = self.served.load(folder, device=device)
        return {name: self.score(best, part) for name, part in self.tests()}

    def doubts(self, scores: Scores) -> Iterable[str]:
        """What a person should be told of these scores, a line each."""
        return ()

    def tests(self) -> Iterator[tuple[str, Any]]:
        yield from self.corpus.scored().items()

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        """README.md of `folder`."""
        told = self.tells(folder, scores, best)
        if "averaged" in best:
            told = replace(
                told, kept=f"the mean of the last {counted(best['averaged'], 'checkpoint')} up to {told.kept}"
            )
        start = f"from the model in `{self.recipe.start_from}`" if self.recipe.start_from else "from scratch"
        rank = self.recipe.train.lora
        how = f"{start}, by low-rank adapters of rank {rank} beside its matrices," if rank else start
        return model_card(folder, told, start=how, minutes=minutes, notes=self.notes_on_data())

    def notes_on_data(self) -> Sequence[str]:
        """Those that the model card repeats."""
        return self.corpus.notes
