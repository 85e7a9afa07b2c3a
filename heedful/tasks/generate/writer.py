"""Continuous generation of texts by a language model, each with its own sampling, stop strings and limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch

from heedful.core.seeds import counter_seed
from heedful.data.reader import Reader
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.continuous import Likeliest, RowsModel, Session
from heedful.decode.rules import NEVER
from heedful.decode.settings import Sampling
from heedful.errors import InputError
from heedful.tasks.shared.one_or_many import listed


class TextPiece(NamedTuple):
    """An addition to the text with this number: `piece` (possibly empty), by `token`. The last one of a text has no
    token but a `finish`: "stop" (the model ended the text, by the token `end`, or a stop string was generated) or
    "length". `top`: the most likely tokens at this step, with their log-probabilities."""

    text: int
    piece: str
    token: int | None
    logprob: float
    finish: str | None = None
    end: int | None = None
    end_logprob: float = 0.0
    top: Likeliest = ()


@dataclass(eq=False)
class _Written:
    number: int
    ids: Ids  # the prompt
    sampling: Sampling
    tokens: int  # the most new ones
    reader: Reader
    top: int
    made: Ids = field(default_factory=list)
    handle: int = -1  # in the session


class Writer:
    """Generates at most `rows` texts at a time: they can be added and cancelled between any two calls of `step`. The
    result for a text does not depend on the others.

    A text ends where the model ends it (by the token `end`, or any of several), before the first stop string in it, or
    at its limit. Where prompt and text outgrow the model's context, it continues from their last half context, as if
    the text had begun there. `size` (None: the context length) is the length of the cache of each text.
    """

    def __init__(
        self,
        model: RowsModel[Any],
        tokenizer: Tokenizer,
        *,
        context: int,
        device: torch.device,
        end: int | Sequence[int],
        forbidden: tuple[int, ...],
        draft: RowsModel[Any] | None = None,
        rows: int,
        size: int | None = None,
    ) -> None:
        self._tokenizer, self._context = tokenizer, context
        self._ends = frozenset([end] if isinstance(end, int) else end)
        self._session = Session(
            model,
            rows=rows,
            size=min(self._context, size or self._context),
            device=device,
            end=end,
            forbidden=forbidden,
            draft=draft,
        )
        self._added = 0
        self._texts: dict[int, _Written] = {}  # by number
        self._handles: dict[int, _Written] = {}  # by handle in the session

    def __len__(self) -> int:
        """The number of texts that were added, and are neither finished nor cancelled."""
        return len(self._texts)

    def add(
        self, ids: Sequence[int], sampling: Sampling, *, tokens: int, stop: str | Sequence[str] = (), top: int = 0
    ) -> int:
        """Adds a text that continues these ids by at most `tokens` tokens, drawn with the seed of its sampling. Each
        piece has the `top` most likely tokens. The text ends before the first of `stop`, a string or several. Returns
        the text's number. Raises InputError for ids that are not in the vocabulary, and for invalid settings."""
        size = self._tokenizer.size
        if not ids or not all(0 <= index < size for index in ids):
            raise InputError("tokens that the model does not have", fix=f"give one or more, from 0 to {size - 1:,}")
        if tokens < 1:
            raise InputError(f"at most {tokens} new tokens", fix="ask for 1 or more")
        ends: Sequence[str] = listed(stop)
        if "" in ends:
            raise InputError("a text to stop at is empty", fix="leave it out")
        text = _Written(self._added, [*ids], sampling, tokens, Reader(self._tokenizer, ends, ids), top)
        self._enter(text)
        self._added += 1
        self._texts[text.number] = text
        return text.number

    def cancel(self, number: int) -> None:
        """Stops a text. Has no effect on one that has ended."""
        text = self._texts.pop(number, None)
        if text is not None:
            self._session.cancel(text.handle)
            del self._handles[text.handle]

    @torch.inference_mode()
    def step(self) -> list[TextPiece]:
        """Makes one step of the session, and returns the pieces that it adds to the texts. Raises NonFiniteError."""
        pieces = []
        for handle, token, logprob, finished, top in self._session.step():
            text = self._handles[handle]
            ended = token in self._ends or logprob == NEVER
            if not ended:
                text.made.append(token)
                pieces.append(TextPiece(text.number, text.reader.read(token), token, logprob, top=top))
            if ended or text.reader.over or len(text.made) == text.tokens:
                finish = "stop" if ended or text.reader.over else "length"
                end = token if token in self._ends and logprob > NEVER else None
                last = 0.0 if end is None else logprob
                pieces.append(TextPiece(text.number, text.reader.rest(), None, 0.0, finish, end, last))
                self.cancel(text.number)
            elif finished:  # the context is full
                del self._handles[handle]
                self._enter(text)
        return pieces

    def _enter(self, text: _Written) -> None:
        again = replace(text.sampling, seed=counter_seed(text.sampling.seed, len(text.made)))
        begun = window([*text.ids, *text.made], self._context)
        text.handle = self._session.add(begun, again, top=text.top)
        self._handles[text.handle] = text


def window(ids: Ids, context: int) -> Ids:
    """The ids that a model with this context reads: all, or the last half context."""
    return ids if len(ids) + 1 < context else ids[-max(1, context // 2) :]
