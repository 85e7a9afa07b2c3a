"""Continuous batching: a text enters a batch as soon as another leaves it, between any two tokens (Yu et al. 2022,
iteration-level scheduling). What a text gets does not depend on those beside it.

A text that is alone may be guessed ahead (Leviathan et al. 2023): a quicker model, the draft, says the next few
tokens, and the model reads them all at once, which takes hardly longer than one. As far as it would have said the
same they stay, and the first that differs is its own: the draft changes no token, only when they come. Drawn tokens
too, as both draw by the same random numbers.

R rows, K of them, S longest prompt but its last token, T tokens of a row at once, V vocabulary.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.rules import Forbid, Rule, log_normaliser
from heedful.decode.search import State, draw, refuse_nan, sampling_filters
from heedful.errors import InputError

StateType = TypeVar("StateType", bound="RowsState")


@runtime_checkable
class RowsState(State, Protocol):
    """What a model remembers between steps, of rows that may differ in length."""

    def put(self: StateType, rows: Int[Tensor, "K"], newer: StateType) -> StateType:
        """The rows of another state in place of these."""

    def keep(self: StateType, length: int) -> StateType:
        """The first so many tokens of each row."""


@runtime_checkable
class RowsModel(Protocol[StateType]):
    """A model that reads prompts and then gives the logits of one token after another."""

    def start(self, source: Int[Tensor, "K S"], segments: Int[Tensor, "K S"] | None, size: int) -> StateType:
        """Read prompts, padded at their ends, where `segments` is 0; with room for `size` tokens a row in all."""

    def step(self, tokens: Int[Tensor, "R"], state: StateType) -> tuple[Float[Tensor, "R V"], StateType]:
        """Logits of the next token, given the last `tokens`; the batch may overwrite them."""

    def steps(self, tokens: Int[Tensor, "R T"], state: StateType) -> tuple[Float[Tensor, "R T V"], StateType]:
        """Logits of what follows each of the last `tokens`, of rows that are equally long."""


GUESSES = 4  # at first; more while all are right, fewer when not
MOST_GUESSES = 6


class Said(NamedTuple):
    """The next token of the text with this number, and its log-probability (nats) as `heedful.decode.search` has it:
    -inf where the rules left none."""

    text: int
    token: int
    log_probability: float


@dataclass
class _Text:
    number: int
    prompt: tuple[int, ...]
    stream: random.Random
    said: list[int] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)  # from the stream, one for each token

    def chances(self, count: int) -> list[float]:
        """The random numbers of the next so many tokens, the same each time."""
        first = len(self.said)
        self.drawn += [self.stream.random() for _ in range(first + count - len(self.drawn))]
        return self.drawn[first : first + count]


class Batch(Generic[StateType]):
    """Texts that a model goes on with, at most `rows` at a time: `add` them, `step` again and again, and `drop` each
    one when it has come to its end. A text has room for `size` tokens in all, its prompt's counted.

    The settings are those of `heedful.decode.search.sample`; temperature 0 takes the most probable token. Every text
    has its own stream of random numbers, keyed by its seed. A `draft` guesses what the model will say, and goes on
    from the model's own state.
    """

    def __init__(
        self,
        model: RowsModel[StateType],
        *,
        rows: int,
        size: int,
        device: torch.device,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        forbidden: tuple[int, ...] = (),
        rules: Sequence[Rule] = (),
        draft: RowsModel[StateType] | None = None,
    ) -> None:
        if rows < 1:
            raise InputError(f"a batch of {rows} rows", fix="give 1 or more")
        self._model, self._most, self._size, self._device = model, rows, size, device
        self._greedy, self._filters = temperature == 0, sampling_filters(temperature, top_k, top_p, min_p)
        self._forbid, self._rules = Forbid(forbidden), rules
        self._draft, self._guesses = draft, GUESSES
        self._waiting: deque[_Text] = deque()
        self._rows: list[_Text | None] = []  # of the state; None: its text has left
        self._state: StateType | None = None
        self._ahead: deque[Said] = deque()  # of the one text there is: what is known of it already

    def __len__(self) -> int:
        """How many texts have been added and not dropped."""
        return len(self._waiting) + sum(text is not None for text in self._rows)

    def add(self, number: int, prompt: Sequence[int], seed: int = 0) -> None:
        """A text to go on with, from a prompt of at least one token; it enters as soon as there is a row for it."""
        self._waiting.append(_Text(number, tuple(prompt), random.Random(f"{seed} 0 0")))

    def drop(self, number: int) -> None:
        """No more of this text."""
        self._waiting = deque(text for text in self._waiting if text.number != number)
        self._rows = [None if text is None or text.number == number else text for text in self._rows]
        self._ahead = deque(said for said in self._ahead if said.text != number)

    @torch.inference_mode()
    def step(self) -> list[Said]:
        """The next token of every text that has a row. Raises NonFiniteError for logits that are NaN or +inf."""
        if self._ahead:
            return [self._ahead.popleft()]
        texts = self._enter()
        if not texts or self._state is None:
            return []
        if self._draft is not None and len(texts) == 1:
            self._ahead.extend(self._guess(texts[0], self._draft, self._state))
            return [self._ahead.popleft()]
        newest = torch.tensor([(text.said or text.prompt)[-1] for text in texts], device=self._device)
        logits, self._state = self._model.step(newest, self._state)
        chances = [chance for text in texts for chance in text.chances(1)]
        tokens, values = self._say(logits, [text.said for text in texts], chances)
        for text, token in zip(texts, tokens, strict=True):
            text.said.append(token)
        made = zip(texts, tokens, values, strict=True)
        return [Said(text.number, token, value) for text, token, value in made]

    def _guess(self, text: _Text, draft: RowsModel[StateType], state: StateType) -> list[Said]:
        """The next tokens of the one text there is: as many as the draft guesses rightly, and one more."""
        known = len(text.prompt) + len(text.said)  # all but the last are in the state
        count = min(self._guesses, self._size - known)
        chances, tokens, ahead = text.chances(count + 1), [(text.said or text.prompt)[-1]], state
        for i in range(count):
            logits, ahead = draft.step(torch.tensor(tokens[-1:], device=self._device), ahead)
            tokens += self._choose(logits.float(), [text.said + tokens[1:]], chances[i : i + 1]).tolist()
        logits, state = self._model.steps(torch.tensor([tokens], device=self._device), state)
        said, values = self._say(logits[0], [text.said + tokens[1 : i + 1] for i in range(count + 1)], chances)
        right = next((i for i in range(count) if said[i] != tokens[i + 1]), count)
        self._state = state.keep(known + right)
        self._guesses = min(right + 1, MOST_GUESSES) if count else self._guesses
        text.said += said[: right + 1]
        return [Said(text.number, token, value) for token, value in zip(said[: right + 1], values, strict=False)]

    def _say(
        self, logits: Float[Tensor, "R V"], before: Sequence[list[int]], chances: Sequence[float]
    ) -> tuple[list[int], list[float]]:
        """A token a row, and its log-probability."""
        scores = logits.float()
        normaliser = log_normaliser(scores)
        tokens = self._choose(scores, before, chances)
        values = scores.gather(1, tokens[:, None]).squeeze(1) - normaliser
        refuse_nan(values)
        return tokens.tolist(), values.tolist()

    def _choose(
        self, scores: Float[Tensor, "R V"], before: Sequence[list[int]], chances: Sequence[float]
    ) -> Int[Tensor, "R"]:
        """A token a row, the rules having changed the scores; `before` is what its text has said so far."""
        scores = self._forbid(torch.zeros(len(scores), 0, dtype=torch.int64, device=self._device), scores)
        for i, own in enumerate(before if self._rules else []):  # each alone: they differ in length
            said = torch.tensor([own], dtype=torch.int64, device=self._device)
            for rule in self._rules:
                scores[i : i + 1] = rule(said, scores[i : i + 1])
        if self._greedy:
            return scores.argmax(-1)
        return draw(scores, self._filters, torch.tensor(chances, device=self._device))

    def _enter(self) -> list[_Text]:
        """Lets in who waits, as far as there is room, and gives up rows that nobody needs: the text of each row."""
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
