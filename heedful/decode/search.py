"""Greedy search, beam search and sampling for every model that can take one step, Transformer or RNN.

Scores: the log-probability of a token is its logit after the rules, minus the log-sum-exp of the logits
before them, in float32: what the rules forbid is taken away and not shared out, so that scores stay
comparable. A hypothesis is ranked by its sum over all tokens and the end token / length ** length_penalty,
the end token counted (the form of Hugging Face; 0 is the plain sum, more prefers longer ones). Of equally
probable tokens the lower id goes first.

Batches: sentences leave the batch as they end, and what a sentence gets does not depend on its neighbours.
The rows of a sentence stay side by side, in a beam equally many for each sentence, and `pick` never gives a
row to another sentence: a state may share among them whatever depends on the source alone.

Sizes: B sentences, S source length, R rows (running sentences times beams or samples), V vocabulary, n sentences
still running, w rows of each.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.beams import beam_by
from heedful.decode.candidates import Candidates, among, candidates, chosen_plainly, ends_of
from heedful.decode.contract import Generator, Hypothesis, SearchOptions, StateType
from heedful.decode.draws import draw, penalties, sampling_filters
from heedful.decode.rows import RowTokens, SearchStart, refuse_nan, start_search
from heedful.decode.rules import NEVER, top
from heedful.decode.settings import DEFAULT_SAMPLING, Sampling
from heedful.errors import InputError


@torch.inference_mode()
def greedy(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    **options: Unpack[SearchOptions],
) -> list[Hypothesis]:
    """The most probable next token, again and again: one hypothesis a sentence. It stops, unfinished, where the rules
    leave no token.

    Raises InputError for options that cannot be met, NonFiniteError for logits that are NaN or +inf.
    """

    def best(scores: Float[Tensor, "R V"], t: int, index: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        return scores.argmax(-1)  # promises the first of equals

    return _run(model, model.start(source, segments), start_search(source, options), best)


@torch.inference_mode()
def sample(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    sampling: Sampling = DEFAULT_SAMPLING,
    seeds: Sequence[int] | None = None,
    samples: int = 1,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """Draw every next token at random, as `sampling` says: `samples` hypotheses a sentence, in the order drawn.

    The repetition penalty comes after the other rules. The filters act on the logits after all rules, in the order
    temperature, top_k, top_p, min_p, and shape the draw alone: scores are those that `greedy` would give. Temperature 0
    is greedy search. Each sample has its own stream of random numbers, keyed by the seed, the sentence's place in the
    batch and the sample's number; with `seeds`, one for each sentence in place of `sampling.seed`, the place does not
    count: it draws the same in any batch. The errors are those of `greedy`.
    """
    B, device = len(source), source.device
    if samples < 1:
        raise InputError(f"{samples} samples asked for", fix="ask for 1 or more")
    if seeds is not None and len(seeds) != B:
        raise InputError(f"{len(seeds)} seeds for {B} sentences", fix="give one for each sentence, or none")
    search = start_search(source, {**options, "rules": (*options.get("rules", ()), *penalties(sampling))})
    filters = sampling_filters(sampling)
    keys = [(sampling.seed, i) for i in range(B)] if seeds is None else [(own, 0) for own in seeds]
    streams = [random.Random(f"{own} {place} {copy}") for own, place in keys for copy in range(samples)]
    uniform = torch.tensor([[stream.random() for _ in range(search.steps)] for stream in streams]).to(device)

    def choose(scores: Float[Tensor, "R V"], t: int, index: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
        return draw(scores, filters, uniform[:, t].index_select(0, index))

    state = model.start(source, segments)
    if samples > 1:
        copies = torch.arange(B, device=device).repeat_interleave(samples)
        rows = search.rows.pick(copies)._replace(result=torch.arange(len(copies), device=device))
        state, search = state.pick(copies), replace(search, rows=rows, tokens=search.tokens.index_select(0, copies))
    drawn = _run(model, state, search, choose)
    return [drawn[i : i + samples] for i in range(0, len(drawn), samples)]


@torch.inference_mode()
def beam(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    beam: int,
    n_best: int = 1,
    patience: float = 1.0,
    early_stopping: bool = True,
    finished_first: bool | None = None,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """Keep the `beam` best beginnings: up to `n_best` different hypotheses a sentence, best first.

    Each step takes the 2 * beam best continuations (more where there are several end tokens): an end token among
    the first `beam` of them finishes a hypothesis, and the `beam` best others live on. A sentence is over when
    patience * beam hypotheses are finished (Kasai et al. 2022; math.inf: never), at its limit, or as soon as no
    live one can come among its `n_best` any more: a sum only falls, so no score rises above the live sum over the
    length that suits it best. This bound changes no result, unless a rule raises a logit above the log-sum-exp.
    Without `early_stopping`, and then whatever the patience, a sentence is over when no live one, as it stands, is
    better than the worst of the `beam` best that are finished (as Hugging Face's default is).
    Unfinished hypotheses follow where fewer than `n_best` are finished; those of the limit come where their scores put
    them (Hugging Face's again) without `finished_first`, which is as `early_stopping` unless it is given. Beam 1 is
    greedy search.
    The errors are those of `greedy`.
    """
    ends = ends_of(options["eos"])
    wide = (1 + len(ends)) * beam

    def choose(
        scores: Float[Tensor, "R V"], normaliser: Float[Tensor, "R"], total: Float[Tensor, "n w"], state: StateType
    ) -> Candidates:
        value, token = top(scores, wide)
        made = candidates(value - normaliser[:, None], token, total, ends=ends, size=wide)
        return chosen_plainly(made, beam)

    kept = n_best if early_stopping else max(n_best, beam)
    found = beam_by(
        choose,
        model,
        source,
        segments,
        beam=beam,
        n_best=kept,
        patience=patience,
        early_stopping=early_stopping,
        finished_first=early_stopping if finished_first is None else finished_first,
        **options,
    )
    return [own[:n_best] for own in found]


def _run(
    model: Generator[StateType], state: StateType, search: SearchStart, choose: Callable[[Tensor, int, Tensor], Tensor]
) -> list[Hypothesis]:
    """One hypothesis a row; `choose` takes the next tokens, from their scores, the step and the rows' index."""
    rows, tokens, scale = search.rows, search.tokens, search.scale
    R, device = len(rows.result), rows.result.device
    results: dict[int, Hypothesis] = {}
    total, said = torch.zeros(R, device=device), RowTokens.nothing(R, search.steps, device)
    for t in range(search.steps):
        logits, state = model.step(tokens, state)
        scores, normaliser = search.scores(logits, said.tokens[:, :t], rows)
        tokens = choose(scores, t, rows.result)
        value = scores.gather(1, tokens[:, None]).squeeze(1) - normaliser
        before, total = total, total + value
        said.add(t, tokens, value)
        end, stuck = among(tokens, search.ends), ~(value > NEVER)
        over = end | stuck | (rows.limit == t + 1)
        if over.any():  # waits for the device
            refuse_nan(value)
            left = (stuck, t, before, False), (end & ~stuck, t + 1, total, True)
            for which, length, sums, finished in (*left, (over & ~end & ~stuck, t + 1, total, False)):
                made = said.of(which, length).hypotheses(sums[which], scale, finished=finished)
                results.update(zip(rows.result[which].tolist(), made, strict=True))
            keep = (~over).nonzero().squeeze(1)
            if not len(keep):
                break
            state, rows, said = state.pick(keep), rows.pick(keep), said.pick(keep)
            tokens, total = tokens[keep], total[keep]
    return [results[i] for i in range(R)]
