"""Answering questions by a stretch of a text: `AnswerTask` is what the training loop needs, `Answerer` what a person
uses.

The model reads the question and the context as two texts, and says of each token of the context how well an answer
begins and ends there (Devlin et al. 2019, section 4.2). A long context is read in windows that overlap by half. Where
the answer is not in a window, and where there is none, it begins and ends at the first token (section 4.3).
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.batches import shuffled_groups
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.questions import Question, Span
from heedful.data.text import sanitise
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.models.inference import for_inference
from heedful.models.token_classifier import TokenClassifier
from heedful.tasks.folder import read_run
from heedful.tasks.reading import token_logits
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loss import Loss

Ids = list[int]
BEST = 20  # spans of a window that are ranked with those of the others, as in their code
ARTICLES, PUNCTUATION = re.compile(r"\b(a|an|the)\b"), str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, kw_only=True)
class About:
    """What the answers of a model mean: task.json, beside the task's name."""

    longest: int = 30  # tokens of an answer
    unanswerable: bool = False  # it may say that the context does not tell


class Window(NamedTuple):
    """A question and a part of its context, whose tokens stand at `begin` and behind; `offsets` are the characters of
    the whole context that each covers. The answer begins and ends at the places in `target`."""

    framed: Framed
    begin: int
    offsets: list[tuple[int, int]]
    target: tuple[int, int]


class Layout:
    """From questions to windows of at most `context` tokens. A question loses its end where it leaves too little room:
    it has at most half of that."""

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


class Batch(NamedTuple):
    """Windows as rows. `valid`: where an answer may begin and end, the first token among them. Segment 0 is padding."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    types: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    target: Int[Tensor, "B 2"]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def part(self, rank: int, ranks: int) -> "Batch":
        """The rows that are `rank`'s of `ranks` that share this batch."""
        return Batch(*(tensor[rank::ranks] for tensor in self))


def batch_of(windows: Sequence[Window]) -> Batch:
    tokens, segments, types = rectangle([one.framed for one in windows])
    valid = torch.zeros_like(tokens, dtype=torch.bool)
    valid[:, 0] = True
    for row, one in zip(valid, windows, strict=True):
        row[one.begin : one.begin + len(one.offsets)] = True
    return Batch(tokens, segments, types, valid, torch.tensor([one.target for one in windows]))


def answer_loss(
    logits: Float[Tensor, "B T 2"], valid: Bool[Tensor, "B T"], target: Int[Tensor, "B 2"]
) -> Float[Tensor, ""]:
    """The mean of the cross-entropies of begin and end, in nats, summed over the windows."""
    masked = logits.float().masked_fill(~valid[..., None], -torch.inf)
    return 0.5 * F.cross_entropy(masked, target, reduction="sum")


class AnswerTask:
    """Batches of windows, and the cross-entropy of where their answers begin and end."""

    def __init__(self, windows: Sequence[Window], recipe: TrainRecipe) -> None:
        self.windows, self.recipe = windows, recipe
        self.lengths = [len(one.framed.tokens) for one in windows]
        self._kept: tuple[int, list[Batch]] | None = None

    def batches(self, epoch: int) -> list[Batch]:
        if self._kept is None or self._kept[0] != epoch:
            groups = shuffled_groups(self.lengths, self.recipe.tokens, self.recipe.seed, epoch)
            self._kept = epoch, [batch_of([self.windows[i] for i in group]) for group in groups]
        return self._kept[1]

    def loss(self, model: TokenClassifier, batch: Batch) -> Loss:
        *read, valid, target = (part.to(model.out.weight.device) for part in batch)
        return Loss(answer_loss(model(*read), valid, target), batch.rows)


class Answer(NamedTuple):
    """Characters `start` to before `end` of the context; "" where it does not tell."""

    text: str
    score: float  # its probability among the best spans
    start: int
    end: int


class Answerer:
    """A trained token classifier, whose two logits say where an answer begins and ends, and its tokenizer."""

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        own = {key: value for key, value in about.items() if key != "task"}
        self.says = from_json(About, own, where="task.json")
        self.layout = Layout(tokenizer, self.context)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Answerer":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "answer":
            raise InputError(f"a model for {about.get('task')!r}, not for answering questions", where=str(run))
        return cls(for_inference(model.to(device)), tokenizer, about)

    @property
    def context(self) -> int:
        """How many tokens the model can read at once."""
        return self.model.config.encoder.embed.places.size

    def answer(self, questions: Sequence[str], contexts: Sequence[str], *, top: int = 1) -> list[list[Answer]]:
        """The `top` best answers of each question from its context, the best first. Raises InputError for an empty
        question or context."""
        asked = [Question(sanitise(q), sanitise(c), (), "") for q, c in zip(questions, contexts, strict=True)]
        if any(not text.strip() for one in asked for text in one[:2]):
            raise InputError("an empty question or context", fix="give some words")
        return self._answers(asked, self.layout.encode(asked), top)[0]

    def evaluate(self, questions: Sequence[Question]) -> dict[str, float]:
        """The loss in nats a window, and exact matches and F1 as SQuAD counts them (Rajpurkar et al. 2016)."""
        encoded = self.layout.encode(questions)
        found, loss = self._answers(questions, encoded, 1)
        said = [best.text for (best, *_) in found]
        right = [[span.text for span in one.answers] or [""] for one in questions]
        each = list(zip(said, right, strict=True))
        return {
            "loss": loss,
            "exact_match": sum(max(normal(ours) == normal(one) for one in own) for ours, own in each) / len(each),
            "f1": sum(max(overlap(ours, one) for one in own) for ours, own in each) / len(each),
        }

    def _answers(
        self, questions: Sequence[Question], encoded: Sequence[Sequence[Window]], top: int
    ) -> tuple[list[list[Answer]], float]:
        """The answers, and the mean loss of all windows."""
        windows = [one for own in encoded for one in own]
        logits = token_logits(self.model, [one.framed for one in windows])
        batches = (batch_of([one]) for one in windows)
        pairs = zip(logits, batches, strict=True)
        loss = sum(float(answer_loss(own[None], batch.valid, batch.target)) for own, batch in pairs) / len(windows)
        left = iter(logits)
        asked = zip(questions, encoded, strict=True)
        return [self._rank(one.context, own, [next(left) for _ in own], top) for one, own in asked], loss

    def _rank(self, context: str, windows: Sequence[Window], logits: Sequence[Tensor], top: int) -> list[Answer]:
        """The best spans of all windows. That the context does not tell is as likely as in the window where it is
        least so."""
        found: dict[tuple[int, int], float] = {}
        for window, own in zip(windows, logits, strict=True):
            begins, ends = own[window.begin : window.begin + len(window.offsets)].unbind(1)
            scores = begins[:, None] + ends
            allowed = torch.ones_like(scores, dtype=torch.bool).triu().tril(self.says.longest - 1)
            flat = scores.masked_fill(~allowed, -torch.inf).flatten()
            best = flat.topk(min(BEST, int(allowed.sum())))
            for score, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                begin, end = divmod(place, len(ends))
                span = _trimmed(context, window.offsets[begin][0], window.offsets[end][1])
                found[span] = max(score, found.get(span, -torch.inf))
        found = {(a, b): score for (a, b), score in found.items() if a < b}
        if self.says.unanswerable or not found:
            found[0, 0] = min(float(own[0].sum()) for own in logits)
        spans = sorted(found, key=lambda span: -found[span])
        chances = torch.tensor([found[span] for span in spans]).softmax(0).tolist()
        return [Answer(context[a:b], score, a, b) for (a, b), score in zip(spans, chances, strict=True)][:top]


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without the blanks at both ends."""
    own = text[begin:end]
    return begin + len(own) - len(own.lstrip()), end - len(own) + len(own.rstrip())


def normal(text: str) -> str:
    """Lower case, without punctuation, articles and blanks: what SQuAD compares."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def overlap(found: str, right: str) -> float:
    """The F1 of the words, each as often as it occurs; of no words, whether both have none."""
    ours, theirs = normal(found).split(), normal(right).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))
