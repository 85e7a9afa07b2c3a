"""What a training tells on its way: a generator of these is all that its callers see of it."""

from dataclasses import dataclass, field

from heedful.run.card import Scores
from heedful.training.loop import Step


@dataclass(frozen=True)
class Note:
    """A line that a person should see."""

    text: str


@dataclass(frozen=True)
class Trained:
    """One optimizer step, and how fast things go."""

    step: Step
    lr: float
    rate: float  # a second, of what its loss is a mean over
    counted: str  # what that is
    seconds_left: float | None  # until the budget is used up; None until there is an estimate


@dataclass(frozen=True)
class Measured:
    """The averaged weights on the validation data; `best` so far, by what the task ranks by."""

    step: int
    valid_loss: float
    scores: dict[str, float]
    best: bool
    sample: str | bytes = field(default="", repr=False)  # of what the model says, as text or a PNG


@dataclass(frozen=True)
class Checkpointed:
    """A checkpoint that no crash can lose any more."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The best model's scores on each test set, by the recipe's search."""

    steps: int
    minutes: float
    scores: Scores


Event = Note | Trained | Measured | Checkpointed | Finished
