"""Lays out texts as sequences that a model reads as a whole: a text, two texts, or a text and choices.

A language model reads from left to right (Radford et al. 2018, section 3.3 and figure 1): start text extract; start
text delimiter pair extract, and for a symmetric comparison also the reverse order; start text question delimiter choice
extract, for each choice. An encoder reads the same with its own tokens around the texts (Devlin et al. 2019, sections
3.2, 4.1 and 4.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data.frame import Frame, Framed, rectangles
from heedful.data.text.labelled import AnswerKind, Example
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.tasks.shared.asked import refuse_unknown_labels


@dataclass(frozen=True, kw_only=True)
class ClassifySpec:
    """The content of task.json besides the task's name: what a model's answers mean."""

    answer: AnswerKind
    labels: tuple[str, ...] = ()
    mean: float = 0.0  # of the training scores, which the model predicts standardised
    deviation: float = 1.0
    symmetric: bool = False  # a pair is read in both orders
    frame: tuple[tuple[int, ...], ...] = ()  # before, between and after texts; of language models from elsewhere


@dataclass(frozen=True)
class Encoded:
    """An example's sequences, and its answer as the loss needs it: an index, a number, or a 0 or 1 per label; and how
    many tokens its texts have, and how many are read, in the sequence that loses most."""

    sequences: list[Framed]
    target: list[float]
    read: int
    tokens: int

    @property
    def size(self) -> int:
        """The number of tokens that are read, padding included."""
        return len(self.sequences) * max(len(one.tokens) for one in self.sequences)


class Sequenced(NamedTuple):
    """A sequence, the number of text tokens in it, and the number before texts were cut."""

    framed: Framed
    read: int
    tokens: int


class ClassifyBatch(NamedTuple):
    """Examples with N sequences each; where an example has fewer, the rest are empty. Segment 0 is padding."""

    tokens: Int[Tensor, "B N T"]
    segments: Int[Tensor, "B N T"]
    types: Int[Tensor, "B N T"]
    target: Float[Tensor, "B A"]


class ClassifyLayout:
    """Lays out texts as sequences that the body can read; where a sequence is too long, its longest texts lose their
    ends.

    A language model has no tokens for the border and the end of texts: its vocabulary is extended by two tokens.
    """

    def __init__(self, tokenizer: Tokenizer, spec: ClassifySpec, body: LMConfig | EncoderConfig) -> None:
        self.tokenizer, self.spec, self.context = tokenizer, spec, body.embed.context_length
        self.names: dict[int, str] = {}  # of tokens that are not in the vocabulary
        if isinstance(body, EncoderConfig):
            self.frame, self.tokens = Frame.of_encoder(tokenizer), body.embed.vocab_size
        elif spec.frame:
            self.frame, self.tokens = Frame(*map(list, spec.frame)), body.embed.vocab_size
        else:
            delimiter, extract = tokenizer.size, tokenizer.size + 1
            most = max(extract + 1, body.embed.vocab_size)  # some have rows for tokens outside the vocabulary
            self.frame, self.tokens = Frame([tokenizer.bos], [delimiter], [extract]), most
            self.names = {delimiter: "<delimiter>", extract: "<extract>"}
        self.cut = 0  # the number of sequences with a text that was cut

    def encode(self, examples: Sequence[Example]) -> list[Encoded]:
        """Encodes examples. Raises InputError for a label that the model does not have."""
        texts = {text for one in examples for text in (one.text, one.pair, *one.choices)}
        ids = dict(zip(texts, self.tokenizer.encode([*texts]), strict=True))
        return [self._encoded(one, ids) for one in examples]

    def _encoded(self, one: Example, ids: Mapping[str, Ids]) -> Encoded:
        made = self._sequences(one, ids)
        _, read, tokens = max(made, key=lambda own: own.tokens - own.read)
        return Encoded([own.framed for own in made], self._target(one), read, tokens)

    def _sequences(self, one: Example, ids: Mapping[str, Ids]) -> list[Sequenced]:
        text, pair = ids[one.text], ids[one.pair]
        if self.spec.answer == "choice":
            return [self._sequence([text, pair], ids[choice]) for choice in one.choices]
        if not one.pair:
            return [self._sequence([text])]
        orders = [(text, pair), (pair, text)] if self.spec.symmetric else [(text, pair)]
        return [self._sequence([first], second) for first, second in orders]

    def _sequence(self, first: list[Ids], second: Ids | None = None) -> Sequenced:
        parts = first if second is None else [*first, second]
        room, tokens = self.context - self.frame.extra(pair=second is not None), sum(map(len, parts))
        if tokens > room:
            self.cut += 1
            most = max(t for t in range(room + 1) if sum(min(len(ids), t) for ids in parts) <= room)
            parts = [ids[:most] for ids in parts]
        read = sum(map(len, parts))
        if second is None:
            return Sequenced(self.frame.put([*chain.from_iterable(parts)]), read, tokens)
        return Sequenced(self.frame.put([*chain.from_iterable(parts[:-1])], parts[-1]), read, tokens)

    def _target(self, one: Example) -> list[float]:
        spec = self.spec
        match spec.answer:
            case "choice":
                return [float(one.choice)]
            case "score":
                return [(one.score - spec.mean) / spec.deviation]
            case "labels":
                refuse_unknown_labels(one.labels, spec.labels)
                return [float(label in one.labels) for label in spec.labels]
            case _:
                refuse_unknown_labels([one.label], spec.labels)
                return [float(spec.labels.index(one.label))]


def classify_batch(examples: Sequence[Encoded]) -> ClassifyBatch:
    read = rectangles([one.sequences for one in examples])
    return ClassifyBatch(*read, torch.tensor([one.target for one in examples]))


def label_loss(
    logits: Float[Tensor, "B L"], target: Float[Tensor, "B A"], answer: AnswerKind, *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The loss, summed over the examples: cross-entropy in nats; for sets of labels, the sum of the binary
    cross-entropies; for a score, half its squared error, in standard deviations."""
    logits = logits.float()
    match answer:
        case "score":
            return 0.5 * (logits - target).square().sum()
        case "labels":
            return F.binary_cross_entropy_with_logits(logits, target, reduction="sum")
        case "choice":
            return F.cross_entropy(logits, target[:, 0].long(), reduction="sum")
        case _:
            return F.cross_entropy(logits, target[:, 0].long(), reduction="sum", label_smoothing=smoothing)
