"""The settings of searches and of sampling: the one place where each has its name, default, bounds and help."""

from dataclasses import Field, dataclass, field, fields
from typing import Any, TypedDict

from heedful.core.arguments import refuse_other
from heedful.errors import InputError


def setting(default: Any, about: str, least: float | int | None = None, most: float | int | None = None) -> Any:
    """A field with a help text, and the bounds that every door refuses it beyond. A type as `default` makes it."""
    metadata = {"help": about, "least": least, "most": most}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn at random."""

    temperature: float = setting(1.0, "Divides the logits before sampling; 0 takes the most probable token.", 0.0)
    top_k: int = setting(0, "Sample from this many most probable tokens; 0 is off.", 0)
    top_p: float = setting(
        1.0, "Sample from the most probable tokens whose probabilities sum to this (nucleus); 1 is off.", 0.0, 1.0
    )
    min_p: float = setting(
        0.0, "Sample only tokens at least this share as probable as the most probable one.", 0.0, 1.0
    )
    repetition_penalty: float = setting(
        1.0, "Penalty on tokens that already occurred, in the prompt too; 1 is off.", 1.0
    )
    presence_penalty: float = setting(
        0.0, "Subtracted from the logits of tokens that were generated already.", -2.0, 2.0
    )
    frequency_penalty: float = setting(
        0.0, "Subtracted from the logit of a token for each time that it was generated.", -2.0, 2.0
    )
    seed: int = setting(0, "Seed of the random numbers.", 0)

    def __post_init__(self) -> None:
        """Raises InputError for what is no number, or no whole one where those are counted, and beyond the bounds."""
        for each in fields(self):
            value = getattr(self, each.name)
            refuse_other(each.name, value, each.type)
            least, most = (each.metadata.get(bound) for bound in ("least", "most"))
            if value is not None and not (least is None or value >= least) & (most is None or value <= most):
                fix = f"give {least:g} or more" if most is None else f"give {least:g} to {most:g}"
                raise InputError(f"{each.name} is {value}", fix=fix)


DEFAULT_SAMPLING = Sampling()
SHAPING = ("temperature", "top_k", "top_p", "min_p")  # of a draw, which a search does not use


@dataclass(frozen=True, kw_only=True)
class Decoding(Sampling):
    """How to search. `beam` 1 is greedy; with `samples`, tokens are drawn at random in place of searched for."""

    beam: int = setting(5, "Width of the beam; 1 is greedy search.", 1, 64)
    length_penalty: float = setting(
        1.0,
        "Scores are divided by length to this power: 1 is the mean of the tokens' log-probabilities, 0 their sum.",
        -10.0,
        10.0,
    )
    early_stopping: bool = setting(
        True,
        "Whether a search is over once its beam is full of what has ended; else when nothing live is better.",
    )
    finished_first: bool | None = setting(
        None, "Whether what ends at its limit alone comes last; by default as early_stopping."
    )
    n_best: int = setting(1, "Translations of each text, one line each with its score.", 1)
    groups: int = setting(1, "Groups of a diverse beam search (Vijayakumar et al. 2018).", 1)
    diversity: float = setting(
        0.5, "Diversity of the groups: nats subtracted for a token that another group chose.", 0.0
    )
    # None: twice the source's and 12 more.
    longest: int | None = setting(None, "The most new tokens of a translation.", 1)
    shortest: int = setting(0, "The fewest new tokens of a translation.", 0)
    no_repeat: int = setting(0, "No n-gram of this size may occur twice; 0 is off.", 0)
    renormalise: bool = setting(False, "Whether probabilities are shares of what may come, and what may not has none.")
    forced_eos: bool = setting(False, "Whether what reaches its longest ends there, as if the model were sure of it.")
    samples: int = setting(0, "Sample this many translations of each text instead of searching.", 0)


SETTINGS: dict[str, "Field[Any]"] = {each.name: each for each in fields(Decoding)}


class SamplingOptions(TypedDict, total=False):
    """`Sampling` as named arguments."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    seed: int


class DecodingOptions(SamplingOptions, total=False):
    """`Decoding` as named arguments."""

    beam: int
    length_penalty: float
    early_stopping: bool
    finished_first: bool | None
    n_best: int
    groups: int
    diversity: float
    longest: int | None
    shortest: int
    no_repeat: int
    renormalise: bool
    forced_eos: bool
    samples: int
