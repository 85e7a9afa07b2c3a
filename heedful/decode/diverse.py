"""Diverse beam search (Vijayakumar et al. 2018): a beam in groups, each led away from what the others are saying.

Each group is a beam search of its own. At each step the groups take turns, and a token costs a group `diversity` nats
for each time that a group before it has just chosen it (their Hamming diversity). That decides what lives on, and
nothing else: scores are the model's own.

Sizes: B sentences, G groups, n groups of sentences still running, w rows of each, R rows in all, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Generic, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.beams import beam_by
from heedful.decode.candidates import Candidates, candidates, chosen_plainly, ends_of
from heedful.decode.contract import Generator, Hypothesis, SearchOptions, StateType
from heedful.decode.rows import limits_of
from heedful.decode.rules import NEVER, top
from heedful.errors import InputError


@torch.inference_mode()
def diverse_beam(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    beam: int,
    groups: int,
    diversity: float = 0.5,
    n_best: int = 1,
    early_stopping: bool = True,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """The `n_best` different hypotheses of all groups of each sentence, the best first. Of one group it is `beam`. The
    other arguments and the errors are those of `search.beam`; raises InputError too for a beam that is not cut
    into groups of one size, and a diversity below 0."""
    if groups < 1 or beam % groups:
        raise InputError(f"a beam of {beam} in {groups} groups", fix="take groups of one size: beam 6, groups 3")
    if not 0 <= diversity < math.inf:
        raise InputError(f"diversity {diversity} nats", fix="give 0 or more, such as 0.5")
    width, each = beam // groups, torch.arange(len(source), device=source.device).repeat_interleave(groups)
    grouped = _Grouped(model, groups, width, diversity, ends_of(options["eos"]))
    bos, limits, prefix = options["bos"], limits_of(options["longest"], len(source)), options.get("prefix")
    own: SearchOptions = {
        **options,
        "bos": bos if isinstance(bos, int) else bos[each],
        "longest": [limits[i] for i in each.tolist()],
        "prefix": None if prefix is None else [prefix[i] for i in each.tolist()],
    }
    found = beam_by(
        grouped.choose,
        grouped,
        source[each],
        None if segments is None else segments[each],
        beam=width,
        n_best=min(n_best, width) if early_stopping else width,
        early_stopping=early_stopping,
        finished_first=early_stopping,
        **own,
    )
    made = []
    for first in range(0, len(found), groups):
        listed = [one for group in found[first : first + groups] for one in group]
        different = {one.tokens: one for one in reversed(listed)}.values()
        made.append(sorted(different, key=lambda one: (early_stopping and not one.finished, -one.score))[:n_best])
    return made


@dataclass(frozen=True)
class _State(Generic[StateType]):
    inner: StateType
    owner: Int[Tensor, "R"]  # of each row: the sentence times G, and its group

    def pick(self, rows: Int[Tensor, "K"]) -> "_State[StateType]":
        return _State(self.inner.pick(rows), self.owner[rows])


@dataclass(frozen=True)
class _Grouped(Generic[StateType]):
    """A model whose sources come once for each group, and are read once."""

    model: Generator[StateType]
    groups: int
    width: int  # of a group
    diversity: float
    ends: tuple[int, ...]

    def start(self, source: Int[Tensor, "N S"], segments: Int[Tensor, "N S"] | None) -> _State[StateType]:
        owner, once = torch.arange(len(source), device=source.device), slice(None, None, self.groups)
        inner = self.model.start(source[once], None if segments is None else segments[once])
        return _State(inner.pick(owner // self.groups), owner)

    def step(
        self, tokens: Int[Tensor, "R"], state: _State[StateType]
    ) -> tuple[Float[Tensor, "R V"], _State[StateType]]:
        logits, inner = self.model.step(tokens, state.inner)
        return logits, _State(inner, state.owner)

    def choose(
        self,
        scores: Float[Tensor, "R V"],
        normaliser: Float[Tensor, "R"],
        total: Float[Tensor, "n w"],
        state: _State[StateType],
    ) -> Candidates:
        n, w = total.shape
        rows, owner = torch.arange(len(scores), device=scores.device).view(n, w), state.owner.view(n, w)[:, 0]
        sentence, wide = owner // self.groups, (1 + len(self.ends)) * self.width
        penalty = scores.new_zeros(int(sentence.max()) + 1, scores.shape[1])
        parts, order = list[Candidates](), list[Tensor]()
        for group in range(self.groups):
            own = (owner % self.groups == group).nonzero()[:, 0]
            if not len(own):
                continue
            lines, cost = rows[own].flatten(), penalty[sentence[own]]
            value, token = top(scores[lines] - cost.repeat_interleave(w, dim=0), wide)
            made = candidates(value - normaliser[lines, None], token, total[own], ends=self.ends, size=wide)
            made = chosen_plainly(made, self.width)
            said = made.token.gather(1, made.live)
            alive = (made.score > NEVER).gather(1, made.live).to(penalty.dtype)
            penalty.index_put_((sentence[own, None].expand_as(said), said), self.diversity * alive, accumulate=True)
            paid = cost.gather(1, made.token)
            parts.append(made._replace(score=made.score + paid, parent=lines[made.parent], value=made.value + paid))
            order.append(own)
        back = torch.cat(order).argsort()
        return Candidates(*(torch.cat(columns)[back] for columns in zip(*parts, strict=True)))
