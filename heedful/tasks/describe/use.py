"""Writes texts about pictures with a trained model.

B pictures of N channels and H x W pixels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, NotRequired, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.images.captions import Captioned, read_test_captions
from heedful.data.images.files import Images, Preparation, SomeImages, each_of
from heedful.data.parts import scored_by_name
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.contract import with_attention
from heedful.decode.settings import Decoding, DecodingOptions
from heedful.errors import InputError
from heedful.metrics.texts import References, character_errors, score_bleu
from heedful.models import ImageToText
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.describe.options import DescribeOptions
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.pictures import prepared
from heedful.tasks.shared.served import TextModel, opened, size_in_words, spec_of, text_facts
from heedful.tasks.shared.writing import predicted, written
from heedful.training.loss import Loss, head_cross_entropy

READ = 64  # pictures in a batch


@dataclass(frozen=True, kw_only=True)
class DescribeSpec:
    """The content of task.json besides the task's name: how pictures are prepared, whether texts answer questions, how
    a model searches, which tokens never come, and whether it is shown grey in place of every picture."""

    preparation: Preparation
    questions: Literal["never", "sometimes", "always"] = "never"
    decode: DecodingOptions = field(default_factory=lambda: DecodingOptions(beam=1))
    forbidden: tuple[int, ...] = ()
    blank: bool = False

    def encoded(self, questions: Sequence[str], tokenizer: Tokenizer, *, longest: int) -> list[Ids]:
        """The tokens of each question. Raises InputError for one that such a model does not answer, or of `longest`
        tokens, which leave no room for a text; and for none where it needs one."""
        questions = [spaced(question) for question in questions]
        if self.questions == "never" and any(questions):
            raise InputError("this model answers no questions", fix="leave out the question")
        if self.questions == "always" and not all(questions):
            raise InputError("this model answers questions about pictures", fix='--question "what is it?"')
        begins = tokenizer.encode(questions)
        for question, begin in zip(questions, begins, strict=True):
            if len(begin) >= longest:
                what = f"a question of {len(begin)} tokens, but the model reads at most {longest - 1}"
                raise InputError(what, where=f"{question[:40]}...", fix="ask for less")
        return begins

    def shown(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B N H W"]:
        """What the model sees of prepared pictures."""
        return torch.zeros_like(pixels) if self.blank else pixels


class Described(NamedTuple):
    """The number of a picture, what is asked ("": nothing), and the texts that are right."""

    picture: int
    question: str
    texts: list[str]


def described(part: Captioned) -> list[Described]:
    """The texts of all pictures, those that answer the same question of the same picture together."""
    rows: dict[tuple[int, str], list[str]] = {}
    for i, texts in enumerate(part.captions):
        questions = part.questions[i] if part.questions else [""] * len(texts)
        for question, text in zip(questions, texts, strict=True):
            rows.setdefault((i, spaced(question)), []).append(spaced(text))
    return [Described(*key, texts) for key, texts in rows.items()]


def spaced(text: str) -> str:
    """The words of a text with one space between them."""
    return " ".join(text.split())


def text_scores(texts: Sequence[str], references: References) -> dict[str, float]:
    """`exact`: the share of texts that are one of their references; `cer`: characters that are wrong, a character of
    the references; and BLEU."""
    scores = score_bleu(texts, references)
    return {"exact": scores.exact, "cer": character_errors(texts, references), "bleu": scores.bleu}


class Describer(TextModel[ImageToText]):
    """A trained model that writes texts about pictures, and its tokenizer."""

    task: ClassVar = "describe"
    purpose: ClassVar = "describing pictures"

    def __init__(self, model: ImageToText, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(DescribeSpec, about)
        self.decoding = Decoding(**self.spec.decode)

    @one_or_many("questions")
    def describe(
        self, files: Sequence[str | Path], *, questions: Sequence[str] = (), decode: Decoding | None = None
    ) -> list[str]:
        """The text of each picture; with `questions`, one for each, the answer. `decode` says how to search. Raises
        MissingError or InputError."""
        return self.texts(opened(files, self.spec.preparation), questions or [""] * len(files), decode)

    @property
    def longest(self) -> int:
        """Tokens of a text at most, with its question."""
        return self.model.config.target.context_length - 1

    def texts(self, images: Images, questions: Sequence[str], decode: Decoding | None = None) -> list[str]:
        """The text of each picture about what is asked, "" for nothing. Raises InputError for a question that the model
        is not made for or cannot read, and for none where it needs one."""
        return [self.read(ids) for ids in self.ids(images, questions, decode)]

    def read(self, ids: Ids) -> str:
        return spaced(self.tokenizer.decode(ids))

    @torch.inference_mode()
    def ids(self, images: Images, questions: Sequence[str], decode: Decoding | None = None) -> list[Ids]:
        """The tokens of these texts."""
        how, begins = decode or self.decoding, self.encoded(questions)
        longest = [min(len(begin) + (how.longest or self.longest), self.longest) for begin in begins]
        height, width = self.model.config.encoder.patches.grid
        steps = how.beam * with_attention(max(longest, default=0))
        self.spend(len(images) * (height * width + steps), how.beam * max(longest, default=0))
        rows: list[Ids] = []
        for pixels, _ in prepared(images, self.spec.preparation, most=READ):
            group = slice(len(rows), len(rows) + len(pixels))
            rows += written(
                self.model,
                self.spec.shown(pixels).to(self.model.head.weight.device),
                begins[group],
                self.tokenizer,
                how,
                longest=longest[group],
                at_once=self.at_once,
                forbidden=self.spec.forbidden,
            )
        return rows

    def encoded(self, questions: Sequence[str]) -> list[Ids]:
        """The tokens of each question. Raises InputError."""
        return self.spec.encoded(questions, self.tokenizer, longest=self.longest)

    @checks_arguments
    def measure(self, part: Captioned) -> dict[str, float]:
        """The loss in nats a token, and `text_scores`."""
        return self.measured(part)[0]

    def measured(self, part: Captioned) -> tuple[dict[str, float], list[str]]:
        """The same, and the texts."""
        refuse_nothing(part)
        rows, total, count = described(part), 0.0, 0
        images = SomeImages(part.images, [row.picture for row in rows])
        texts = self.texts(images, [row.question for row in rows])
        begins = self.tokenizer.encode([row.question for row in rows])
        targets = self.tokenizer.encode([row.texts[0] for row in rows])
        fitting = [i for i in range(len(rows)) if len(begins[i]) + len(targets[i]) <= self.longest]
        images = SomeImages(part.images, [rows[i].picture for i in fitting])
        for pixels, _ in prepared(images, self.spec.preparation, most=READ):
            group, fitting = fitting[: len(pixels)], fitting[len(pixels) :]
            pairs = ([begins[i] for i in group], [targets[i] for i in group])
            with torch.inference_mode():
                loss = text_loss(self.model, self.spec.shown(pixels), *pairs, self.tokenizer)
            total, count = total + float(loss.total), count + loss.count
        scores = text_scores(texts, [row.texts for row in rows])
        return ({"loss": total / count} if count else {}) | scores, texts


def text_loss(
    model: ImageToText,
    pixels: Float[Tensor, "B N H W"],
    questions: Sequence[Ids],
    texts: Sequence[Ids],
    tokenizer: Tokenizer,
    *,
    pictures: Sequence[int] | None = None,
    longest: int | None = None,
) -> Loss:
    """The cross-entropy of each text and its end, behind the question that it begins with. `pictures`: the row of
    `pixels` that each text is about, where it is not its own. `longest`: as in `predicted`."""
    memory = model.encode(pixels.to(model.head.weight))
    memory = memory if pictures is None else memory[[*pictures]]
    hidden, following = predicted(model, memory, questions, texts, tokenizer, longest=longest)
    return Loss(head_cross_entropy(model.head, hidden, following), len(following))


class DescribedPicture(TypedDict):
    """An answer as a record."""

    input: str
    question: NotRequired[str]
    text: str


def describe_pictures(
    describer: Describer, files: Sequence[str], options: DescribeOptions
) -> Iterator[DescribedPicture]:
    how = Decoding(**(describer.spec.decode | options.decode))
    question = options.question or ""
    for file, text in zip(files, describer.describe(files, questions=[question] * len(files), decode=how), strict=True):
        record = DescribedPicture(input=file, text=text)
        if question:
            record["question"] = question
        yield record


ASK = Ask(describe_pictures, DescribeOptions, reads="pictures")


def score_describer(describer: Describer, options: DataOptions) -> Iterator[Scored]:
    tests = read_test_captions(options.path, channels=describer.spec.preparation.channels)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, describer.measure(part), examples=each_of(part.images))


def describer_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(DescribeSpec, dict(saved.about))
    seen = {"pictures": "grey in place of each" if spec.blank else size_in_words(spec.preparation)}
    asked = {} if spec.questions == "never" else {"questions": spec.questions}
    return text_facts(saved, saved.config.target.context_length) | seen | asked
