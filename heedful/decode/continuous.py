"""Continuous batching: a text enters a batch as soon as another leaves it, between any two tokens (Yu et al. 2022,
iteration-level scheduling). What a text gets does not depend on those beside it.

R rows, K of them, S longest prompt but its last token, V vocabulary.
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


@runtime_checkable
class RowsModel(Protocol[StateType]):
    """A model that reads prompts and then gives the logits of one token after another."""

    def start(self, source: Int[Tensor, "K S"], segments: Int[Tensor, "K S"] | None, size: int) -> StateType:
        """Read prompts, padded at their ends, where `segments` is 0; with room for `size` tokens a row in all."""

    def step(self, tokens: Int[Tensor, "R"], state: StateType) -> tuple[Float[Tensor, "R V"], StateType]:
        """Logits of the next token, given the last `tokens`; the batch may overwrite them."""


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
    chances: random.Random
    said: list[int] = field(default_factory=list)


class Batch(Generic[StateType]):
    """Texts that a model goes on with, at most `rows` at a time: `add` them, `step` again and again, and `drop` each
    one when it has come to its end. A text has room for `size` tokens in all, its prompt's counted.

    The settings are those of `heedful.decode.search.sample`; temperature 0 takes the most probable token. Every text
    has its own stream of random numbers, keyed by its seed.
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
    ) -> None:
        if rows < 1:
            raise InputError(f"a batch of {rows} rows", fix="give 1 or more")
        self._model, self._most, self._size, self._device = model, rows, size, device
        self._greedy, self._filters = temperature == 0, sampling_filters(temperature, top_k, top_p, min_p)
        self._forbid, self._rules = Forbid(forbidden), rules
        self._waiting: deque[_Text] = deque()
        self._rows: list[_Text | None] = []  # of the state; None: its text has left
        self._state: StateType | None = None

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

    @torch.inference_mode()
    def step(self) -> list[Said]:
        """The next token of every text that has a row. Raises NonFiniteError for logits that are NaN or +inf."""
        texts = self._enter()
        if not texts or self._state is None:
            return []
        newest = torch.tensor([(text.said or text.prompt)[-1] for text in texts], device=self._device)
        logits, self._state = self._model.step(newest, self._state)
        scores = logits.float()
        normaliser = log_normaliser(scores)
        scores = self._forbid(newest[:, None], scores)
        for i, text in enumerate(texts if self._rules else []):  # each alone: they differ in length
            said = torch.tensor([text.said], dtype=torch.int64, device=self._device)
            for rule in self._rules:
                scores[i : i + 1] = rule(said, scores[i : i + 1])
        tokens = scores.argmax(-1) if self._greedy else draw(scores, self._filters, self._chances(texts))
        values = scores.gather(1, tokens[:, None]).squeeze(1) - normaliser
        refuse_nan(values)
        made = list(zip(texts, tokens.tolist(), values.tolist(), strict=True))
        for text, token, _ in made:
            text.said.append(token)
        return [Said(text.number, token, value) for text, token, value in made]

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

    def _chances(self, texts: Sequence[_Text]) -> Float[Tensor, "R"]:
        return torch.tensor([text.chances.random() for text in texts], device=self._device)
