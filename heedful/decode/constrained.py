"""Beam search for hypotheses that have certain phrases in them: dynamic beam allocation (Post and Vilar 2018), of whole
batches at once (Hu et al. 2019).

A wish is a phrase, or one of several, each a sequence of tokens. An automaton (Aho and Corasick 1975) of a sentence's
phrases tells of each row which wishes are met and how far the next one is. The candidates of a step are each row's best
tokens, and whatever brings it nearer to its wishes. Those that still want equally many tokens are one bank. The best of
the bank that wants the fewest always lives on, so that all is said after as many steps as there are tokens wished for;
the other slots of the beam are dealt out to the banks by turns, the best candidates first. Only what has
all of its wishes may end.

The automaton's place goes with each row in the state of the model, which is asked as any other.

Sizes: B sentences, n of them still running, S source length, R rows, V vocabulary, W wishes of a sentence, N nodes of
an automaton, K classes of tokens: 0 are those in no phrase, the others have one token each.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Unpack

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from heedful.decode.beams import beam_by
from heedful.decode.candidates import Candidates, candidates, ends_of
from heedful.decode.contract import Generator, Hypothesis, SearchOptions, StateType
from heedful.decode.rules import NEVER, top
from heedful.errors import InputError, TooMuchError

Phrase = tuple[int, ...]
NO_TOKEN = -1
EXCLUDED = 1 << 30
LOOKED_AT = 1 << 22  # rows times the tokens of phrases times phrases, at most, where memory is limited


class Wish(NamedTuple):
    """What must be said, `times` times: one of `phrases`. `whole`: a phrase counts where a token follows that begins
    something new, or the end."""

    phrases: tuple[Phrase, ...]
    whole: bool = False
    times: int = 1


def constrained_beam(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    beam: int,
    wishes: Sequence[Sequence[Wish]],
    parting: Bool[Tensor, "_"] | None = None,
    n_best: int = 1,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """`beam` of hypotheses that have all of the `wishes` of their sentence; of a sentence without, the same as `beam`.

    `parting` are the tokens that may follow a phrase that is to be whole, the end token aside; those that it does not
    tell of are none. A hypothesis lacks a wish only where `rules` or the limit left no room for it. The other
    arguments, with one end token, and the errors are those of `beam`; a wish that is empty or holds the end token is
    an InputError too.
    """
    (eos,) = ends_of(options["eos"])
    if len(wishes) != len(source):
        what = f"wishes for {len(wishes)} of {len(source)} sentences"
        raise InputError(what, fix="give a list for each sentence")
    every = [wish.phrases for own in wishes for wish in own]
    if not all(phrases and all(phrase and eos not in phrase for phrase in phrases) for phrases in every):
        raise InputError("a phrase to be said is empty, or has the end token in it", fix="leave it out")
    looked_at = len(source) * beam * max((len(own) * _tokens_in(own) for own in wishes), default=0)
    if options.get("at_once") is not None and looked_at > LOOKED_AT:
        what = f"a beam of {beam} that looks for {max(map(len, wishes)):,} phrases"
        raise TooMuchError(what, fix="ask for fewer, or a narrower beam")
    automata, device = [*map(_automaton, wishes)], source.device
    following: _Following[StateType] = _Following(model, automata, parting, eos=eos, beam=beam, device=device)
    early = following.need.sum(1) == 0
    return beam_by(
        following.choose, following, source, segments, beam=beam, n_best=n_best, early_stopping=early, **options
    )


def _tokens_in(wishes: Sequence[Wish]) -> int:
    return sum(len(phrase) for wish in wishes for phrase in wish.phrases)


@dataclass(frozen=True)
class _Automaton:
    """The phrases of a sentence. Node 0 is the root. `ends` has whether each wish is met by what ends in a node,
    `closes` by that and a token that parts words; `gain` how many tokens of a wish the node has already, counted
    from the end of its shortest phrase, which costs as many tokens, and one that parts words where it is to be whole
    (`cost`)."""

    tokens: list[int]
    goto: list[list[int]]
    ends: list[list[int]]
    closes: list[list[int]]
    gain: list[list[int]]
    need: list[int]
    cost: list[int]


def _automaton(wishes: Sequence[Wish]) -> _Automaton:
    tokens = sorted({token for wish in wishes for phrase in wish.phrases for token in phrase})
    shortest = [min(map(len, wish.phrases)) for wish in wishes]
    children: list[dict[int, int]] = [{}]
    ends, closes, gain = [[0] * len(wishes)], [[0] * len(wishes)], [[0] * len(wishes)]
    for number, wish in enumerate(wishes):
        for phrase in {*wish.phrases}:
            node = 0
            for depth, token in enumerate(phrase, 1):
                if token not in children[node]:
                    children[node][token] = len(children)
                    children.append({})
                    for table in (ends, closes, gain):
                        table.append([0] * len(wishes))
                node = children[node][token]
                gain[node][number] = max(gain[node][number], shortest[number] - len(phrase) + depth)
            if not wish.whole:
                gain[node][number] = 0  # it is met, and another time not begun
            (closes if wish.whole else ends)[node][number] = 1
    goto = [[0] * (1 + len(tokens)) for _ in children]
    suffix, waiting = [0] * len(children), deque([0])  # the longest other node that a node's phrase ends with
    while waiting:
        node = waiting.popleft()
        for place, token in enumerate(tokens, 1):
            child, fallback = children[node].get(token), goto[suffix[node]][place] if node else 0
            goto[node][place] = fallback if child is None else child
            if child is not None:
                suffix[child] = fallback
                ends[child] = [max(pair) for pair in zip(ends[child], ends[fallback], strict=True)]
                closes[child] = [max(pair) for pair in zip(closes[child], closes[fallback], strict=True)]
                gain[child] = [max(pair) for pair in zip(gain[child], gain[fallback], strict=True)]
                waiting.append(child)
    cost = [own + wish.whole for own, wish in zip(shortest, wishes, strict=True)]
    return _Automaton(tokens, goto, ends, closes, gain, [wish.times for wish in wishes], cost)


class _Place(NamedTuple):
    """Where something is: in which sentence, at which node, and how often each wish is met."""

    sentence: Int[Tensor, "*A"]
    node: Int[Tensor, "*A"]
    met: Int[Tensor, "*A W"]

    def pick(self, rows: Int[Tensor, "*K"]) -> "_Place":
        return _Place(self.sentence[rows], self.node[rows], self.met[rows])


@dataclass(frozen=True)
class _Followed(Generic[StateType]):
    inner: StateType
    place: _Place

    def pick(self, rows: Int[Tensor, "K"]) -> "_Followed[StateType]":
        return _Followed(self.inner.pick(rows), self.place.pick(rows))


class _Following(Generic[StateType]):
    """A model whose rows are followed on their ways through the automata of their sentences."""

    def __init__(
        self,
        model: Generator[StateType],
        automata: Sequence[_Automaton],
        parting: Bool[Tensor, "_"] | None,
        *,
        eos: int,
        beam: int,
        device: torch.device,
    ) -> None:
        self.model, self.eos, self.beam = model, eos, beam
        self.parting = None if parting is None else parting.to(device).clone()
        nodes, wished, listed = (
            max([1, *(len(table) for table in tables)])
            for tables in (
                [own.goto for own in automata],
                [own.need for own in automata],
                [own.tokens for own in automata],
            )
        )

        def padded(tables: Sequence[Any], *sizes: int, filler: int = 0) -> Int[Tensor, "B ..."]:
            made = torch.full((len(tables), *sizes), filler)
            for number, table in enumerate(tables):
                own = torch.tensor(table, dtype=torch.int64)
                made[number][tuple(slice(length) for length in own.shape)] = own
            return made.to(device)

        self.tokens = padded([own.tokens for own in automata], listed, filler=NO_TOKEN)
        self.kinds = torch.zeros(len(automata), int(self.tokens.amax()) + 2, dtype=torch.int32, device=device)
        for number, own in enumerate(automata):  # the last column is that of all tokens from there on
            self.kinds[number, own.tokens] = torch.arange(1, 1 + len(own.tokens), dtype=torch.int32, device=device)
        self.goto = padded([own.goto for own in automata], nodes, 1 + listed)
        self.ends = padded([own.ends for own in automata], nodes, wished)
        self.closes = padded([own.closes for own in automata], nodes, wished)
        self.gain = padded([own.gain for own in automata], nodes, wished)
        self.need = padded([own.need for own in automata], wished)
        self.cost = padded([own.cost for own in automata], wished)

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None) -> _Followed[StateType]:
        sentence = torch.arange(len(source), device=source.device)
        place = _Place(sentence, torch.zeros_like(sentence), torch.zeros_like(self.need))
        return _Followed(self.model.start(source, segments), place)

    def step(
        self, tokens: Int[Tensor, "R"], state: _Followed[StateType]
    ) -> tuple[Float[Tensor, "R V"], _Followed[StateType]]:
        logits, inner = self.model.step(tokens, state.inner)
        return logits, _Followed(inner, self.after(state.place, tokens))

    def after(self, place: _Place, tokens: Int[Tensor, "*A"]) -> _Place:
        """Where these tokens lead; what NO_TOKEN leads to means nothing."""
        kind = self.kinds[place.sentence, tokens.clamp(0, self.kinds.shape[1] - 1)]
        node = self.goto[place.sentence, place.node, kind]
        met = place.met + self.ends[place.sentence, node]
        if self.parting is not None:
            apart = self.parting[tokens.clamp(min=0)] | (tokens == self.eos)
            met = met + self.closes[place.sentence, place.node] * apart[..., None]
        return _Place(place.sentence, node, torch.minimum(met, self.need[place.sentence]))

    def wanting(self, place: _Place) -> Int[Tensor, "*A"]:
        """How many tokens are still wished for, at least; what parts a phrase that is to be whole is one of them, as
        hypotheses that put the phrase off would else be as near as those that have said it, and always better."""
        left = self.need[place.sentence] - place.met
        gain = self.gain[place.sentence, place.node] * (left > 0)
        return (left * self.cost[place.sentence]).sum(-1) - gain.amax(-1)

    def choose(
        self,
        scores: Float[Tensor, "R V"],
        normaliser: Float[Tensor, "R"],
        total: Float[Tensor, "n w"],
        state: _Followed[StateType],
    ) -> Candidates:
        if self.parting is not None and len(self.parting) < scores.shape[1]:
            self.parting = pad(self.parting, (0, scores.shape[1] - len(self.parting)))
        value, token = top(scores, 2 * self.beam)
        nearer = self._nearer(scores, state.place, token)
        more = scores.gather(1, nearer.clamp(min=0)).masked_fill(nearer == NO_TOKEN, NEVER)
        value, token = torch.cat((value, more), dim=1) - normaliser[:, None], torch.cat((token, nearer), dim=1)
        made = candidates(value, token, total, ends=(self.eos,))
        wanted = self.wanting(self.after(state.place.pick(made.parent), made.token))
        possible = made.score > NEVER
        whole = possible & (wanted == 0)
        closing = made.end & whole & (whole.cumsum(1) <= self.beam)
        live = _dealt(wanted.masked_fill(made.end | ~possible, EXCLUDED), self.beam)
        standing = wanted == wanted.gather(1, live).amin(1, keepdim=True)
        return made._replace(closing=closing, live=live, standing=standing)

    def _nearer(self, scores: Float[Tensor, "R V"], place: _Place, token: Int[Tensor, "R C"]) -> Int[Tensor, "R K"]:
        """The tokens of phrases that bring a row nearer to its wishes, and the best of those that part words where
        that does; NO_TOKEN for any other, and for those that are among the row's best anyway."""
        found = self.tokens[place.sentence]
        each = torch.arange(len(found), device=found.device)[:, None]
        now = self.wanting(place)[:, None]
        nearer = self.wanting(self.after(place.pick(each.expand_as(found)), found)) < now
        found = found.masked_fill(~nearer | (found[:, :, None] == token[:, None]).any(2), NO_TOKEN)
        waiting = (self.closes[place.sentence, place.node] > 0).any(1).nonzero()
        if self.parting is not None and len(waiting):
            rows = waiting[:, 0]
            apart = self.parting.index_fill(0, torch.tensor([self.eos], device=scores.device), False)
            best = scores[rows].masked_fill(~apart, NEVER).argmax(1, keepdim=True)
            useless = self.wanting(self.after(place.pick(waiting), best)) >= now[rows]
            useless |= (best == torch.cat((token, found), dim=1)[rows]).any(1, keepdim=True)
            parts = found.new_full((len(found), 1), NO_TOKEN)
            found = torch.cat((found, parts.index_copy(0, rows, best.masked_fill(useless, NO_TOKEN))), dim=1)
        none = found == NO_TOKEN
        most = int((~none).sum(1).amax())  # waits for the device
        return found.gather(1, none.sort(dim=1, stable=True).indices[:, :most])


def _dealt(bank: Int[Tensor, "n C"], slots: int) -> Int[Tensor, "n W"]:
    """Which candidates live on: the best of the lowest bank first, then the best of each, then the second best, and so
    on, of equal rank the best candidate; in their own order. EXCLUDED is no bank."""
    n, C = bank.shape
    order = torch.arange(C, device=bank.device).expand(n, C)
    sorted_bank, column = bank.sort(dim=1, stable=True)
    begins = torch.ones_like(bank, dtype=torch.bool)
    begins[:, 1:] = sorted_bank[:, 1:] != sorted_bank[:, :-1]
    rank_sorted = order - torch.where(begins, order, 0).cummax(1).values
    rank = torch.zeros_like(bank).scatter_(1, column, rank_sorted)
    turn = rank * C + order
    turn.scatter_(1, column[:, :1], -1)  # the best of the lowest bank
    turn += (bank == EXCLUDED) * C * C
    chosen = turn.sort(dim=1, stable=True).indices[:, :slots]
    return (chosen + (bank.gather(1, chosen) == EXCLUDED) * C).sort(dim=1).values % C
