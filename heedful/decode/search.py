"""Greedy search, beam search and sampling for every model that can take one step, Transformer or RNN.

Scores: the log-probability of a token is its logit after the rules, minus the log-sum-exp of the logits
before them, in float32: what the rules forbid is taken away and not shared out, so that scores stay
comparable. A hypothesis is ranked by its sum over all tokens and the end token / length ** length_penalty,
the end token counted (the form of Hugging Face; 0 is the plain sum, more prefers longer ones). Of equally
probable tokens the lower id goes first.

Batches: sentences leave the batch as they end, and what a sentence gets does not depend on its neighbours.
The rows of a sentence stay side by side, in a beam equally many for each sentence, and `pick` never gives a
row to another sentence: a state may share among them whatever depends on the source alone.

Sizes: B sentences, S source length, R rows (running sentences times beams or samples), T longest limit,
P longest forced prefix, V vocabulary, C candidates of a sentence, t steps taken.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.candidates import Candidates, among, candidates, ends_of
from heedful.decode.rules import (
    NEVER,
    Forbid,
    MinP,
    RepetitionPenalty,
    Rule,
    Shortest,
    Temperature,
    TopK,
    TopP,
    log_normaliser,
    top,
)
from heedful.decode.settings import DEFAULT_SAMPLING, Sampling
from heedful.errors import InputError, NonFiniteError

StateType = TypeVar("StateType", bound="State")


@runtime_checkable
class State(Protocol):
    """What a model remembers between steps."""

    def pick(self: StateType, rows: Int[Tensor, "R"]) -> StateType:
        """A state whose row i is the old row `rows[i]`: reorders, repeats and drops rows."""


@runtime_checkable
class Generator(Protocol[StateType]):
    """A model that reads a source once and then gives the logits of one token after another."""

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> StateType:
        """Read the source; `segments` is 0 where it is padding."""

    def step(self, tokens: Int[Tensor, "R"], state: StateType) -> tuple[Float[Tensor, "R V"], StateType]:
        """Logits of the next token, given the last `tokens`; the search may overwrite them."""


@dataclass(frozen=True)
class Hypothesis:
    """One result: `tokens` without begin and end; `finished` if it has its end token.

    `token_log_probabilities` has one entry a token, and one more for the end token if finished (none where another
    library searched and did not tell); `log_probability` is their sum, and `score` that sum / length ** length_penalty.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]
    finished: bool


@torch.inference_mode()
def greedy(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    bos: int | Int[Tensor, "B"],
    eos: int | Sequence[int],
    longest: int | Sequence[int] | Int[Tensor, "B"],
    shortest: int = 0,
    forbidden: tuple[int, ...] = (),
    rules: Sequence[Rule] = (),
    prefix: Sequence[Sequence[int]] | None = None,
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """The most probable next token, again and again: one hypothesis a sentence.

    `bos` is what the first step is given, for all sentences or for each: after `start` has read all of a prompt but
    its last token, a language model continues from that. `eos` is the end token, or all that end a sentence.
    `longest` limits the new tokens, the end token counted, for all sentences or for each; `shortest` is how many
    come before the end token; `forbidden` never come; `rules` act after these two. `prefix` has the first tokens of
    each sentence, forced whatever the rules say, and scored as all others. A sentence also stops, unfinished, where
    the rules leave no token.

    Raises InputError for options that cannot be met, NonFiniteError for logits that are NaN or +inf.
    """
    ends = ends_of(eos)
    rows, steps = _rows(source, longest, prefix, ends)
    rules = (*rules, Forbid(forbidden), *(Shortest(shortest, end) for end in ends))

    def best(scores: Float[Tensor, "R V"], t: int, index: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        return scores.argmax(-1)  # promises the first of equals

    return _run(model, model.start(source, segments), rows, steps, bos, ends, rules, length_penalty, best)


@torch.inference_mode()
def sample(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    bos: int | Int[Tensor, "B"],
    eos: int | Sequence[int],
    longest: int | Sequence[int] | Int[Tensor, "B"],
    sampling: Sampling = DEFAULT_SAMPLING,
    seeds: Sequence[int] | None = None,
    samples: int = 1,
    shortest: int = 0,
    forbidden: tuple[int, ...] = (),
    rules: Sequence[Rule] = (),
    prefix: Sequence[Sequence[int]] | None = None,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Draw every next token at random, as `sampling` says: `samples` hypotheses a sentence, in the order drawn.

    The repetition penalty comes after the other rules. The filters act on the logits after all rules, in the order
    temperature, top_k, top_p, min_p, and shape the draw alone: scores are those that `greedy` would give. Temperature 0
    is greedy search. Each sample has its own stream of random numbers, keyed by the seed, the sentence's place in the
    batch and the sample's number; with `seeds`, one for each sentence in place of `sampling.seed`, the place does not
    count: it draws the same in any batch. The other arguments and the errors are those of `greedy`.
    """
    B, device = len(source), source.device
    if samples < 1:
        raise InputError(f"{samples} samples asked for", fix="ask for 1 or more")
    if seeds is not None and len(seeds) != B:
        raise InputError(f"{len(seeds)} seeds for {B} sentences", fix="give one for each sentence, or none")
    ends = ends_of(eos)
    rows, steps = _rows(source, longest, prefix, ends)
    rules = (*rules, *penalties(sampling), Forbid(forbidden), *(Shortest(shortest, end) for end in ends))
    filters = sampling_filters(sampling)
    keys = [(sampling.seed, i) for i in range(B)] if seeds is None else [(own, 0) for own in seeds]
    streams = [random.Random(f"{own} {place} {copy}") for own, place in keys for copy in range(samples)]
    uniform = torch.tensor([[stream.random() for _ in range(steps)] for stream in streams]).to(device)

    def choose(scores: Float[Tensor, "R V"], t: int, index: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        return draw(scores, filters, uniform[:, t].index_select(0, index))

    state = model.start(source, segments)
    if samples > 1:
        copies = torch.arange(B, device=device).repeat_interleave(samples)
        state, rows = state.pick(copies), rows.pick(copies)
        rows = rows._replace(result=torch.arange(len(copies), device=device))
        bos = bos if isinstance(bos, int) else bos.index_select(0, copies)
    drawn = _run(model, state, rows, steps, bos, ends, rules, length_penalty, choose)
    return [drawn[i : i + samples] for i in range(0, len(drawn), samples)]


def penalties(sampling: Sampling) -> tuple[Rule, ...]:
    """What sampling changes of the logits themselves; nothing for what changes nothing."""
    return () if sampling.repetition_penalty == 1 else (RepetitionPenalty(sampling.repetition_penalty),)


def sampling_filters(sampling: Sampling) -> tuple[Rule, ...] | None:
    """What shapes a draw, in this order; nothing for what changes nothing. None where nothing is drawn at random."""
    if sampling.temperature == 0:
        return None
    filters: tuple[Rule, ...] = () if sampling.temperature == 1 else (Temperature(sampling.temperature),)
    filters += () if sampling.top_k == 0 else (TopK(sampling.top_k),)
    filters += () if sampling.top_p == 1 else (TopP(sampling.top_p),)
    return filters if sampling.min_p == 0 else (*filters, MinP(sampling.min_p))


def draw(scores: Float[Tensor, "R V"], filters: Sequence[Rule] | None, uniform: Float[Tensor, "R"]) -> Int[Tensor, "R"]:
    """A token a row by its probability after the filters: where a number in [0, 1) falls among their sums. Without
    filters (None) the most probable."""
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


@torch.inference_mode()
def beam(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    bos: int | Int[Tensor, "B"],
    eos: int | Sequence[int],
    longest: int | Sequence[int] | Int[Tensor, "B"],
    beam: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
    patience: float = 1.0,
    shortest: int = 0,
    forbidden: tuple[int, ...] = (),
    rules: Sequence[Rule] = (),
    prefix: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Keep the `beam` best beginnings: up to `n_best` different hypotheses a sentence, best first.

    Each step takes the 2 * beam best continuations (more where there are several end tokens): an end token among
    the first `beam` of them finishes a hypothesis, and the `beam` best others live on. A sentence is over when
    patience * beam hypotheses are finished (Kasai et al. 2022; math.inf: never), at its limit, or as soon as no
    live one can come among its `n_best` any more: a sum only falls, so no score rises above the live sum over the
    length that suits it best. This bound changes no result, unless a rule raises a logit above the log-sum-exp.
    Unfinished hypotheses follow where fewer than `n_best` are finished. Beam 1 is greedy search.
    The other arguments and the errors are those of `greedy`.
    """

    ends = ends_of(eos)
    wide = (1 + len(ends)) * beam

    def choose(
        scores: Float[Tensor, "R V"], normaliser: Float[Tensor, "R"], total: Float[Tensor, "n w"], state: StateType
    ) -> Candidates:
        value, token = top(scores, wide)
        made = candidates(value - normaliser[:, None], token, total, ends=ends, size=wide)
        closing = made.end & (made.score > NEVER)
        closing[:, beam:] = False
        live = made.end.sort(dim=1, stable=True).indices[:, :beam]  # the others, best first
        return made._replace(closing=closing, live=live)

    return beam_by(
        choose,
        model,
        source,
        segments,
        bos=bos,
        eos=eos,
        longest=longest,
        beam=beam,
        length_penalty=length_penalty,
        n_best=n_best,
        patience=patience,
        shortest=shortest,
        forbidden=forbidden,
        rules=rules,
        prefix=prefix,
    )


Choose = Callable[[Tensor, Tensor, Tensor, StateType], Candidates]


@torch.inference_mode()
def beam_by(
    choose: Choose[StateType],
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None,
    *,
    bos: int | Int[Tensor, "B"],
    eos: int | Sequence[int],
    longest: int | Sequence[int] | Int[Tensor, "B"],
    beam: int,
    length_penalty: float,
    n_best: int,
    patience: float,
    shortest: int,
    forbidden: tuple[int, ...],
    rules: Sequence[Rule],
    prefix: Sequence[Sequence[int]] | None,
) -> list[list[Hypothesis]]:
    """`beam`, where `choose` says at each step what lives on and what is finished: it gets the scores of each row and
    what to subtract for log-probabilities, the sums of n sentences, and the state."""
    if not (1 <= n_best <= beam and patience > 0):
        what = f"beam {beam}, n_best {n_best} and patience {patience} do not go together"
        raise InputError(what, fix="keep 1 <= n_best <= beam and patience above 0")
    ends = ends_of(eos)
    rows, steps = _rows(source, longest, prefix, ends)
    rules = (*rules, Forbid(forbidden), *(Shortest(shortest, end) for end in ends))
    B, width, device = len(source), 1, source.device
    forced, scale = min(rows.given.tolist(), default=0), _scale(steps, length_penalty, device)
    results: list[list[Hypothesis]] = [[] for _ in range(B)]
    finished, count = torch.full((B, n_best), NEVER, device=device), torch.zeros(B, device=device)
    total, tokens = torch.zeros(B, 1, device=device), torch.as_tensor(bos, device=device).expand(B)
    history, spoken = _blank(B, steps, device)
    state = model.start(source, segments)
    for t in range(steps):
        logits, state = model.step(tokens, state)
        scores, normaliser = _scores(logits, history[:, :t], rows, rules)
        made = choose(scores, normaliser, total, state)
        score, parent, value, token, end, closing = made[:6]
        # only one is possible as long as every sentence has a forced token
        live = made.live[:, : 1 if t < forced else beam]
        before, total = total, score.masked_fill(end, NEVER).gather(1, live)
        closed = (score * scale[t + 1]).masked_fill_(~closing, NEVER)
        finished, count = torch.cat((finished, closed), dim=1).topk(n_best).values, count + closing.sum(1)
        first = total.amax(1)
        reach = first * (scale[rows.limit] if length_penalty > 0 else scale[t + 2])
        enough = count >= patience * beam
        if made.counted is not None:
            enough = torch.where(made.counted, enough, finished[:, -1] >= first * scale[t + 1])
        over = (finished[:, -1] >= reach) | enough | (rows.limit == t + 1)
        over |= ~(first > NEVER)

        if torch.cat((closing, over[:, None]), dim=1).any():  # waits for the device
            refuse_nan(score)
            index, origin = rows.result.tolist(), parent.flatten()
            words = torch.cat((history[:, :t].index_select(0, origin), token.view(-1, 1)), dim=1)
            chances = torch.cat((spoken[:, :t].index_select(0, origin), value.view(-1, 1)), dim=1)
            standing = total > NEVER if made.standing is None else (total > NEVER) & made.standing[:, : live.shape[1]]
            left = torch.zeros_like(end).scatter_(1, live, standing) & over[:, None]
            for which in (closing, left):
                flat = which.flatten()
                told = _hypotheses(words[flat], chances[flat], score[which], scale, which is closing)
                for (place, _), hypothesis in zip(which.nonzero().tolist(), told, strict=True):
                    results[index[place]].append(hypothesis)
            for place in over.nonzero().flatten().tolist():
                found, own = results[index[place]], slice(place * width, (place + 1) * width)
                if not found:  # the rules left no token: what stood before this step
                    found = _hypotheses(history[own, :t], spoken[own, :t], before[place], scale, False)
                    found = [hypothesis for hypothesis in found if hypothesis.score > NEVER]
                found = sorted(found, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
                results[index[place]] = found[:n_best]
            keep = (~over).nonzero().squeeze(1)
            if not len(keep):
                break
            rows, finished, count, total = rows.pick(keep), finished[keep], count[keep], total[keep]
            live, parent, token, value = live[keep], parent[keep], token[keep], value[keep]

        width, origin = live.shape[1], parent.gather(1, live).flatten()
        state, tokens = state.pick(origin), token.gather(1, live).flatten()
        history, spoken = history.index_select(0, origin), spoken.index_select(0, origin)
        history[:, t], spoken[:, t] = tokens, value.gather(1, live).flatten()
    return results


class _Rows(NamedTuple):
    """What stays while a row runs: which result it is for, its limit, its forced prefix and that length."""

    result: Int[Tensor, "R"]
    limit: Int[Tensor, "R"]
    prefix: Int[Tensor, "R P"]
    given: Int[Tensor, "R"]

    def pick(self, rows: Int[Tensor, "K"]) -> "_Rows":
        return _Rows(*(part.index_select(0, rows) for part in self))


def _rows(
    source: Int[Tensor, "B S"],
    longest: int | Sequence[int] | Int[Tensor, "B"],
    prefix: Sequence[Sequence[int]] | None,
    ends: Sequence[int],
) -> tuple[_Rows, int]:
    """A row for each sentence, and the longest limit; refuses limits and prefixes that cannot be met."""
    B, device = len(source), source.device
    limits = torch.as_tensor(longest).flatten().tolist()
    limits = limits * B if len(limits) == 1 else limits
    forced = [[] for _ in range(B)] if prefix is None else [list(own) for own in prefix]
    if len(limits) != B or len(forced) != B:
        what = f"{len(limits)} limits and {len(forced)} prefixes for {B} sentences"
        raise InputError(what, fix="give one for each sentence")
    refuse_limits(limits, forced, ends)
    given = [len(own) for own in forced]
    P = max(given, default=0)
    padded = torch.tensor([own + [ends[0]] * (P - len(own)) for own in forced], dtype=torch.int64).view(B, P)
    result, limit, length = (torch.tensor(part, device=device) for part in (range(B), limits, given))
    return _Rows(result, limit, padded.to(device), length), max(limits, default=0)


def refuse_limits(limits: Sequence[int], prefix: Sequence[Sequence[int]], eos: int | Sequence[int]) -> None:
    """Raises InputError for a limit and a forced prefix of a sentence that cannot be met."""
    for i, (limit, own) in enumerate(zip(limits, prefix, strict=True)):
        if limit < max(1, len(own)):
            what = f"a limit of {limit} tokens has no room for a prefix of {len(own)}"
            raise InputError(what, where=f"sentence {i}", fix="raise the limit")
        if not {*ends_of(eos)}.isdisjoint(own):
            raise InputError("the forced prefix has an end token", where=f"sentence {i}", fix="leave it out")


def _run(
    model: Generator[StateType],
    state: StateType,
    rows: _Rows,
    steps: int,
    bos: int | Int[Tensor, "B"],
    ends: Sequence[int],
    rules: Sequence[Rule],
    length_penalty: float,
    choose: Callable[[Tensor, int, Tensor], Tensor],
) -> list[Hypothesis]:
    """One hypothesis a row; `choose` takes the next tokens, from their scores, the step and the rows' index."""
    R, device = len(rows.result), rows.result.device
    scale = _scale(steps, length_penalty, device)
    results: dict[int, Hypothesis] = {}
    total, tokens = torch.zeros(R, device=device), torch.as_tensor(bos, device=device).expand(R)
    history, spoken = _blank(R, steps, device)
    for t in range(steps):
        logits, state = model.step(tokens, state)
        scores, normaliser = _scores(logits, history[:, :t], rows, rules)
        tokens = choose(scores, t, rows.result)
        value = scores.gather(1, tokens[:, None]).squeeze(1) - normaliser
        before, total = total, total + value
        history[:, t], spoken[:, t] = tokens, value
        end, stuck = among(tokens, ends), ~(value > NEVER)
        over = end | stuck | (rows.limit == t + 1)
        if over.any():  # waits for the device
            refuse_nan(value)
            left = (stuck, t, before, False), (end & ~stuck, t + 1, total, True)
            for which, length, sums, finished in (*left, (over & ~end & ~stuck, t + 1, total, False)):
                words, chances = history[which, :length], spoken[which, :length]
                made = _hypotheses(words, chances, sums[which], scale, finished)
                results.update(zip(rows.result[which].tolist(), made, strict=True))
            keep = (~over).nonzero().squeeze(1)
            if not len(keep):
                break
            state, rows = state.pick(keep), rows.pick(keep)
            tokens, total, history, spoken = tokens[keep], total[keep], history[keep], spoken[keep]
    return [results[i] for i in range(R)]


def _scores(
    logits: Float[Tensor, "R V"], history: Int[Tensor, "R t"], rows: _Rows, rules: Sequence[Rule]
) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R"]]:
    """The logits that the rules leave, or the forced token's alone; and what to subtract for log-probabilities."""
    t, width = history.shape[1], len(logits) // len(rows.result)
    scores = logits.float()
    normaliser = log_normaliser(scores)
    if t >= rows.prefix.shape[1]:
        for rule in rules:
            scores = rule(history, scores)
        return scores, normaliser
    token = rows.prefix[:, t, None].repeat_interleave(width, dim=0)
    forced = (rows.given > t)[:, None].repeat_interleave(width, dim=0)
    alone = torch.full_like(scores, NEVER).scatter_(1, token, scores.gather(1, token))
    for rule in rules:
        scores = rule(history, scores)
    return torch.where(forced, alone, scores), normaliser


def _hypotheses(
    words: Int[Tensor, "R L"],
    chances: Float[Tensor, "R L"],
    total: Float[Tensor, "R"],
    scale: Float[Tensor, "U"],
    finished: bool,
) -> list[Hypothesis]:
    """A hypothesis a row, from its tokens (the last is the end token if `finished`) and log-probabilities."""
    columns = (words[:, :-1] if finished else words, total * scale[words.shape[1]], total, chances)
    return [
        Hypothesis(tuple(tokens), score, whole, tuple(each), finished)
        for tokens, score, whole, each in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _scale(steps: int, length_penalty: float, device: torch.device) -> Float[Tensor, "U"]:
    """What a sum over 0, 1, 2, ... tokens is multiplied by: one table, so that bounds round as scores do."""
    return torch.tensor([max(length, 1) ** -length_penalty for length in range(steps + 2)], device=device)


def _blank(R: int, steps: int, device: torch.device) -> tuple[Int[Tensor, "R T"], Float[Tensor, "R T"]]:
    """Room for the tokens of each row and for their log-probabilities."""
    return torch.zeros(R, steps, dtype=torch.int64, device=device), torch.zeros(R, steps, device=device)


def refuse_nan(scores: Float[Tensor, "..."]) -> None:
    """Raise NonFiniteError if a score is NaN, which logits that are NaN or +inf lead to."""
    if scores.isnan().any():
        raise NonFiniteError("the model's logits are NaN or infinite", fix="take a checkpoint from before that")
