"""The rows of a search: their sentences, their tokens so far, and the rules on the next token.

Sizes: B sentences, R rows (running sentences times beams or samples), T longest limit, P longest forced prefix,
V vocabulary, t steps taken, U = T + 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.decode.candidates import ends_of
from heedful.decode.contract import Hypothesis, SearchOptions
from heedful.decode.rules import NEVER, Forbid, Rule, Shortest, log_normaliser
from heedful.errors import InputError, NonFiniteError, TooMuchError

Result = TypeVar("Result")


class Rows(NamedTuple):
    """What stays while a row runs: which result it is for, its limit, its forced prefix and that length."""

    result: Int[Tensor, "R"]
    limit: Int[Tensor, "R"]
    prefix: Int[Tensor, "R P"]
    given: Int[Tensor, "R"]

    def pick(self, rows: Int[Tensor, "K"]) -> "Rows":
        return Rows(*(part.index_select(0, rows) for part in self))


class RowTokens(NamedTuple):
    """The tokens of each row and their log-probabilities, with room for those to come."""

    tokens: Int[Tensor, "R L"]
    chances: Float[Tensor, "R L"]

    @classmethod
    def nothing(cls, rows: int, steps: int, device: torch.device) -> "RowTokens":
        return cls(torch.zeros(rows, steps, dtype=torch.int64, device=device), torch.zeros(rows, steps, device=device))

    def pick(self, rows: Int[Tensor, "K"]) -> "RowTokens":
        return RowTokens(self.tokens.index_select(0, rows), self.chances.index_select(0, rows))

    def of(self, rows: Bool[Tensor, "R"] | slice, t: int) -> "RowTokens":
        """The first `t` of some rows."""
        return RowTokens(self.tokens[rows, :t], self.chances[rows, :t])

    def add(self, t: int, tokens: Int[Tensor, "R"], chances: Float[Tensor, "R"]) -> None:
        """In place: what each row says at this step."""
        self.tokens[:, t], self.chances[:, t] = tokens, chances

    def followed(
        self, t: int, rows: Int[Tensor, "K"], tokens: Int[Tensor, "K"], chances: Float[Tensor, "K"]
    ) -> "RowTokens":
        """The first `t` of these rows, and one token more of each."""
        return RowTokens(
            torch.cat((self.tokens[:, :t].index_select(0, rows), tokens[:, None]), dim=1),
            torch.cat((self.chances[:, :t].index_select(0, rows), chances[:, None]), dim=1),
        )

    def hypotheses(self, total: Float[Tensor, "R"], scale: Float[Tensor, "U"], *, finished: bool) -> list[Hypothesis]:
        """One a row, of all its tokens (the last is the end token if `finished`), whose sum is `total`."""
        words = self.tokens[:, :-1] if finished else self.tokens
        columns = (words, total * scale[self.tokens.shape[1]], total, self.chances)
        return [
            Hypothesis(tuple(tokens), score, whole, tuple(each), finished)
            for tokens, score, whole, each in zip(*(column.tolist() for column in columns), strict=True)
        ]


@dataclass(frozen=True)
class SearchStart:
    """A search before its first step: a row for each sentence, what each is given first, and what holds for all.

    `scale` is what a sum over 0, 1, 2, ... tokens is multiplied by: one table, so that bounds round as scores do.
    """

    rows: Rows
    tokens: Int[Tensor, "R"]
    steps: int
    ends: tuple[int, ...]
    rules: tuple[Rule, ...]
    length_penalty: float
    scale: Float[Tensor, "U"]
    renormalise: bool = False
    at_once: int | None = None

    def scores(
        self, logits: Float[Tensor, "R V"], history: Int[Tensor, "R t"], rows: Rows
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R"]]:
        """The logits that the rules leave, or the forced token's alone; and what to subtract for log-probabilities.
        Raises TooMuchError for more tokens than may be kept at once."""
        if self.at_once is not None and history.numel() > self.at_once:
            what = f"{len(history)} hypotheses of {history.shape[1]} tokens, more than {self.at_once:,} tokens at once"
            raise TooMuchError(what, fix="take a narrower beam, or a lower limit")
        scores = logits.float()
        whole = log_normaliser(scores)
        t, width = history.shape[1], len(logits) // len(rows.result)
        if t >= rows.prefix.shape[1]:
            ruled = self._ruled(history, scores)
            return ruled, self._normaliser(ruled, whole)
        token = rows.prefix[:, t, None].repeat_interleave(width, dim=0)
        forced = (rows.given > t)[:, None].repeat_interleave(width, dim=0)
        alone = torch.full_like(scores, NEVER).scatter_(1, token, scores.gather(1, token))
        ruled = self._ruled(history, scores)
        return torch.where(forced, alone, ruled), torch.where(forced[:, 0], whole, self._normaliser(ruled, whole))

    def _normaliser(self, ruled: Float[Tensor, "R V"], whole: Float[Tensor, "R"]) -> Float[Tensor, "R"]:
        """Of what the rules leave, where it is to sum to 1; of all where they leave nothing."""
        if not self.renormalise:
            return whole
        return torch.where(ruled.amax(-1) == NEVER, whole, log_normaliser(ruled))

    def _ruled(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        for rule in self.rules:
            scores = rule(history, scores)
        return scores


def start_search(source: Int[Tensor, "B S"], options: SearchOptions) -> SearchStart:
    """Raises InputError for limits and prefixes that cannot be met."""
    B, device = len(source), source.device
    ends, length_penalty, prefix = ends_of(options["eos"]), options.get("length_penalty", 1.0), options.get("prefix")
    limits = limits_of(options["longest"], B)
    forced = [[] for _ in range(B)] if prefix is None else [list(own) for own in prefix]
    if len(limits) != B or len(forced) != B:
        what = f"{len(limits)} limits and {len(forced)} prefixes for {B} sentences"
        raise InputError(what, fix="give one for each sentence")
    refuse_limits(limits, forced, ends)
    given, steps = [len(own) for own in forced], max(limits, default=0)
    refuse_length_penalty(length_penalty, steps)
    P = max(given, default=0)
    padded = torch.tensor([own + [ends[0]] * (P - len(own)) for own in forced], dtype=torch.int64).view(B, P)
    result, limit, length = (torch.tensor(part, device=device) for part in (range(B), limits, given))
    shortest = (Shortest(options.get("shortest", 0), end) for end in ends)
    return SearchStart(
        rows=Rows(result, limit, padded.to(device), length),
        tokens=torch.as_tensor(options["bos"], device=device).expand(B),
        steps=steps,
        ends=ends,
        rules=(*options.get("rules", ()), Forbid(options.get("forbidden", ())), *shortest),
        length_penalty=length_penalty,
        renormalise=options.get("renormalise", False),
        at_once=options.get("at_once"),
        scale=torch.tensor([max(length, 1) ** -length_penalty for length in range(steps + 2)], device=device),
    )


def in_halves(search: Callable[[Sequence[int]], list[Result]], rows: Sequence[int]) -> list[Result]:
    """What `search` finds for these rows, which are halved where all together have more tokens than may be kept at
    once. Raises TooMuchError where one row has."""
    try:
        return search(rows)
    except TooMuchError:
        if len(rows) == 1:
            raise
    middle = len(rows) // 2
    return [*in_halves(search, rows[:middle]), *in_halves(search, rows[middle:])]


def refuse_length_penalty(length_penalty: float, steps: int) -> None:
    """Raises InputError for one by which scores of so many tokens are no numbers of float32, or all alike."""
    if not abs(length_penalty) * math.log(steps + 1) < 80:  # e^88 is the largest
        what = f"a length penalty of {length_penalty:g} for {steps:,} tokens"
        raise InputError(what, fix="0 compares sums, 1 means; take -2 to 2")


def limits_of(longest: int | Sequence[int] | Int[Tensor, "B"], sentences: int) -> list[int]:
    limits: list[int] = torch.as_tensor(longest).flatten().tolist()
    return limits * sentences if len(limits) == 1 else limits


def refuse_limits(limits: Sequence[int], prefix: Sequence[Sequence[int]], eos: int | Sequence[int]) -> None:
    """Raises InputError for a limit and a forced prefix of a sentence that cannot be met."""
    for i, (limit, own) in enumerate(zip(limits, prefix, strict=True)):
        if limit < max(1, len(own)):
            what = f"a limit of {limit} tokens has no room for a prefix of {len(own)}"
            raise InputError(what, where=f"sentence {i}", fix="raise the limit")
        if not {*ends_of(eos)}.isdisjoint(own):
            raise InputError("the forced prefix has an end token", where=f"sentence {i}", fix="leave it out")


def refuse_nan(scores: Float[Tensor, "..."]) -> None:
    """Raise NonFiniteError if a score is NaN, which logits that are NaN or +inf lead to."""
    if scores.isnan().any():
        raise NonFiniteError("the model's logits are NaN or infinite", fix="take a checkpoint from before that")
