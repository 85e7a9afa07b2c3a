"""A model that can only generate linearised trees: brackets that close in order, around all leaves of a sentence.

It has the methods of the model that it wraps, so that every search can use it. A state for each row, which moves with
the row, determines what may come next.

Sizes: B sentences, R rows, V vocabulary, N labels, D the deepest that brackets may stand within each other.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.decode.contract import Generator, State
from heedful.decode.rules import NEVER


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Tokens of linearised trees: a leaf, the end, N opening brackets from `opening`, and as many closing ones from
    `opening` + N in the same order. No more than `run` brackets open between two leaves."""

    leaf: int
    eos: int
    opening: int
    labels: int
    run: int

    @property
    def closing(self) -> int:
        return self.opening + self.labels


class BracketState(NamedTuple):
    """The position of each row in its tree."""

    left: Int[Tensor, "R"]  # leaves to come
    room: Int[Tensor, "R"]  # tokens that may come, the end too
    run: Int[Tensor, "R"]  # brackets that opened since the last leaf
    fresh: Bool[Tensor, "R"]  # whether a bracket has just opened, so that nothing is in it
    depth: Int[Tensor, "R"]  # open brackets
    open: Int[Tensor, "R D"]  # which they are, the outermost first

    def pick(self, rows: Int[Tensor, "K"]) -> "BracketState":
        return BracketState(*(part.index_select(0, rows) for part in self))

    def after(self, tokens: Int[Tensor, "R"], grammar: Grammar) -> "BracketState":
        opens = (tokens >= grammar.opening) & (tokens < grammar.closing)
        closes = (tokens >= grammar.closing) & (tokens < grammar.closing + grammar.labels)
        leaf = tokens == grammar.leaf
        place = self.depth.clamp(max=self.open.shape[1] - 1)[:, None]
        label = torch.where(opens[:, None], tokens[:, None] - grammar.opening, self.open.gather(1, place))
        return BracketState(
            left=self.left - leaf.long(),
            room=self.room - 1,
            run=(self.run + opens.long()).masked_fill(leaf, 0),
            fresh=opens,
            depth=(self.depth + opens.long() - closes.long()).clamp(min=0),
            open=self.open.scatter(1, place, label),
        )

    def allowed(self, grammar: Grammar, size: int) -> Bool[Tensor, "R V"]:
        """A leaf or a bracket while leaves are left; no bracket closes empty, and the outermost around all leaves."""
        inside, more = self.depth > 0, self.left > 0
        innermost = self.open.gather(1, (self.depth - 1).clamp(min=0)[:, None])
        # The bracket and the end of it, the leaves, what is open, and the end must fit.
        fits = self.room >= self.left + self.depth + 3
        found = torch.zeros(len(self.left), size, dtype=torch.bool, device=self.left.device)
        found[:, grammar.opening : grammar.closing] = (more & (self.run < grammar.run) & fits)[:, None]
        found[:, grammar.leaf] = more & inside
        found[:, grammar.eos] = ~more & ~inside
        closable = inside & ~self.fresh & ((self.depth > 1) | ~more)
        return found.scatter(1, innermost + grammar.closing, closable[:, None])


class TreeState(NamedTuple):
    inner: State
    brackets: BracketState

    def pick(self, rows: Int[Tensor, "K"]) -> "TreeState":
        return TreeState(self.inner.pick(rows), self.brackets.pick(rows))


class Bracketed:
    """`model`, for a batch of sentences that have so many `leaves`, and trees of at most `longest` tokens, the end
    counted: at least three more than leaves. The probability of what cannot come is shared out: that of all trees of a
    sentence within these bounds is one."""

    def __init__(
        self,
        model: Generator[Any],
        grammar: Grammar,
        *,
        leaves: Int[Tensor, "B"],
        longest: Int[Tensor, "B"],
    ) -> None:
        self.model, self.grammar, self.leaves, self.longest = model, grammar, leaves, longest

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> TreeState:
        none = torch.zeros_like(self.leaves)
        deepest = int(self.longest.max()) // 2
        brackets = BracketState(
            left=self.leaves,
            room=self.longest + 1,  # the begin token takes one
            run=none,
            fresh=none.bool(),
            depth=none,
            open=none[:, None].repeat(1, deepest),
        )
        return TreeState(self.model.start(source, segments), brackets)

    def step(self, tokens: Int[Tensor, "R"], state: TreeState) -> tuple[Float[Tensor, "R V"], TreeState]:
        logits, inner = self.model.step(tokens, state.inner)
        brackets = state.brackets.after(tokens, self.grammar)
        allowed = brackets.allowed(self.grammar, logits.shape[1])
        # A row that a beam drags along, dead, may have gone where nothing is allowed: it keeps its logits.
        allowed |= ~allowed.any(1, keepdim=True)
        return logits.masked_fill(~allowed, NEVER), TreeState(inner, brackets)
