"""Sampling one token: the rules that shape the probabilities, and the token for a random number."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.rules import CountPenalty, MinP, RepetitionPenalty, Rule, Temperature, TopK, TopP
from heedful.decode.settings import Sampling


def penalties(
    sampling: Sampling, prompt: Sequence[int] = (), *, on_log_probabilities: bool = False
) -> tuple[Rule, ...]:
    """The penalties of the sampling settings, after a prompt; empty where they change nothing. `on_log_probabilities`:
    as in a beam search, which compares hypotheses by these."""
    rules: tuple[Rule, ...] = ()
    if sampling.repetition_penalty != 1:
        rules += (RepetitionPenalty(sampling.repetition_penalty, tuple(prompt), on_log_probabilities),)
    if sampling.presence_penalty or sampling.frequency_penalty:
        rules += (CountPenalty(sampling.presence_penalty, sampling.frequency_penalty),)
    return rules


def sampling_filters(sampling: Sampling) -> tuple[Rule, ...] | None:
    """The filters of the sampling settings, in this order, without neutral ones. None: the most probable token is
    taken."""
    if sampling.temperature == 0:
        return None
    filters: tuple[Rule, ...] = () if sampling.temperature == 1 else (Temperature(sampling.temperature),)
    filters += () if sampling.top_k == 0 else (TopK(sampling.top_k),)
    filters += () if sampling.top_p == 1 else (TopP(sampling.top_p),)
    return filters if sampling.min_p == 0 else (*filters, MinP(sampling.min_p))


def draw(scores: Float[Tensor, "R V"], filters: Sequence[Rule] | None, uniform: Float[Tensor, "R"]) -> Int[Tensor, "R"]:
    """A token for each row, drawn by its probability after the filters: `uniform`, in [0, 1), is looked up in their
    cumulative sums. Without filters (None) it is the most probable token."""
    if filters is None:
        return scores.argmax(-1)
    best = scores.argmax(-1, keepdim=True)
    for rule in filters:
        scores = rule(best[:, :0], scores)
    probability = scores.softmax(-1)
    below = probability.cumsum(-1)
    token = torch.searchsorted(below, uniform[:, None] * below[:, -1:], right=True).clamp(max=scores.shape[1] - 1)
    # rounding, or a parallel sum that is not monotonic, may point at a token that is not possible
    return torch.where(probability.gather(1, token) > 0, token, best).squeeze(1)
