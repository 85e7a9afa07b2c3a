"""Continuous batching: a text enters a batch as soon as another leaves it, between any two tokens (Yu et al. 2022,
iteration-level scheduling). What a text gets does not depend on those beside it.

A text that is alone may be decoded speculatively (Leviathan et al. 2023): a quicker model, the draft, says the next few
tokens, and the model reads them all at once, which takes hardly longer than one. As far as it would have said the
same they stay, and the first that differs is its own: drafted tokens change no token, only when they come. Sampled ones
neither, as both models draw by the same random numbers.

R rows, K of them, S longest prompt but its last token, T tokens of a row at once, V vocabulary.
"""

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.contract import State
from heedful.decode.draws import draw, penalties, sampling_filters
from heedful.decode.rows import refuse_nan
from heedful.decode.rules import NEVER, Forbid, Rule, log_normaliser
from heedful.decode.settings import DEFAULT_SAMPLING, Sampling
from heedful.errors import InputError

StateType = TypeVar("StateType", bound="RowsState")


@runtime_checkable
class RowsState(State, Protocol):
    """A model's state between steps, with rows that may differ in length."""

    def put(self: StateType, rows: Int[Tensor, "K"], newer: StateType) -> StateType:
        """The rows of another state in place of these."""

    def keep(self: StateType, length: int) -> StateType:
        """The first so many tokens of each row."""


@runtime_checkable
class RowsModel(Protocol[StateType]):
    """A model that reads prompts and then gives the logits of one token after another."""

    @property
    def vocab_size(self) -> int:
        """The size of the vocabulary."""

    def start(self, source: Int[Tensor, "K S"], segments: Int[Tensor, "K S"] | None, size: int) -> StateType:
        """Read prompts, padded at their ends, where `segments` is 0; with room for `size` tokens a row in all."""

    def step(self, tokens: Int[Tensor, "R"], state: StateType) -> tuple[Float[Tensor, "R V"], StateType]:
        """Logits of the next token, given the last `tokens`; the session may overwrite them."""

    def steps(self, tokens: Int[Tensor, "R T"], state: StateType) -> tuple[Float[Tensor, "R T V"], StateType]:
        """Logits of what follows each of the last `tokens`, of rows that are equally long."""


Likeliest = tuple[tuple[int, float], ...]
Said = tuple[int, float, Likeliest]

DRAFTED = 4  # tokens at first; more while all are right, fewer when not
MOST_DRAFTED = 6


class NextToken(NamedTuple):
    """The next token of a text, and its log-probability (nats) as `heedful.decode.search` has it: -inf where the rules
    left none. `finished`: it is the last one, and the text has left its session. `top`: the likeliest tokens, with
    theirs, by the model alone."""

    handle: int
    token: int
    log_probability: float
    finished: bool
    top: Likeliest = ()


@dataclass(eq=False)
class _Text:
    handle: int
    prompt: tuple[int, ...]
    left: int  # tokens that may still be handed out
    rules: tuple[Rule, ...]
    filters: tuple[Rule, ...] | None  # None: it takes the most probable
    stream: random.Random
    tokens: list[int] = field(default_factory=list)  # new ones
    drawn: list[float] = field(default_factory=list)  # from the stream, one for each token
    top: int = 0  # likeliest tokens that are told with each

    def chances(self, count: int) -> list[float]:
        """The random numbers of the next `count` tokens, the same at each call."""
        first = len(self.tokens)
        self.drawn += [self.stream.random() for _ in range(first + count - len(self.drawn))]
        return self.drawn[first : first + count]


class Session(Generic[StateType]):
    """Texts that a model continues, at most `rows` at a time: `add` and `cancel` them whenever you like, and `step`
    again and again. What a text gets does not depend on the others, nor on when it came.

    A text has room for `size` tokens in all, its prompt's counted (the last one need not fit, as the model is not given
    it). It is finished by the token `end`, or by any of several, where its room or its limit is used up, or where the
    rules leave no token.
    `forbidden` tokens never come; `rules` act after that. A `draft` drafts tokens where there is one text alone, from
    the model's own state.
    """

    def __init__(
        self,
        model: RowsModel[StateType],
        *,
        rows: int,
        size: int,
        device: torch.device,
        end: int | Sequence[int] | None = None,
        forbidden: tuple[int, ...] = (),
        rules: Sequence[Rule] = (),
        draft: RowsModel[StateType] | None = None,
    ) -> None:
        if rows < 1:
            raise InputError(f"a batch of {rows} rows", fix="give 1 or more")
        self._model, self._most, self._size, self._device = model, rows, size, device
        self._ends = frozenset([end] if isinstance(end, int) else end or ())
        self._forbid, self._rules = Forbid(forbidden), tuple(rules)
        self._draft, self._drafted = draft, DRAFTED
        self._added = 0
        self._waiting: deque[_Text] = deque()
        self._rows: list[_Text | None] = []  # of the state; None: its text has left
        self._state: StateType | None = None
        self._ahead: deque[tuple[_Text, Said]] = deque()  # of the one text there is: what is known of it already

    def __len__(self) -> int:
        """The number of texts that are neither finished nor cancelled."""
        return len(self._waiting) + sum(text is not None for text in self._rows)

    def add(
        self,
        prompt: Sequence[int],
        sampling: Sampling = DEFAULT_SAMPLING,
        longest: int | None = None,
        *,
        top: int = 0,
    ) -> int:
        """A text to continue, drawn as `sampling` says by random numbers of its own, keyed by its seed, for at most
        `longest` tokens (None: as there is room for), and with each so many of the likeliest. It enters as soon as
        there is a row for it. Returns its handle.
        Raises InputError for a prompt without a token or without room, or of tokens that the model does not have, and
        for settings that cannot be."""
        room, known = self._size + 1 - len(prompt), self._model.vocab_size
        if len(prompt) == 0 or room < 1:
            what = f"a prompt of {len(prompt)} tokens in a session with room for {self._size}"
            raise InputError(what, fix="give at least one token, and no more than there is room for")
        if not all(isinstance(token, Integral) and 0 <= token < known for token in prompt):
            raise InputError("tokens that the model does not have", fix=f"give whole numbers from 0 to {known - 1:,}")
        if longest is not None and longest < 1:
            raise InputError(f"at most {longest} new tokens", fix="ask for 1 or more")
        handle = self._added
        text = _Text(
            handle,
            tuple(prompt),
            left=room if longest is None else min(room, longest),
            rules=(*self._rules, *penalties(sampling, prompt)),
            filters=sampling_filters(sampling),
            stream=random.Random(f"{sampling.seed} 0 0"),
            top=top,
        )
        self._added += 1
        self._waiting.append(text)
        return handle

    def cancel(self, handle: int) -> None:
        """Stops this text and frees its row, unless it has left already."""
        self._waiting = deque(text for text in self._waiting if text.handle != handle)
        self._rows = [None if text is None or text.handle == handle else text for text in self._rows]
        self._ahead = deque(known for known in self._ahead if known[0].handle != handle)

    @torch.inference_mode()
    def step(self) -> list[NextToken]:
        """The next token of every text that has a row. Raises NonFiniteError for logits that are NaN or +inf."""
        if self._ahead:
            return [self._hand_out(*self._ahead.popleft())]
        texts = self._enter()
        if not texts or self._state is None:
            return []
        if self._draft is not None and len(texts) == 1:
            self._ahead.extend(self._speculate(texts[0], self._draft, self._state))
            return [self._hand_out(*self._ahead.popleft())]
        newest = torch.tensor([(text.tokens or text.prompt)[-1] for text in texts], device=self._device)
        logits, self._state = self._model.step(newest, self._state)
        chances = [chance for text in texts for chance in text.chances(1)]
        said = self._say(logits, texts, [text.tokens for text in texts], chances)
        for text, (token, _, _) in zip(texts, said, strict=True):
            text.tokens.append(token)
        return [self._hand_out(*made) for made in zip(texts, said, strict=True)]

    def _hand_out(self, text: _Text, said: Said) -> NextToken:
        token, value, top = said
        text.left -= 1
        finished = token in self._ends or value == NEVER or text.left == 0
        if finished:
            self.cancel(text.handle)
        return NextToken(text.handle, token, value, finished, top)

    def _speculate(self, text: _Text, draft: RowsModel[StateType], state: StateType) -> Iterable[tuple[_Text, Said]]:
        """The next tokens of a single text: the drafted tokens that are right, and one more."""
        known = len(text.prompt) + len(text.tokens)  # all but the last are in the state
        count = min(self._drafted, self._size - known)
        chances, tokens, ahead = text.chances(count + 1), [(text.tokens or text.prompt)[-1]], state
        for i in range(count):
            logits, ahead = draft.step(torch.tensor(tokens[-1:], device=self._device), ahead)
            before = [text.tokens + tokens[1:]]
            tokens += self._choose(logits.float(), [text], before, chances[i : i + 1]).tolist()
        logits, state = self._model.steps(torch.tensor([tokens], device=self._device), state.keep(known - 1))
        before = [text.tokens + tokens[1 : i + 1] for i in range(count + 1)]
        said = self._say(logits[0], [text] * (count + 1), before, chances)
        right = next((i for i in range(count) if said[i][0] != tokens[i + 1]), count)
        self._state = state.keep(known + right)
        self._drafted = min(right + 1, MOST_DRAFTED) if count else self._drafted
        text.tokens += [token for token, _, _ in said[: right + 1]]
        return [(text, one) for one in said[: right + 1]]

    def _say(
        self,
        logits: Float[Tensor, "R V"],
        texts: Sequence[_Text],
        before: Sequence[list[int]],
        chances: Sequence[float],
    ) -> list[Said]:
        """A token a row, its log-probability, and the likeliest."""
        scores = logits.float()
        normaliser = log_normaliser(scores)
        tops: list[Likeliest] = [()] * len(texts)
        if most := min(max(text.top for text in texts), scores.shape[1]):
            best = (scores - normaliser[:, None]).topk(most)
            rows = zip(texts, best.indices.tolist(), best.values.tolist(), strict=True)
            tops = [tuple(zip(tokens[: text.top], values, strict=False)) for text, tokens, values in rows]
        tokens = self._choose(scores, texts, before, chances)
        values = scores.gather(1, tokens[:, None]).squeeze(1) - normaliser
        refuse_nan(values)
        return list(zip(tokens.tolist(), values.tolist(), tops, strict=True))

    def _choose(
        self,
        scores: Float[Tensor, "R V"],
        texts: Sequence[_Text],
        before: Sequence[list[int]],
        chances: Sequence[float],
    ) -> Int[Tensor, "R"]:
        """A token a row, the rules of its text having changed the scores; `before` are the new tokens so far."""
        scores = self._forbid(torch.zeros(len(scores), 0, dtype=torch.int64, device=self._device), scores)
        alike: dict[tuple[Rule, ...] | None, list[int]] = {}
        for i, (text, own) in enumerate(zip(texts, before, strict=True)):
            alike.setdefault(text.filters, []).append(i)
            if text.rules:  # each alone: they differ in length
                history = torch.tensor([own], dtype=torch.int64, device=self._device)
                for rule in text.rules:
                    scores[i : i + 1] = rule(history, scores[i : i + 1])
        uniform = torch.tensor(chances, device=self._device)
        if len(alike) == 1:
            return draw(scores, texts[0].filters, uniform)
        tokens = torch.empty(len(texts), dtype=torch.int64, device=self._device)
        for filters, members in alike.items():
            rows = torch.tensor(members, device=self._device)
            tokens[rows] = draw(scores[rows], filters, uniform[rows])
        return tokens

    def _enter(self) -> list[_Text]:
        """Lets in what waits, as far as there is room, and gives up rows that are not needed: the text of each row."""
        running = [i for i, text in enumerate(self._rows) if text is not None]
        entering = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most - len(running)))]
        if not running or self._state is None:
            self._rows, self._state = list(entering), self._read(entering, self._size) if entering else None
        else:
            if len(self._rows) - len(running) != len(entering):  # the first row stands in for those to come
                picked = running + running[:1] * len(entering)
                self._state = self._state.pick(torch.tensor(picked, device=self._device))
                self._rows = [self._rows[i] for i in running] + [None] * len(entering)
            if entering:
                free = [i for i, text in enumerate(self._rows) if text is None]
                longest = max(len(text.prompt) for text in entering)
                newer = self._read(entering, longest)
                self._state = self._state.put(torch.tensor(free, device=self._device), newer)
                for i, text in zip(free, entering, strict=True):
                    self._rows[i] = text
        return [text for text in self._rows if text is not None]

    def _read(self, texts: Sequence[_Text], size: int) -> StateType:
        """All of the prompts but their last tokens, which the first step is given."""
        S = max(len(text.prompt) for text in texts) - 1
        source = torch.tensor(
            [text.prompt[:-1] + (0,) * (S + 1 - len(text.prompt)) for text in texts], dtype=torch.int64
        )
        lengths = torch.tensor([len(text.prompt) - 1 for text in texts])
        segments = (torch.arange(S) < lengths[:, None]).long()
        return self._model.start(source.view(len(texts), S).to(self._device), segments.to(self._device), size)
