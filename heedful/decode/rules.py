"""Rules on the next token: they change the logits of every row.

A rule gets the tokens generated so far and the logits of the next one, and returns logits; -inf means never. It may
write into the logits that it gets: the search owns them, and a copy for each rule would cost a pass over memory. (The
sampling filters `Temperature`, `TopK`, `TopP` and `MinP` return new ones, as the search still needs the old.)

Sizes: R rows, t tokens so far (without the begin token), V vocabulary, K candidates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError

Rule = Callable[[Int[Tensor, "R t"], Float[Tensor, "R V"]], Float[Tensor, "R V"]]

BLOCK, BIG = 64, 1 << 17  # tokens of a block, and logits from which `top` is faster by blocks
NEVER = -math.inf


@dataclass(frozen=True)
class Forbid:
    """Forbids these tokens."""

    tokens: tuple[int, ...]

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        tokens = torch.tensor(self.tokens, dtype=torch.int64, device=scores.device)
        return scores.index_fill_(1, tokens, NEVER)


@dataclass(frozen=True)
class ForbidAt:
    """Forbids these tokens at this position alone."""

    place: int
    tokens: tuple[int, ...]

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        return Forbid(self.tokens)(history, scores) if history.shape[1] == self.place else scores


@dataclass(frozen=True)
class Certain:
    """Forces this token at this position, at no cost, as if the model were sure of it. Must be the first of the
    rules."""

    place: int
    token: int

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        if history.shape[1] != self.place:
            return scores
        total = log_normaliser(scores)
        return scores.fill_(NEVER).index_copy_(1, torch.tensor([self.token], device=scores.device), total[:, None])


@dataclass(frozen=True)
class Shortest:
    """No end token before `length` tokens."""

    length: int
    eos: int

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        if history.shape[1] < self.length:
            scores[:, self.eos] = NEVER
        return scores


@dataclass(frozen=True)
class NoRepeat:
    """No n-gram of `size` tokens twice in a row of tokens (Paulus et al. 2018, section 2.5, for trigrams)."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"no-repeat n-gram size {self.size} is below 1", fix="leave the rule out for no limit")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        t = history.shape[1]
        if t < self.size:
            return scores
        grams = history.unfold(1, self.size, 1)
        seen = (grams[:, :, :-1] == history[:, None, t - self.size + 1 :]).all(-1)
        ceiling = torch.zeros_like(seen, dtype=scores.dtype).masked_fill_(seen, NEVER).masked_fill_(~seen, math.inf)
        return scores.scatter_reduce_(1, grams[:, :, -1], ceiling, "amin")


@dataclass(frozen=True)
class RepetitionPenalty:
    """Penalises tokens that were already generated, or are `given` in the prompt: positive logits are divided by
    `penalty`, negative ones multiplied. `on_log_probabilities` multiplies log-probabilities, as transformers does in a
    beam search.

    Keskar et al. 2019 (CTRL), section 4.1, with the sign rule of its published code; above 1 discourages.
    """

    penalty: float
    given: tuple[int, ...] = ()
    on_log_probabilities: bool = False

    def __post_init__(self) -> None:
        if not self.penalty >= 1:
            raise InputError(f"repetition penalty {self.penalty} is below 1", fix="1 changes nothing, 1.2 is usual")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        given = torch.tensor(self.given, dtype=history.dtype, device=history.device)
        tokens = torch.cat((given.expand(len(history), -1), history), dim=1)
        seen = scores.gather(1, tokens)
        if self.on_log_probabilities:
            normaliser = scores.logsumexp(-1, keepdim=True)
            return scores.scatter_(1, tokens, normaliser + (seen - normaliser) * self.penalty)
        return scores.scatter_(1, tokens, torch.where(seen > 0, seen / self.penalty, seen * self.penalty))


@dataclass(frozen=True)
class CountPenalty:
    """Penalises tokens that were already generated: subtracts `presence` from their logits, and `frequency` for each
    occurrence, as in OpenAI's protocol. Negative values encourage."""

    presence: float
    frequency: float

    def __post_init__(self) -> None:
        for name, value in (("presence", self.presence), ("frequency", self.frequency)):
            if not math.isfinite(value):
                raise InputError(f"{name} penalty {value} is not a number", fix="0 changes nothing, 0.5 is usual")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        times = torch.zeros_like(scores).scatter_add_(1, history, torch.ones_like(history, dtype=scores.dtype))
        return scores - self.presence * (times > 0) - self.frequency * times


@dataclass(frozen=True)
class Temperature:
    """Logits divided by `value`: below 1 sharpens, above 1 flattens."""

    value: float

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise InputError(f"temperature {self.value} is not a positive number", fix="use 0.7 to 1.3")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        return scores / self.value


@dataclass(frozen=True)
class TopK:
    """Only the `size` most probable tokens (Fan et al. 2018, section 5.4); of equal ones the lower ids."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"top-k {self.size} is below 1", fix="leave it out for no limit")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        values, tokens = top(scores, self.size)
        return torch.full_like(scores, NEVER).scatter_(1, tokens, values)


@dataclass(frozen=True)
class TopP:
    """Only the nucleus: the fewest most probable tokens that together reach `mass` (Holtzman et al. 2020, 3.1)."""

    mass: float

    def __post_init__(self) -> None:
        if not 0 < self.mass <= 1:
            raise InputError(f"top-p {self.mass} is not in (0, 1]", fix="use 0.8 to 0.95")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        probability = scores.softmax(-1)
        for size in (64, 1024, scores.shape[1]):  # the nucleus is mostly small, and sorting all of them slow
            values, tokens = top(scores, size)
            chance = probability.gather(1, tokens)
            before = chance.cumsum(-1) - chance
            if size >= scores.shape[1] or bool((before[:, -1] >= self.mass).all()):
                break
        return torch.full_like(scores, NEVER).scatter_(1, tokens, values.masked_fill(before >= self.mass, NEVER))


@dataclass(frozen=True)
class MinP:
    """Only tokens at least `share` times as probable as the most probable one (Nguyen et al. 2024, section 3)."""

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"min-p {self.share} is not in (0, 1]", fix="use 0.05 to 0.1")

    def __call__(self, history: Int[Tensor, "R t"], scores: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        least = scores.amax(-1, keepdim=True) + math.log(self.share)
        return scores.masked_fill(scores < least, NEVER)


def log_normaliser(scores: Float[Tensor, "R V"]) -> Float[Tensor, "R"]:
    """The log-sum-exp, by the kernel that fuses it: 0.6 of the time of torch.logsumexp on a CPU."""
    return scores.amax(-1) - scores.log_softmax(-1).amax(-1)


def top(scores: Float[Tensor, "R V"], size: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """The `min(size, V)` best scores (float32) of each row and their tokens, best first, of equals the lower id first.

    In a big table it looks only into the `size` blocks of tokens with the best maxima, and at the tokens after the last
    block: each of these blocks has a member that goes before every token of the other blocks.
    """
    V = scores.shape[1]
    size, blocks = min(size, V), V // BLOCK
    tokens = torch.arange(V, device=scores.device).expand(scores.shape)
    if scores.numel() >= BIG and 4 * size * BLOCK < V:
        maxima = scores[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK)).amax(-1)
        chosen = _first(maxima, tokens[:, :blocks], size)[:, :, None] * BLOCK + tokens[:, None, :BLOCK]
        tokens = torch.cat((chosen.flatten(1), tokens[:, blocks * BLOCK :]), dim=1)
        tokens = _first(scores.gather(1, tokens), tokens, size)
    else:
        tokens = _first(scores, tokens, size)
    return scores.gather(1, tokens), tokens


def _first(scores: Float[Tensor, "R V"], numbers: Int[Tensor, "R V"], size: int) -> Int[Tensor, "R K"]:
    """The numbers of the `size` best scores: best first, of equals the lower number first (but for -inf).

    `torch.topk` promises no order among equals, which are rare in float32 and frequent in bfloat16. Where it finds
    some, integers are sorted that hold the score above and the number below.
    """
    values, indices = scores.topk(min(size + 1, scores.shape[1]))
    if ((values[:, 1:] < values[:, :-1]) | (values[:, 1:] == NEVER)).all():
        return numbers.gather(1, indices[:, :size])
    bits = (scores + 0.0).view(torch.int32)  # adding zero turns -0.0 into 0.0
    rising = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()  # negative floats order backwards as integers: turn them
    low = 0xFFFFFFFF
    return low - (((rising << 32) | (low - numbers)).topk(size).values & low)
