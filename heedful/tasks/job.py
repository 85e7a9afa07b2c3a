"""What a training run needs of the thing that is trained: declared here, and provided by one module a task."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.train.loop import Trainable

Scores = Mapping[str, Mapping[str, float | str]]  # of each test set, by name


@dataclass(frozen=True)
class Measured:
    """A model on the validation data: its loss in nats a token, its scores by name, and some of what it says, as text
    or a PNG."""

    loss: float
    scores: dict[str, float]
    rank: float  # the larger the better: what "best" means
    sample: str | bytes


@runtime_checkable
class Job(Protocol):
    """A recipe and its data, read and found right."""

    notes: list[str]  # that a person should see
    fingerprint: str  # of the training data
    tokenizer_hash: str
    config: Any  # of the model
    score_names: tuple[str, ...]  # that `measure` gives

    def describe(self) -> str:
        """How much there is to learn from, in a few words."""

    def tokenizers(self) -> dict[str, bytes]:
        """The files of the tokenizers, by name."""

    def facts(self) -> dict[str, object]:
        """What data.json says."""

    def begin(self, model: Any) -> None:
        """Gives a new model, as it was initialised, the weights that its training starts from, if any."""

    def task(self, model: Any) -> Trainable:
        """Batches and a loss."""

    def measure(self, model: Any) -> Measured: ...

    def write(self, folder: Path, model: Any) -> None:
        """Saves the model as one to be used."""

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores of the model in `folder`, loaded on `device`, on each test set."""

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        """The model card: README.md of `folder`. `best` is the row of metrics.jsonl of the step that was kept."""
