"""The likelihood of texts, and of continuations of a text, under a language model."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.batches import by_length, pad
from heedful.data.tokenizer import Ids
from heedful.decode.forced import log_probabilities
from heedful.errors import InputError
from heedful.metrics.nats import Nats, perplexity
from heedful.models.lm import LM

SCORED = 16384  # tokens that are scored at a time


@dataclass(frozen=True)
class Likelihood(Nats):
    """The likelihood of texts, with their bytes and words."""

    bytes: int
    words: int

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / max(1, self.bytes)

    @property
    def word_perplexity(self) -> float:
        """The perplexity per word: words are separated by spaces, and ends of lines count as words (as WikiText is
        scored)."""
        return perplexity(self.nats / max(1, self.words))


class Choice(NamedTuple):
    """A continuation of a context: the log-probability (nats) of its tokens, and their number."""

    choice: str
    logprob: float
    tokens: int


class ChoicePrompt(NamedTuple):
    """What is read once for all choices, the rest of each choice, and how many tokens at its end belong to the
    choice."""

    past: Ids
    continuations: list[Ids]
    counts: list[int]

    @property
    def tokens(self) -> int:
        return len(self.past) + sum(map(len, self.continuations))

    def parts(self) -> Iterator["ChoicePrompt"]:
        """The same in parts, of as many choices as are scored at a time."""
        most = max(1, SCORED // (len(self.past) + max(map(len, self.continuations), default=0)))
        for i in range(0, max(1, len(self.continuations)), most):
            yield self._replace(continuations=self.continuations[i : i + most], counts=self.counts[i : i + most])


def asked_of(choices: Sequence[str], alone: Ids, whole: Sequence[Ids], *, bos: int, most: int) -> ChoicePrompt:
    """Splits the tokens of choices into the part that they share and the rest. `alone` is the context, `whole` the
    context with each choice appended; a model reads at most `most` tokens. Raises InputError for a choice that adds no
    token, or that is longer than `most`."""
    alike = [begun_alike(alone, ids) for ids in whole]
    for choice, ids, shared in zip(choices, whole, alike, strict=True):
        if shared == len(ids):
            raise InputError(f"the choice {choice!r} adds no token to its context", fix="give text to choose")
    border = min(alike, default=len(alone))
    rest = [ids[border:] for ids in whole]
    longest = max(map(len, rest), default=0)
    if longest > most:
        what = f"a choice of {longest} tokens does not fit the model's context of {most}"
        raise InputError(what, fix="give shorter choices")
    past = [bos, *alone[:border]][longest - most - 1 :]  # the last token is only scored
    return ChoicePrompt(past, rest, [len(ids) - shared for ids, shared in zip(whole, alike, strict=True)])


def weighed(model: LM, asked: Sequence[ChoicePrompt]) -> list[list[float]]:
    """The log-probability (nats) of each choice. A context is read once for all its choices, in a batch with contexts
    of similar length."""
    device = model.embed.tokens.weight.device
    parts = [part for one in asked for part in one.parts()]
    width = max((len(one.continuations) for one in parts), default=1)
    scored: list[list[float]] = [[] for _ in parts]
    for group in by_length([one.past for one in parts], SCORED // max(1, width)):
        source, segments = (part.to(device) for part in pad([parts[i].past[:-1] for i in group], after=()))
        found = log_probabilities(
            model,
            source,
            segments,
            bos=torch.tensor([parts[i].past[-1] for i in group], device=device),
            continuations=[parts[i].continuations for i in group],
        )
        for i, each in zip(group, found, strict=True):
            scored[i] = [sum(logprobs[-own:]) for logprobs, own in zip(each, parts[i].counts, strict=True)]
    every = iter(logprob for own in scored for logprob in own)
    return [[next(every) for _ in one.counts] for one in asked]


def nats_of(model: LM, ids: Sequence[int], stride: int | None = None) -> Float[Tensor, "T"]:
    """The negative log-probability of each of T + 1 tokens but the first, given the tokens before it in a window as
    long as the model's context; the window moves by `stride` tokens (None: half of it). Raises InputError."""
    context, device, count = model.config.embed.context_length, model.embed.tokens.weight.device, len(ids) - 1
    step = max(1, context // 2) if stride is None else stride
    if not 1 <= step <= context:
        raise InputError(f"a stride of {step} is not between 1 and the context, {context}")
    whole = torch.tensor(ids, device=device)
    found = torch.empty(count, device=device)
    ends = [min(context, count)] if count else []
    while ends and ends[-1] < count:
        ends.append(min(ends[-1] + step, count))
    spans = [(max(0, end - context), 0 if i == 0 else ends[i - 1], end) for i, end in enumerate(ends)]
    like = max(1, SCORED // context)
    for group in (spans[i : i + like] for i in range(0, len(spans), like)):  # all windows are equally long
        rows = torch.stack([whole[begin : end + 1] for begin, _, end in group])
        logits = model(rows[:, :-1]).float()
        nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), rows[:, 1:], reduction="none")
        for (begin, fresh, end), row in zip(group, nats, strict=True):
            found[fresh:end] = row[fresh - begin :]
    return found


def begun_alike(one: Ids, other: Ids) -> int:
    """The number of tokens at the beginning that both have in common."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
