"""Converts questions and contexts to windows of tokens: the model reads a question and a part of the context as two
texts, and scores each token of the context as the beginning and as the end of the answer (Devlin et al. 2019, section
4.2).

A long context is read in windows that overlap by half. Where a window does not contain the answer, and where there is
none, the answer begins and ends at the first token (section 4.3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.text.questions import Question, Span
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError
from heedful.tasks.shared.lengths import cut_warning


@dataclass(frozen=True, kw_only=True)
class AnswerSpec:
    """The content of task.json besides the task's name: what a model's answers mean."""

    longest: int = 30  # the most tokens of an answer
    unanswerable: bool = False  # whether it may answer that the context does not contain the answer


class Window(NamedTuple):
    """A question and a part of its context, whose tokens begin at `begin`; `offsets` are the characters of the whole
    context that each token covers. `target` has the positions at which the answer begins and ends."""

    framed: Framed
    begin: int
    offsets: list[tuple[int, int]]
    target: tuple[int, int]


class AnswerLayout:
    """Lays out questions as windows of at most `context` tokens. A question of more than half of the room loses its end
    (see `warnings`)."""

    def __init__(self, tokenizer: Tokenizer, context: int) -> None:
        self.tokenizer, self.frame = tokenizer, Frame.of_encoder(tokenizer)
        self.room = context - self.frame.extra(pair=True)
        if self.room < 2:
            raise InputError(f"{context} tokens are too few to read a question and a text", fix="a larger context")

    def encode(self, questions: Sequence[Question]) -> list[list[Window]]:
        asked = self.tokenizer.encode([one.question for one in questions])
        contexts = [*dict.fromkeys(one.context for one in questions)]
        read = dict(zip(contexts, self.tokenizer.encode_placed(contexts), strict=True))
        return [
            list(self._windows(ids[: self.room // 2], *read[one.context], one.answers[:1]))
            for one, ids in zip(questions, asked, strict=True)
        ]

    def warnings(self, questions: Sequence[Question]) -> list[str]:
        """For each question that is not read as a whole a warning, otherwise ""."""
        asked = self.tokenizer.encode([one.question for one in questions])
        return [cut_warning(min(len(ids), self.room // 2), len(ids)) for ids in asked]

    def _windows(
        self, question: Ids, ids: Ids, offsets: list[tuple[int, int]], answers: Sequence[Span]
    ) -> Iterator[Window]:
        size = self.room - len(question)
        before = len(self.frame.begin) + len(question) + len(self.frame.between)
        for begin in range(0, max(1, len(ids) - size // 2), max(1, size // 2)):
            own, target = offsets[begin : begin + size], (0, 0)
            for text, start in answers:
                inside = [n for n, (a, b) in enumerate(own) if a < start + len(text) and b > start]
                whole = inside and own[0][0] <= start and own[-1][1] >= start + len(text)
                target = (before + inside[0], before + inside[-1]) if whole else target
            yield Window(self.frame.put(question, ids[begin : begin + size]), before, own, target)


class AnswerBatch(NamedTuple):
    """Windows as rows. `valid`: where an answer may begin and end, which includes the first token. Segment 0 is
    padding."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    types: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    target: Int[Tensor, "B 2"]


def answer_batch(windows: Sequence[Window]) -> AnswerBatch:
    tokens, segments, types = rectangle([one.framed for one in windows])
    valid = torch.zeros_like(tokens, dtype=torch.bool)
    valid[:, 0] = True
    for row, one in zip(valid, windows, strict=True):
        row[one.begin : one.begin + len(one.offsets)] = True
    return AnswerBatch(tokens, segments, types, valid, torch.tensor([one.target for one in windows]))


def span_loss(
    logits: Float[Tensor, "B T 2"], valid: Bool[Tensor, "B T"], target: Int[Tensor, "B 2"]
) -> Float[Tensor, ""]:
    """The mean of the cross-entropies of begin and end, in nats, summed over the windows."""
    masked = logits.float().masked_fill(~valid[..., None], -torch.inf)
    return 0.5 * F.cross_entropy(masked, target, reduction="sum")
