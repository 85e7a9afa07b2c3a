"""The settings of searches and of sampling, with their defaults."""

from dataclasses import dataclass, fields
from typing import TypedDict

from heedful.core.arguments import refuse_other


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn at random."""

    temperature: float = 1.0  # what logits are divided by; 0 takes the most probable token
    top_k: int = 0  # only the so many most probable; 0: any
    top_p: float = 1.0  # only the most probable, until they sum up to this
    min_p: float = 0.0  # only those at least this share as probable as the most probable
    repetition_penalty: float = 1.0  # of tokens that were said before, or stand in the prompt; 1: none
    presence_penalty: float = 0.0  # what the logit of a token loses that was said before
    frequency_penalty: float = 0.0  # what it loses for each time that the token was said
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for what is no number, or no whole one where those are counted."""
        for each in fields(self):
            refuse_other(each.name, getattr(self, each.name), each.type)


DEFAULT_SAMPLING = Sampling()
SHAPING = ("temperature", "top_k", "top_p", "min_p")  # of a draw, which a search does not use


@dataclass(frozen=True, kw_only=True)
class Decoding(Sampling):
    """How to search. `beam` 1 is greedy; with `samples`, tokens are drawn at random in place of searched for."""

    beam: int = 5
    length_penalty: float = 1.0
    early_stopping: bool = True  # a beam is over when it is full of what has ended; else when nothing live is better
    finished_first: bool | None = None  # what ends at its limit alone comes last; None: with early_stopping
    n_best: int = 1
    groups: int = 1  # of the beam, which are to say different things (Vijayakumar et al. 2018)
    diversity: float = 0.5  # nats that a token costs for each beam of earlier groups that chose it at this step
    longest: int | None = None  # new tokens; None: twice the source's and 12 more
    shortest: int = 0
    no_repeat: int = 0  # no n-gram of this size twice; 0: any may
    renormalise: bool = False  # probabilities are shares of what may come, so that what may not has none
    forced_eos: bool = False  # what reaches `longest` ends there, as if the model were sure of it
    samples: int = 0


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


def chosen(*, beam: int | None, length_penalty: float | None) -> DecodingOptions:
    """Those of these settings that are not None, which leaves a setting as the model has it."""
    settings: DecodingOptions = {}
    if beam is not None:
        settings["beam"] = beam
    if length_penalty is not None:
        settings["length_penalty"] = length_penalty
    return settings
