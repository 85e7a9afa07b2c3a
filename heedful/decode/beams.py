"""The loop of beam search, for every way of choosing the hypotheses that continue.

Sizes: B sentences, S source length, n sentences still running, w rows of each, R rows in all, V vocabulary, C
candidates of a sentence, W of them that live on.
"""

from collections.abc import Callable
from typing import NamedTuple, Unpack

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.decode.candidates import Candidates
from heedful.decode.contract import Generator, Hypothesis, SearchOptions, StateType
from heedful.decode.rows import Rows, RowTokens, refuse_nan, start_search
from heedful.decode.rules import NEVER
from heedful.errors import InputError

Choose = Callable[[Tensor, Tensor, Tensor, StateType], Candidates]


@torch.inference_mode()
def beam_by(
    choose: Choose[StateType],
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None,
    *,
    beam: int,
    n_best: int = 1,
    patience: float = 1.0,
    early_stopping: Bool[Tensor, "B"] | bool = True,
    finished_first: bool = True,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """`search.beam`, where `choose` decides at each step which hypotheses continue and which are finished: it gets the
    scores of each row and their normalisers, the sums of n sentences, and the state. `early_stopping`: for all
    sentences, or for each. Unfinished hypotheses at the limit come after the finished ones, or (without
    `finished_first`) by their score."""
    if not (1 <= n_best <= beam and patience > 0):
        what = f"beam {beam}, n_best {n_best} and patience {patience} do not go together"
        raise InputError(what, fix="keep 1 <= n_best <= beam and patience above 0")
    search = start_search(source, options)
    rows, tokens, scale = search.rows, search.tokens, search.scale
    B, width, device = len(source), 1, source.device
    forced = min(rows.given.tolist(), default=0)
    found = _Results(B, n_best, scale, finished_first)
    early = None if early_stopping is True else torch.as_tensor(early_stopping, device=device).expand(B)
    stopping = _Stopping(scale, search.length_penalty > 0, patience * beam, early)
    finished, count = torch.full((B, n_best), NEVER, device=device), torch.zeros(B, device=device)
    total, said = torch.zeros(B, 1, device=device), RowTokens.nothing(B, search.steps, device)
    state = model.start(source, segments)
    for t in range(search.steps):
        logits, state = model.step(tokens, state)
        scores, normaliser = search.scores(logits, said.tokens[:, :t], rows)
        made = choose(scores, normaliser, total, state)
        # only one is possible as long as every sentence has a forced token
        made = made._replace(live=made.live[:, : 1 if t < forced else beam])
        before, total = total, made.score.masked_fill(made.end, NEVER).gather(1, made.live)
        closed = (made.score * scale[t + 1]).masked_fill_(~made.closing, NEVER)
        finished, count = torch.cat((finished, closed), dim=1).topk(n_best).values, count + made.closing.sum(1)
        over = stopping.over(t, rows, total.amax(1), finished[:, -1], count)
        origin, token, value = (part.gather(1, made.live) for part in (made.parent, made.token, made.value))
        if torch.cat((made.closing, over[:, None]), dim=1).any():  # waits for the device
            refuse_nan(made.score)
            index = rows.result.tolist()
            whole = said.followed(t, made.parent.flatten(), made.token.flatten(), made.value.flatten())
            found.add(index, whole, made.score, made.closing, finished=True)
            left = over if finished_first else over & (rows.limit == t + 1)
            standing = torch.zeros_like(made.end).scatter_(1, made.live, total > NEVER) & made.standing
            found.add(index, whole, made.score, standing & left[:, None], finished=False)
            for place in over.nonzero().flatten().tolist():
                found.close(index[place], said.of(slice(place * width, (place + 1) * width), t), before[place])
            keep = (~over).nonzero().squeeze(1)
            if not len(keep):
                break
            rows, finished, count, total = rows.pick(keep), finished[keep], count[keep], total[keep]
            origin, token, value = origin[keep], token[keep], value[keep]

        width, tokens = origin.shape[1], token.flatten()
        state, said = state.pick(origin.flatten()), said.pick(origin.flatten())
        said.add(t, tokens, value.flatten())
    return found.lists


class _Stopping(NamedTuple):
    """When a sentence is over. `longer`: whether a sum is worth the more, the more tokens it is of; `enough`: how many
    finished hypotheses end a sentence that stops early; `early`: which of all do (None: each)."""

    scale: Float[Tensor, "U"]
    longer: bool
    enough: float
    early: Bool[Tensor, "B"] | None

    def over(
        self, t: int, rows: Rows, best: Float[Tensor, "n"], worst: Float[Tensor, "n"], count: Float[Tensor, "n"]
    ) -> Bool[Tensor, "n"]:
        """After step t: `best` is the sum of the best that lives on, `worst` the score of the worst that is kept of
        those that are finished, and `count` how many these are."""
        reach = best * (self.scale[rows.limit] if self.longer else self.scale[t + 2])
        enough = count >= self.enough
        if self.early is not None:
            enough = torch.where(self.early[rows.result], enough, worst >= best * self.scale[t + 1])
        return (worst >= reach) | enough | (rows.limit == t + 1) | ~(best > NEVER)


class _Results:
    """The hypotheses of each sentence, how many of them are asked for, and which come first."""

    def __init__(self, sentences: int, n_best: int, scale: Float[Tensor, "U"], finished_first: bool) -> None:
        self.lists: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.n_best, self.scale, self.finished_first = n_best, scale, finished_first

    def add(
        self,
        index: list[int],
        said: RowTokens,
        score: Float[Tensor, "n C"],
        which: Bool[Tensor, "n C"],
        *,
        finished: bool,
    ) -> None:
        """Those candidates of the sentences `index`; `said` has a row for each candidate."""
        flat = which.flatten()
        told = RowTokens(said.tokens[flat], said.chances[flat]).hypotheses(score[which], self.scale, finished=finished)
        for (place, _), hypothesis in zip(which.nonzero().tolist(), told, strict=True):
            self.lists[index[place]].append(hypothesis)

    def close(self, sentence: int, said: RowTokens, total: Float[Tensor, "w"]) -> None:
        """Keeps the best of a sentence that is over, of what ends by several tokens the likeliest; if the rules left no
        token, what stood before this step."""
        found = self.lists[sentence]
        if not found:
            found = said.hypotheses(total, self.scale, finished=False)
            found = [hypothesis for hypothesis in found if hypothesis.score > NEVER]
        found = sorted(found, key=lambda one: (self.finished_first and not one.finished, -one.score))
        different: dict[object, Hypothesis] = {}
        for hypothesis in found:
            different.setdefault((hypothesis.tokens, hypothesis.finished), hypothesis)
        self.lists[sentence] = [*different.values()][: self.n_best]
