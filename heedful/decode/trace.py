"""What a beam search kept at each step, and what fell out of it: a tree, read off from outside of the search.

    traced = Traced(model)
    found = beam(traced, source, segments, ...)
    nodes = traced.tree(found[0], eos=eos)

Of one sentence. The search is as it is without: the model is asked through this, and each `pick` of its state tells
which beginnings live on.

R rows that live, V tokens in the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.contract import Generator, Hypothesis, StateType


@dataclass
class BeamNode:
    """A token after those of its parent's: `total` is the log-probability (nats) of all. `fate` is "lives" where others
    follow, "fell out" where none of what could follow was kept, "ended", or "unfinished" at the limit; `score` is that
    of a whole hypothesis, and `rank` its place among those that were found, from 0."""

    parent: int | None
    step: int
    token: int
    total: float
    fate: str = "fell out"
    score: float | None = None
    rank: int | None = None


@dataclass(frozen=True)
class _State(Generic[StateType]):
    inner: StateType
    nodes: list[int] | None = None  # of each row; None before the first step
    chances: Float[Tensor, "R V"] | None = None

    def pick(self, rows: Int[Tensor, "R"]) -> "_State[StateType]":
        if self.nodes is None or self.chances is None:
            return _State(self.inner.pick(rows))
        kept = [self.nodes[row] for row in rows.tolist()]
        return _State(self.inner.pick(rows), kept, self.chances.index_select(0, rows))


@dataclass
class Traced(Generic[StateType]):
    """A model that is asked as before, and what was asked of it."""

    model: Generator[StateType]
    nodes: list[BeamNode] = field(default_factory=list)

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> _State[StateType]:
        return _State(self.model.start(source, segments))

    def step(
        self, tokens: Int[Tensor, "R"], state: _State[StateType]
    ) -> tuple[Float[Tensor, "R V"], _State[StateType]]:
        own = [self._add(state, row, token) for row, token in enumerate(tokens.tolist())]
        logits, inner = self.model.step(tokens, state.inner)
        return logits, _State(inner, own, logits.float().log_softmax(-1))

    def _add(self, state: _State[Any], row: int, token: int) -> int:
        parent, total = None, 0.0
        if state.nodes is not None and state.chances is not None:
            parent = state.nodes[row]
            total = self.nodes[parent].total + float(state.chances[row, token])
            self.nodes[parent].fate = "lives"
        step = 0 if parent is None else self.nodes[parent].step + 1
        self.nodes.append(BeamNode(parent, step, token, total))
        return len(self.nodes) - 1

    def tree(self, found: Sequence[Hypothesis], *, eos: int) -> list[BeamNode]:
        """All beginnings, the first the root, with the ends of the hypotheses that were found, the best first."""
        children = {(node.parent, node.token): place for place, node in enumerate(self.nodes)}
        for rank, hypothesis in enumerate(found):
            place = 0
            for token, chance in zip(
                [*hypothesis.tokens, *([eos] if hypothesis.finished else [])],
                hypothesis.token_log_probabilities,
                strict=True,
            ):
                parent = place
                if (parent, token) not in children:
                    before = self.nodes[parent]
                    self.nodes.append(BeamNode(parent, before.step + 1, token, before.total + chance))
                    children[parent, token] = len(self.nodes) - 1
                self.nodes[parent].fate = "lives"
                place = children[parent, token]
            end = self.nodes[place]
            end.fate, end.score, end.rank = "ended" if hypothesis.finished else "unfinished", hypothesis.score, rank
        return self.nodes
