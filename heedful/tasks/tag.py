"""Labelling the words of a sentence: `TagTask` is what the training loop needs, `Tagger` what a person uses.

A word is several tokens, and its label is read at the first of them (Devlin et al. 2019, section 5.3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.batches import shuffled_groups
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.tagged import Sentence
from heedful.data.text import sanitise
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.models.inference import for_inference
from heedful.models.token_classifier import TokenClassifier
from heedful.tasks.folder import read_run
from heedful.tasks.metrics import accuracy, f1, has_spans, span_scores
from heedful.tasks.reading import token_logits
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loss import Loss

Ids = list[int]
NONE = -1  # what stands in place of a label at tokens that have none, and for a label that was not learnt


@dataclass(frozen=True, kw_only=True)
class About:
    """What the answers of a model mean: task.json, beside the task's name."""

    labels: tuple[str, ...]


class Piece(NamedTuple):
    """Words of one sentence that are read at once, and the place of each one's first token."""

    framed: Framed
    places: Ids


class Layout:
    """From words to sequences of at most `context` tokens: a longer sentence is read in several, between words."""

    def __init__(self, tokenizer: Tokenizer, context: int) -> None:
        self.tokenizer, self.frame = tokenizer, Frame.of_encoder(tokenizer)
        self.room = context - self.frame.extra(pair=False)
        self.parted = 0  # sentences that were read in several

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[Piece]]:
        words = sorted({word for words in sentences for word in words})
        whole = self.tokenizer.encode_whole([f" {word}" for word in words])
        unknown = self.tokenizer.pad if self.tokenizer.unk is None else self.tokenizer.unk
        ids = {word: (own or [unknown])[: self.room] for word, own in zip(words, whole, strict=True)}
        made = [list(self._pieces([ids[word] for word in sentence])) for sentence in sentences]
        self.parted += sum(len(pieces) > 1 for pieces in made)
        return made

    def _pieces(self, words: Sequence[Ids]) -> Iterator[Piece]:
        tokens: Ids = []
        places: Ids = []
        for word in words:
            if len(tokens) + len(word) > self.room:
                yield Piece(self.frame.put(tokens), places)
                tokens, places = [], []
            places = [*places, len(self.frame.begin) + len(tokens)]
            tokens = [*tokens, *word]
        if places:
            yield Piece(self.frame.put(tokens), places)


class Batch(NamedTuple):
    """Rows of words; `labels` has that of a word at its first token, and NONE elsewhere. Segment 0 is padding."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    types: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def part(self, rank: int, ranks: int) -> "Batch":
        """The rows that are `rank`'s of `ranks` that share this batch."""
        return Batch(*(tensor[rank::ranks] for tensor in self))


Labelled = tuple[Piece, Ids]  # with the number of each word's label


def labelled(layout: Layout, sentences: Sequence[Sentence], labels: Sequence[str]) -> list[Labelled]:
    """The pieces of the sentences with their words' labels; NONE for a label that is none of `labels`."""
    number = {label: n for n, label in enumerate(labels)}
    made = []
    for one, pieces in zip(sentences, layout.encode([one.words for one in sentences]), strict=True):
        wanted = iter(one.labels)
        made += [(piece, [number.get(next(wanted), NONE) for _ in piece.places]) for piece in pieces]
    return made


def batch_of(examples: Sequence[Labelled]) -> Batch:
    tokens, segments, types = rectangle([piece.framed for piece, _ in examples])
    labels = torch.full_like(tokens, NONE)
    for row, (piece, own) in zip(labels, examples, strict=True):
        row[torch.tensor(piece.places)] = torch.tensor(own)
    return Batch(tokens, segments, types, labels)


class TagTask:
    """Batches of sentences, and the cross-entropy of their words' labels."""

    def __init__(self, examples: Sequence[Labelled], recipe: TrainRecipe) -> None:
        self.examples, self.recipe = examples, recipe
        self.lengths = [len(piece.framed.tokens) for piece, _ in examples]
        self._kept: tuple[int, list[Batch]] | None = None

    def batches(self, epoch: int) -> list[Batch]:
        if self._kept is None or self._kept[0] != epoch:
            groups = shuffled_groups(self.lengths, self.recipe.tokens, self.recipe.seed, epoch)
            self._kept = epoch, [batch_of([self.examples[i] for i in group]) for group in groups]
        return self._kept[1]

    def loss(self, model: TokenClassifier, batch: Batch) -> Loss:
        *read, labels = (part.to(model.out.weight.device) for part in batch)
        logits, chosen = model(*read).float(), labels != NONE
        smoothing = self.recipe.smoothing or 0.0
        total = F.cross_entropy(logits[chosen], labels[chosen], reduction="sum", label_smoothing=smoothing)
        return Loss(total, int((batch.labels != NONE).sum()))


class Word(NamedTuple):
    word: str
    label: str
    score: float  # the label's probability


class Tagger:
    """A trained token classifier and its tokenizer."""

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        own = {key: value for key, value in about.items() if key != "task"}
        self.labels = from_json(About, own, where="task.json").labels
        self.layout = Layout(tokenizer, self.context)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Tagger":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "tag":
            raise InputError(f"a model for {about.get('task')!r}, not for tagging words", where=str(run))
        return cls(for_inference(model.to(device)), tokenizer, about)

    @property
    def context(self) -> int:
        """How many tokens the model can read at once."""
        return self.model.config.encoder.embed.places.size

    def tag(self, texts: Sequence[str]) -> list[list[Word]]:
        """The label of each word of each text, words being what stands between blanks: "end." is one."""
        return self.tag_words([text.split() for text in texts])

    def tag_words(self, sentences: Sequence[Sequence[str]]) -> list[list[Word]]:
        """The label of each word."""
        sentences = [[*map(sanitise, words)] for words in sentences]
        made = []
        for words, logits in zip(sentences, self._logits(self.layout.encode(sentences)), strict=True):
            best = logits.softmax(1).max(1)
            found = zip(words, best.indices.tolist(), best.values.tolist(), strict=True)
            made.append([Word(word, self.labels[n], score) for word, n, score in found])
        return made

    def evaluate(self, sentences: Sequence[Sentence]) -> dict[str, float]:
        """The loss in nats a word, accuracy and macro F1; and of labels that say where spans begin and go on,
        precision, recall and F1 of the spans. A label that was not learnt is never right, and has no loss."""
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

    def _logits(self, sentences: Sequence[Sequence[Piece]]) -> list[Tensor]:
        """Of each sentence, a row a word."""
        found = iter(token_logits(self.model, [piece.framed for own in sentences for piece in own]))
        none = torch.empty(0, len(self.labels))
        return [torch.cat([none, *(next(found)[piece.places] for piece in own)]) for own in sentences]
