"""Answers questions by a span of a text, with a trained model."""

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, NotRequired, TypedDict

import torch
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.documents.sentences import trimmed
from heedful.data.frame import Frame
from heedful.data.lines import composed, sanitise
from heedful.data.parts import read_tests
from heedful.data.text.questions import KINDS, Question, read_answered
from heedful.data.tokenizer import Tokenizer
from heedful.errors import TextError
from heedful.models.token_classifier import TokenClassifier
from heedful.run.task import Ask, Scored
from heedful.tasks.answer.layout import AnswerLayout, AnswerSpec, Window, answer_batch, span_loss
from heedful.tasks.answer.options import AnswerOptions
from heedful.tasks.shared.asked import refuse_no_answers, refuse_nothing
from heedful.tasks.shared.lengths import warn
from heedful.tasks.shared.one_or_many import one_or_many, refuse_other_count
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.reading import token_logits
from heedful.tasks.shared.served import Reads, TextModel, spec_of

BEST = 20  # spans of each window that are ranked together, as in Devlin et al.'s code
ARTICLES, PUNCTUATION = re.compile(r"\b(a|an|the)\b"), str.maketrans("", "", string.punctuation)


class Answer(NamedTuple):
    """Characters `start` to `end` (exclusive) of the context; "" where the context does not contain the answer."""

    text: str
    score: float  # its probability among the best spans
    start: int
    end: int


class Answering(NamedTuple):
    """The answers to a question, the best first, and a warning, or ""."""

    answers: list[Answer]
    warning: str = ""


class Answerer(TextModel[TokenClassifier]):
    """A trained token classifier, whose two logits score the beginning and the end of an answer, and its tokenizer."""

    task: ClassVar = "answer"
    purpose: ClassVar = "answering questions"

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(AnswerSpec, about)
        self.layout = AnswerLayout(tokenizer, self.context)

    @property
    def reads(self) -> Reads:
        return Reads(self.model.encoder, Frame.of_encoder(self.tokenizer), self.tokenizer.encode, "two")

    @property
    def context(self) -> int:
        """The number of tokens that the model can read at once."""
        return self.model.config.embed.context_length

    @one_or_many("contexts")
    def answer(self, questions: Sequence[str], contexts: Sequence[str], *, top: int = 1) -> list[list[Answer]]:
        """The `top` best answers to each question from its context, the best first. Warns about questions that are too
        long to be read as a whole. Raises InputError for an empty question or context."""
        found = self.search(questions, contexts, top=top)
        warn([one.warning for one in found])
        return [one.answers for one in found]

    def search(self, questions: Sequence[str], contexts: Sequence[str], *, top: int = 1) -> list[Answering]:
        """Like `answer`, but returns the warnings instead of issuing them."""
        refuse_no_answers(top)
        asked = [Question(sanitise(q), sanitise(c), (), "") for q, c in zip(questions, contexts, strict=True)]
        if any(not text.strip() for one in asked for text in one[:2]):
            raise TextError("an empty question or context", fix="give some words")
        answers, warned = self._answers(asked, self.layout.encode(asked), top)[0], self.layout.warnings(asked)
        return [Answering(own, warning) for own, warning in zip(answers, warned, strict=True)]

    @checks_arguments
    def measure(self, questions: Sequence[Question]) -> dict[str, float]:
        """The loss in nats per window, and exact match and F1 as defined by SQuAD (Rajpurkar et al. 2016)."""
        refuse_nothing(questions)
        encoded = self.layout.encode(questions)
        found, loss = self._answers(questions, encoded, 1)
        said = [best.text for (best, *_) in found]
        right = [[span.text for span in one.answers] or [""] for one in questions]
        each = list(zip(said, right, strict=True))
        return {
            "loss": loss,
            "exact_match": sum(normalised(ours) in map(normalised, own) for ours, own in each) / len(each),
            "f1": sum(max(word_f1(ours, one) for one in own) for ours, own in each) / len(each),
        }

    def _answers(
        self, questions: Sequence[Question], encoded: Sequence[Sequence[Window]], top: int
    ) -> tuple[list[list[Answer]], float]:
        """The answers, and the mean loss of all windows."""
        windows = [one for own in encoded for one in own]
        logits = token_logits(self.model, [one.framed for one in windows])
        batches = (answer_batch([one]) for one in windows)
        pairs = zip(logits, batches, strict=True)
        nats = sum(float(span_loss(own[None], batch.valid, batch.target)) for own, batch in pairs)
        left = iter(logits)
        asked = zip(questions, encoded, strict=True)
        ranked = [self._rank(one.context, own, [next(left) for _ in own], top) for one, own in asked]
        return ranked, nats / max(1, len(windows))

    def _rank(self, context: str, windows: Sequence[Window], logits: Sequence[Tensor], top: int) -> list[Answer]:
        """The best spans of all windows. The score of "no answer" is the lowest of all windows."""
        found: dict[tuple[int, int], float] = {}
        for window, own in zip(windows, logits, strict=True):
            begins, ends = own[window.begin : window.begin + len(window.offsets)].unbind(1)
            scores = begins[:, None] + ends
            allowed = torch.ones_like(scores, dtype=torch.bool).triu().tril(self.spec.longest - 1)
            flat = scores.masked_fill(~allowed, -torch.inf).flatten()
            best = flat.topk(min(BEST, int(allowed.sum())))
            for score, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                begin, end = divmod(place, len(ends))
                span = trimmed(context, window.offsets[begin][0], window.offsets[end][1])
                found[span] = max(score, found.get(span, -torch.inf))
        found = {(a, b): score for (a, b), score in found.items() if a < b}
        if self.spec.unanswerable or not found:
            found[0, 0] = min(float(own[0].sum()) for own in logits)
        spans = sorted(found, key=lambda span: -found[span])
        chances = torch.tensor([found[span] for span in spans]).softmax(0).tolist()
        return [Answer(context[a:b], score, a, b) for (a, b), score in zip(spans, chances, strict=True)][:top]


def normalised(text: str) -> str:
    """The text in lower case, without punctuation, articles and extra spaces, as compared by SQuAD; composed."""
    return " ".join(ARTICLES.sub(" ", composed(text).lower().translate(PUNCTUATION)).split())


def word_f1(found: str, right: str) -> float:
    """The F1 of the words as multisets; where one text has no words, whether the other has none either."""
    ours, theirs = normalised(found).split(), normalised(right).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))


class AnsweredQuestion(TypedDict):
    """An answer as a record."""

    question: str
    answers: list[dict[str, Any]]  # of `Answer`
    warning: NotRequired[str]


def answer_questions(
    answerer: Answerer, questions: Sequence[str], options: AnswerOptions
) -> Iterator[AnsweredQuestion]:
    """Answers questions. Raises InputError for a question without a text."""
    refuse_other_count("contexts", options.contexts, questions)
    own = options.contexts or ("",) * len(questions)
    contexts = [one or options.context for one in own]
    if not all(contexts):
        raise TextError("a question without a text to answer it from", fix="give --context FILE")
    for question, found in zip(questions, answerer.search(questions, contexts, top=options.top), strict=True):
        made: AnsweredQuestion = {"question": question, "answers": [one._asdict() for one in found.answers]}
        if found.warning:
            made["warning"] = found.warning
        yield made


ASK = Ask(answer_questions, AnswerOptions, gathers=lambda options: not options.contexts)


def score_answers(answerer: Answerer, options: DataOptions) -> Iterator[Scored]:
    for name, questions in read_tests(options.path, read_answered, kinds=KINDS).items():
        yield Scored(name, answerer.measure(questions), examples=map(repr, questions))
