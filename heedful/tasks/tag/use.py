"""Tags the words of sentences with a trained model."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.frame import Frame
from heedful.data.lines import sanitise
from heedful.data.parts import read_tests
from heedful.data.text.tagged import KINDS, Sentence, read_sentences
from heedful.data.tokenizer import Tokenizer
from heedful.metrics.labels import accuracy, f1, has_spans, span_scores
from heedful.models.token_classifier import TokenClassifier
from heedful.run.task import NOTHING, Ask, NoOptions, Scored
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.reading import token_logits
from heedful.tasks.shared.served import Reads, TextModel, spec_of
from heedful.tasks.tag.layout import NONE, TagLayout, TagSpec, WordWindow


class Word(NamedTuple):
    word: str
    label: str
    score: float  # the label's probability


class Tagger(TextModel[TokenClassifier]):
    """A trained token classifier and its tokenizer."""

    task: ClassVar = "tag"
    purpose: ClassVar = "tagging words"

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(TagSpec, about)
        self.labels = self.spec.labels
        self.layout = TagLayout(tokenizer, self.context)

    @property
    def reads(self) -> Reads:
        return Reads(self.model.encoder, Frame.of_encoder(self.tokenizer), self.tokenizer.encode)

    @property
    def context(self) -> int:
        """The number of tokens that the model can read at once."""
        return self.model.config.embed.context_length

    @one_or_many()
    def tag(self, texts: Sequence[str]) -> list[list[Word]]:
        """The label of each word of each text; words are separated by spaces, so "end." is one word."""
        return self.tag_words([text.split() for text in texts])

    @checks_arguments
    def tag_words(self, sentences: Sequence[Sequence[str]]) -> list[list[Word]]:
        """The label of each word. Raises InputError for a sentence that is not split into words."""
        sentences = [[*map(sanitise, words)] for words in sentences]
        made = []
        for words, logits in zip(sentences, self._logits(self.layout.encode(sentences)), strict=True):
            best = logits.softmax(1).max(1)
            found = zip(words, best.indices.tolist(), best.values.tolist(), strict=True)
            made.append([Word(word, self.labels[n], score) for word, n, score in found])
        return made

    @checks_arguments
    def measure(self, sentences: Sequence[Sentence]) -> dict[str, float]:
        """The loss in nats per word, accuracy and macro F1; with labels that mark the beginnings and insides of spans,
        also the spans' precision, recall and F1. A label that was not learnt is never right, and has no loss."""
        refuse_nothing(sentences)
        all_logits = self._logits(self.layout.encode([one.words for one in sentences]))
        right = [[*one.labels] for one in sentences]
        found = [[self.labels[n] for n in logits.argmax(1).tolist()] for logits in all_logits]
        numbers = torch.tensor([self.labels.index(x) if x in self.labels else NONE for own in right for x in own])
        losses = F.cross_entropy(torch.cat(all_logits), numbers, reduction="none", ignore_index=NONE)
        flat = [label for own in found for label in own], [label for own in right for label in own]
        macro, _ = f1(*([[label] for label in own] for own in flat))
        scores = {
            "loss": float(losses.sum() / max(1, int((numbers != NONE).sum()))),
            "accuracy": accuracy(*flat),
            "macro_f1": macro,
        }
        return scores | (span_scores(found, right) if has_spans(self.labels) else {})

    def _logits(self, sentences: Sequence[Sequence[WordWindow]]) -> list[Tensor]:
        """The logits of each sentence, a row per word."""
        found = iter(token_logits(self.model, [piece.framed for own in sentences for piece in own]))
        none = torch.empty(0, len(self.labels))
        return [torch.cat([none, *(next(found)[piece.positions] for piece in own)]) for own in sentences]


def never_right(labels: Collection[str]) -> str:
    return f"labels that no training word has, and which are never right: {', '.join(sorted(labels))}"


class TaggedText(TypedDict):
    """An answer as a record."""

    text: str
    words: list[dict[str, Any]]  # of `Word`


def tag_texts(tagger: Tagger, texts: Sequence[str], options: NoOptions = NOTHING) -> Iterator[TaggedText]:
    for text, words in zip(texts, tagger.tag(texts), strict=True):
        yield {"text": text, "words": [word._asdict() for word in words]}


ASK = Ask(tag_texts, NoOptions)


def score_tags(tagger: Tagger, options: DataOptions) -> Iterator[Scored]:
    for name, sentences in read_tests(options.path, read_sentences, kinds=KINDS).items():
        new = {label for one in sentences for label in one.labels} - {*tagger.labels}
        notes = (never_right(new),) if new else ()
        yield Scored(name, tagger.measure(sentences), notes=notes, examples=map(repr, sentences))
