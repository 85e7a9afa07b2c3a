"""What a training needs of a task: a job."""

import math
import shlex
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
from heedful.run.folder import parameters, pruned_from, write_adapters, write_model
from heedful.run.recipe import Recipe
from heedful.run.start import copy_weights, read_teacher
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.training.loop import Trainable

R = TypeVar("R", bound=Recipe)
C = TypeVar("C", bound=Parts[Any])  # the data
M = TypeVar("M", bound=nn.Module)  # the model


@dataclass(frozen=True)
class Measurement:
    """A model on the validation data: its loss in nats a token, its scores by name, and a sample of its output, as text
    or a PNG."""

    loss: float
    scores: dict[str, float]
    rank: float  # the model with the largest is the best; among those up to `Job.floor`, that with the smallest loss
    sample: str | bytes


class Job(ABC, Generic[R, C, M]):
    """A recipe and its data, read and checked before anything is written.

    `corpus` replaces the recipe's data; `begun` is the folder of a run that is continued, whose tokenizers and start
    are used again. Raises InputError or MissingError for whatever is wrong with the recipe or the data.

    A subclass sets the attributes that have no value here, in the class or in `__init__`, and implements the abstract
    methods. It may override the others.
    """

    unit: ClassVar[str]  # what data.json counts: "pairs", "texts"
    kinds: ClassVar[str]  # the kinds of data that it reads, for the error where none are given
    served: ClassVar[Any]  # has `load(folder, device=...)`: the finished model, which is scored at the end

    config: Any  # of the model
    answers: object  # what task.json says about the model's answers, unless `spec` is overridden
    fingerprint: str  # of the training data
    score_names: tuple[str, ...]  # the scores of `measure` that are plotted

    tokenizer: Tokenizer | None = None  # of both sides, where there are two
    counted: str = ""  # what its loss is a mean over, where the task's row says something else
    halves: bool = True  # whether two halves of a batch may be computed separately: its loss is a sum over rows
    turns: int = 1  # that the loop counts as epochs, for each epoch
    share: float = 1.0  # of the validation data that is measured on, and at the end scored on where there is no test
    fewest_steps: int = 0  # the fewest steps of a training without a budget
    learnt_before: bytes = b""  # the fingerprints of prepared training data, whose texts are not at hand
    saved: str = ""  # the name of the submodule that is saved; "": the whole model
    # The panels of the plot, by their headings: keys of metrics.jsonl. Empty: losses and scores.
    panels: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(self, recipe: R, corpus: C | None = None, begun: Path | None = None) -> None:
        self.recipe, self.begun = recipe, begun
        if corpus is None and not recipe.data.path:
            raise InputError("no data was given", fix=f"--data PATH: {self.kinds}")
        if recipe.train.lora and (not recipe.start_from or recipe.train.optimizer != "adam"):
            what = "train.lora is for a model that training begins with, and for Adam"
            raise InputError(what, fix="--from RUN and --set train.optimizer=adam, or leave out --lora")
        self.teacher = read_teacher(recipe)
        self.start: Any = self.read_start()
        self.corpus: C = self.read() if corpus is None else corpus
        self.valid: Any = self.corpus.valid  # the validation data of `measure`, or a share of them
        self.notes = list(self.corpus.notes)  # for the user
        # Frozen models that the loss needs.
        self.companions: dict[str, nn.Module] = {"teacher": self.teacher.model} if self.teacher else {}

    @classmethod
    def first_look(cls, recipe: R, begun: Path | None) -> tuple[C | None, list[str]]:
        """The data, and notes to print before the job is made, for tasks whose job takes long to make; these notes are
        among its `notes` too. None where making the job is quick: it then reads the data itself. `begun`: the folder of
        a run that is continued."""
        return None, []

    @abstractmethod
    def read(self) -> C:
        """The data that the recipe names."""

    @abstractmethod
    def describe(self) -> str:
        """The amount of training data, in a few words."""

    @abstractmethod
    def own_facts(self) -> dict[str, object]:
        """What data.json says besides the files, the numbers of examples and the notes."""

    @abstractmethod
    def task(self, model: M) -> Trainable:
        """Batches and a loss."""

    @abstractmethod
    def measure(self, model: M) -> Measurement:
        """Measures the averaged model on `valid`."""

    @abstractmethod
    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        """The task's parts of the model card. `best` is the row of metrics.jsonl of the model that was kept."""

    def read_start(self) -> Any:
        """What the training begins with; it has `facts()` for data.json. None: the model is new."""
        return None

    def kept_tokenizer(self, train: Callable[[], Tokenizer]) -> Tokenizer:
        """The tokenizer of the run that is continued, or of the teacher, or a new one from `train`."""
        known = None if self.begun is None else read_tokenizers(self.begun)
        taught = None if self.teacher is None else self.teacher.tokenizer
        return known[0] if known else taught or train()

    @cached_property
    def tokenizer_hash(self) -> str:
        """A hash of what turns examples into ids: a training continues with the same."""
        return "" if self.tokenizer is None else self.tokenizer.fingerprint

    def spec(self) -> dict[str, Any]:
        """The content of task.json: the model's task, and what its answers mean."""
        return {"task": self.recipe.task, **to_json(self.answers)}

    def score(self, best: Any, part: Any) -> Mapping[str, Any]:
        """The scores of the finished model on a test set."""
        return best.measure(part)

    def portion(self, valid: Any, share: float) -> Any:
        """A share of `valid`, evenly spread over it, and enough to measure on."""
        return [valid[i] for i in spread(len(valid), share)]

    def amount(self, valid: Any) -> int:
        """How much there is in `valid`."""
        return len(valid)

    def chance(self) -> float | None:
        """About the validation loss of a model that knows how frequent each answer is, but does not look at the input;
        None where that is not informative."""
        return None

    def floor(self) -> float:
        """The rank on `valid` that a model may reach by luck, without a look at the input. Up to here ranks do not tell
        models apart, and the loss decides which is the best."""
        return -math.inf

    def tokenizers(self) -> dict[str, bytes]:
        """The tokenizers' files, by name."""
        return {} if self.tokenizer is None else tokenizer_files(self.tokenizer, self.tokenizer)

    def tensors(self, model: M) -> dict[str, Tensor]:
        """The weights of the model that are saved."""
        return parameters(model.get_submodule(self.saved))

    def remembered(self) -> dict[str, Tensor]:
        """What the model made when the epoch began and batches are made from: a checkpoint holds it."""
        return {}

    def remember(self, tensors: dict[str, Tensor]) -> None:
        """Restores what `remembered` gave."""

    def begin(self, model: M) -> None:
        """Copies the weights that the training starts from, if any, into a new model; new heads stay as they were
        initialised."""
        if self.start:
            stacks = [stack for key, stack in self.recipe.STACKS.items() if key in self.recipe.model]
            new = tuple(f"{name}." for name in self.new_heads())
            copy_weights(model, self.recipe.start_from, without=new, new=new, stacks=stacks)

    def new_heads(self) -> Collection[str]:
        """The parts of the model that the model it starts from lacks, or has in another shape."""
        return ()

    @property
    def lora(self) -> LoRAConfig | None:
        """The low-rank adapters that are trained instead of all weights; None: all weights are."""
        plan = self.recipe.train
        if not plan.lora:
            return None
        alpha = 2.0 * plan.lora if plan.lora_alpha is None else plan.lora_alpha
        return LoRAConfig(rank=plan.lora, alpha=alpha, targets=plan.lora_targets)

    def trained_on(self) -> Iterable[str]:
        """A string for each training example, in the form of `Scored.examples`."""
        return map(repr, self.corpus.train)

    @cached_property
    def valid_fingerprint(self) -> str:
        """A hash of the validation data: a training that is continued measures on the same."""
        return fingerprint(map(repr, self.corpus.valid))

    def facts(self) -> dict[str, object]:
        """The content of data.json."""
        own = {"fingerprint": self.fingerprint, "notes": self.notes}
        started = {} if self.start is None else self.start.facts()
        return data_facts(self.corpus, self.unit) | self.own_facts() | own | started

    def write(self, folder: Path, model: M) -> None:
        """Saves the model for use. Adapters are added to its weights; with the new heads they are also saved in a file
        of their own."""
        tensors = self.tensors(model)
        if self.lora is not None:
            write_adapters(folder, adapters(tensors, new=self.new_heads()), self.lora)
            tensors = merged(tensors, self.lora)
        write_model(folder, model.get_submodule(self.saved), tensors, self.tokenizers() | {"task.json": self.spec()})

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores of the model in `folder`, loaded on `device`, on each test set, or on the validation data if there
        is none."""
        best = self.served.load(folder, device=device)
        return {name: self.score(best, part) for name, part in self.tests()}

    def doubts(self, scores: Scores) -> Iterable[str]:
        """Warnings about these scores, a line each."""
        return ()

    def good_for(self, scores: Scores) -> str:
        """What a model with these scores is good for, in a few words."""
        return "it has learnt from its data, and is good for what is like them"

    def few_data(self) -> tuple[str, list[str]]:
        """What is better than to begin with nothing on so few data, and the commands for it; nothing where there are
        enough."""
        return "", []

    def tests(self) -> Iterator[tuple[str, Any]]:
        """The test sets, or a share of the validation data if there are none."""
        if self.corpus.tests or self.share == 1:
            yield from self.corpus.scored().items()
        else:
            yield "valid", self.portion(self.corpus.valid, self.share)

    def card(
        self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float, *, by_loss: bool = False
    ) -> str:
        """README.md of `folder`. `by_loss`: the best model was chosen by its loss, as no score was above luck."""
        told = self.card_text(folder, scores, best)
        if by_loss:
            what = "whose validation loss is the lowest, as no score there was better than luck"
            told = replace(told, kept=f"step {best['step']:,}, {what} (loss {best['valid_loss']:.4f})")
        if "averaged" in best:
            told = replace(
                told, kept=f"the mean of the last {counted(best['averaged'], 'checkpoint')} up to {told.kept}"
            )
        start = f"from the model in `{self.recipe.start_from}`" if self.recipe.start_from else "from scratch"
        start, rank = pruned_from(folder) or start, self.recipe.train.lora
        how = f"{start}, by low-rank adapters of rank {rank} beside its matrices," if rank else start
        how = f"{how}, with the model in `{self.teacher.run}` as its teacher," if self.teacher else how
        return model_card(folder, told, start=how, minutes=minutes, notes=self.notes_on_data())

    def card_text(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        """What the job tells, with the folder's name in its commands as a shell needs it."""
        text, name = self.tells(folder, scores, best), str(folder)
        quoted = shlex.quote(name)
        return text if quoted == name else replace(text, use=[line.replace(name, quoted) for line in text.use])

    def notes_on_data(self) -> Sequence[str]:
        """The notes that the model card repeats."""
        return self.corpus.notes
