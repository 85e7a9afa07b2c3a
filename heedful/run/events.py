"""The events of a training: its callers see nothing else of it."""

from dataclasses import dataclass, field

from heedful.run.card import Scores
from heedful.training.loop import Step


@dataclass(frozen=True)
class Note:
    """A line for the user. `detail`: few will need it, so it is in the run's log.txt, and shown to those who ask."""

    text: str
    detail: bool = False


@dataclass(frozen=True)
class Trained:
    """One optimizer step, and the speed."""

    step: Step
    lr: float
    rate: float  # how many tokens, or whatever the loss is a mean over, a second
    counted: str  # what the loss is a mean over: "tokens"
    seconds_left: float | None  # until the budget is used up; None: not known yet


@dataclass(frozen=True)
class Measured:
    """The averaged weights, measured on the validation data. `best`: the best so far, by the task's ranking."""

    step: int
    valid_loss: float
    scores: dict[str, float]
    best: bool
    sample: str | bytes = field(default="", repr=False)  # of the model's output, as text or a PNG


@dataclass(frozen=True)
class Checkpointed:
    """A checkpoint that is safely on disk."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The best model's scores on each test set, with the recipe's search; what it is good for, in a sentence; and the
    commands that may come next."""

    steps: int
    minutes: float
    scores: Scores
    verdict: str = ""
    commands: tuple[str, ...] = ()


Event = Note | Trained | Measured | Checkpointed | Finished
