"""Decoding step by step: the likeliest tokens of each step, their probabilities after sampling filters, and the token
that was chosen.

T steps, V tokens in the vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.tokenizer import Tokenizer
from heedful.decode.draws import sampling_filters
from heedful.decode.rules import Forbid
from heedful.decode.settings import Sampling, SamplingOptions, setting
from heedful.errors import InputError
from heedful.tasks.shared.pieces import labelled_pieces

MOST_STEPS, MOST_TOKENS = 64, 2000


class TokenCandidate(TypedDict):
    """A candidate for the next token: its readable piece, the text that it adds, and its probability `before` and
    `after` the sampling settings; 0 is cut off."""

    token: int
    piece: str
    text: str
    before: float
    after: float


class DecodingStep(TypedDict):
    """The likeliest tokens, the token that was chosen, the entropy of the distribution (bits), and the log-probability
    (nats) of all tokens so far."""

    top: list[TokenCandidate]
    said: TokenCandidate
    entropy: float
    total: float


class Stepped(TypedDict):
    text: str
    steps: list[DecodingStep]


@dataclass(frozen=True, kw_only=True)
class StepsOptions:
    """`chosen` tokens come first, whatever the model would choose; greedy decoding continues them. The answer has the
    steps from number `first` on, at most `most` of them, with the `top` likeliest tokens of each."""

    chosen: tuple[int, ...] = setting((), "Tokens that come first, whatever the model would choose.", 0)
    first: int = setting(0, "The number of the first step that is told.", 0)
    most: int = setting(32, "The most steps that are told.", 1)
    top: int = setting(10, "How many of the likeliest tokens of each step.", 1)
    sampling: SamplingOptions = setting(SamplingOptions, "How tokens are drawn.")

    def check(self, tokenizer: Tokenizer) -> None:
        """Raises InputError."""
        if not all(0 <= token < tokenizer.size for token in self.chosen):
            raise InputError("tokens that the model does not have", fix=f"they are 0 to {tokenizer.size - 1:,}")
        if not 1 <= self.most <= MOST_STEPS or not 1 <= self.top <= 100:
            raise InputError(
                f"{self.most} steps with {self.top} tokens", fix=f"ask for 1 to {MOST_STEPS}, and 1 to 100"
            )
        if not 0 <= self.first <= len(self.chosen) <= MOST_TOKENS:
            raise InputError(
                f"step {self.first} after {len(self.chosen)} tokens", fix="ask for one of them, or the next"
            )


def steps_of(
    logits: Float[Tensor, "T V"],
    said: Sequence[int],
    tokenizer: Tokenizer,
    options: StepsOptions,
    *,
    before: Sequence[int] = (),
    forbidden: tuple[int, ...] = (),
) -> list[DecodingStep]:
    """The steps of a text whose token `said[t]` was chosen by `logits[t]`, after the tokens `before`."""
    chances = logits.float().log_softmax(-1)
    shaped = _shaped(logits.float(), Sampling(**options.sampling), forbidden)
    spoken = chances[range(len(said)), list(said)].cumsum(0).tolist()
    entropies = -(chances.exp() * chances.clamp(min=-1e4)).sum(-1) / math.log(2)
    shown = labelled_pieces(tokenizer, [*before, *said])[len(before) :]  # of bytes with the character that they begin
    made = []
    for t in range(options.first, min(len(said), options.first + options.most)):
        past = [*before, *said[:t]]

        def candidate(token: int, t: int = t, past: list[int] = past) -> TokenCandidate:
            return {
                "token": token,
                "piece": shown[t] if token == said[t] else labelled_pieces(tokenizer, [*past[-1:], token])[-1],
                "text": tokenizer.decode_after(past, [token]),
                "before": float(chances[t, token].exp()),
                "after": float(shaped[t, token]),
            }

        likeliest = chances[t].topk(min(options.top, chances.shape[1])).indices.tolist()
        made.append(
            DecodingStep(
                top=[candidate(token) for token in likeliest],
                said=candidate(said[t]),
                entropy=float(entropies[t]),
                total=spoken[t],
            )
        )
    return made


def _shaped(logits: Float[Tensor, "T V"], sampling: Sampling, forbidden: tuple[int, ...]) -> Float[Tensor, "T V"]:
    """The probabilities after the sampling filters."""
    nothing = torch.empty(len(logits), 0, dtype=torch.long)
    scores = Forbid(forbidden)(nothing, logits.clone())
    filters = sampling_filters(sampling)
    if filters is None:
        return torch.zeros_like(scores).scatter_(1, scores.argmax(-1, keepdim=True), 1.0)
    for rule in filters:
        scores = rule(nothing, scores)
    return scores.softmax(-1)
