"""Saying of a text what it is: `ClassifyTask` is what the training loop needs, `TextClassifier` what a person uses.

A text, two texts, or a text and choices become sequences that one model reads whole. A language model does so from
start to end (Radford et al. 2018, section 3.3 and figure 1): start text extract; start text delimiter pair extract, and
to compare without an order the same the other way round; start text question delimiter choice extract, for each choice.
An encoder reads the same with its own tokens around the texts (Devlin et al. 2019, sections 3.2, 4.1 and 4.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.batches import grouped, shuffled_groups
from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.labelled import Answer, Example
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, NonFiniteError
from heedful.models.classifier import Classifier
from heedful.models.encoder import EncoderConfig
from heedful.models.inference import for_inference
from heedful.models.lm import LMConfig
from heedful.tasks.folder import read_run
from heedful.tasks.metrics import accuracy, f1, pearson, spearman
from heedful.tasks.recipe import TrainRecipe
from heedful.train.loss import Loss, linear_cross_entropy

Ids = list[int]
READ = 8192  # tokens that are read at a time


@dataclass(frozen=True, kw_only=True)
class About:
    """What the answers of a model mean: task.json, beside the task's name."""

    answer: Answer
    labels: tuple[str, ...] = ()
    mean: float = 0.0  # of the scores that it was trained on: the model's own are standard ones
    deviation: float = 1.0
    symmetric: bool = False  # a pair is read in both orders


@dataclass(frozen=True)
class Encoded:
    """The sequences of an example, and its answer as the loss wants it: an index, a number, or a 0 or 1 a label."""

    sequences: list[Framed]
    target: list[float]

    @property
    def size(self) -> int:
        """How many tokens it is read as, padding included."""
        return len(self.sequences) * max(len(one.tokens) for one in self.sequences)


class Batch(NamedTuple):
    """Examples of which each has N sequences, or fewer and then empty ones. Segment 0 is padding."""

    tokens: Int[Tensor, "B N T"]
    segments: Int[Tensor, "B N T"]
    types: Int[Tensor, "B N T"]
    target: Float[Tensor, "B A"]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def part(self, rank: int, ranks: int) -> "Batch":
        """The examples that are `rank`'s of `ranks` that share this batch."""
        return Batch(*(tensor[rank::ranks] for tensor in self))


class Layout:
    """From texts to sequences that the body can read: the longest text of a sequence loses its end.

    A language model has no tokens for the places where texts part and end: it gets two more than the vocabulary's.
    """

    def __init__(self, tokenizer: Tokenizer, about: About, body: LMConfig | EncoderConfig) -> None:
        self.tokenizer, self.about, self.context = tokenizer, about, body.embed.places.size
        if isinstance(body, EncoderConfig):
            self.frame, self.tokens = Frame.of_encoder(tokenizer), body.embed.vocab_size
        else:
            delimiter, extract = tokenizer.size, tokenizer.size + 1
            self.frame, self.tokens = Frame([tokenizer.bos], [delimiter], [extract]), extract + 1
        self.cut = 0  # sequences that lost an end

    def encode(self, examples: Sequence[Example]) -> list[Encoded]:
        """Raises InputError for a label that the model does not know."""
        texts = {text for one in examples for text in (one.text, one.pair, *one.choices)}
        ids = dict(zip(texts, self.tokenizer.encode([*texts]), strict=True))
        return [Encoded(list(self._sequences(one, ids)), self._target(one)) for one in examples]

    def _sequences(self, one: Example, ids: Mapping[str, Ids]) -> list[Framed]:
        text, pair = ids[one.text], ids[one.pair]
        if self.about.answer == "choice":
            return [self._sequence([text, pair], ids[choice]) for choice in one.choices]
        if not one.pair:
            return [self._sequence([text])]
        orders = [(text, pair), (pair, text)] if self.about.symmetric else [(text, pair)]
        return [self._sequence([first], second) for first, second in orders]

    def _sequence(self, first: list[Ids], second: Ids | None = None) -> Framed:
        parts = first if second is None else [*first, second]
        room = self.context - self.frame.extra(pair=second is not None)
        if sum(map(len, parts)) > room:
            self.cut += 1
            most = max(t for t in range(room) if sum(min(len(ids), t) for ids in parts) <= room)
            parts = [ids[:most] for ids in parts]
        if second is None:
            return self.frame.put([*chain.from_iterable(parts)])
        return self.frame.put([*chain.from_iterable(parts[:-1])], parts[-1])

    def _target(self, one: Example) -> list[float]:
        about = self.about
        match about.answer:
            case "choice":
                return [float(one.choice)]
            case "score":
                return [(one.score - about.mean) / about.deviation]
            case "labels":
                self._known(one.labels)
                return [float(label in one.labels) for label in about.labels]
            case _:
                self._known([one.label])
                return [float(about.labels.index(one.label))]

    def _known(self, labels: Sequence[str]) -> None:
        for label in labels:
            if label not in self.about.labels:
                what = f"the label {label!r} was not among those that this model learnt"
                raise InputError(what, fix=f"its labels are {', '.join(self.about.labels)}")


def batch_of(examples: Sequence[Encoded]) -> Batch:
    N = max(len(one.sequences) for one in examples)
    absent = Framed([], [])
    rows = [[*one.sequences, *[absent] * (N - len(one.sequences))] for one in examples]
    tokens, segments, types = (part.unflatten(0, (-1, N)) for part in rectangle([*chain.from_iterable(rows)]))
    return Batch(tokens, segments, types, torch.tensor([one.target for one in examples]))


class ClassifyTask:
    """Batches of labelled texts; the loss of their answers, and `auxiliary` times that of going on with the texts,
    which only a language model can.

    The auxiliary loss is in nats a token (Radford et al. 2018, equation 5), at the mean length of the examples.
    """

    def __init__(
        self, examples: Sequence[Encoded], recipe: TrainRecipe, *, answer: Answer, auxiliary: float = 0.0
    ) -> None:
        self.examples, self.recipe, self.answer = examples, recipe, answer
        tokens = sum(len(own.tokens) for one in examples for own in one.sequences)
        self.auxiliary = auxiliary * len(examples) / max(1, tokens)
        self._kept: tuple[int, list[Batch]] | None = None

    def batches(self, epoch: int) -> list[Batch]:
        if self._kept is None or self._kept[0] != epoch:
            lengths = [one.size for one in self.examples]
            groups = shuffled_groups(lengths, self.recipe.tokens, self.recipe.seed, epoch)
            self._kept = epoch, [batch_of([self.examples[i] for i in group]) for group in groups]
        return self._kept[1]

    def loss(self, model: Classifier, batch: Batch) -> Loss:
        tokens, segments, types, target = (part.to(model.out.weight.device) for part in batch)
        hidden = model.hidden(tokens, segments, types)
        smoothing = self.recipe.smoothing or 0.0
        total = answer_loss(model.answer(hidden, segments), target, self.answer, smoothing=smoothing)
        if self.auxiliary:
            assert model.lm is not None
            real, head = segments[:, :, 1:] > 0, model.lm.head
            following = tokens[:, :, 1:][real]
            total = total + self.auxiliary * linear_cross_entropy(
                hidden[:, :, :-1][real], head.weight, head.bias, following
            )
        return Loss(total, batch.rows)


def answer_loss(
    logits: Float[Tensor, "B L"], target: Float[Tensor, "B A"], answer: Answer, *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Summed over the examples: cross-entropy in nats, over all labels where several may hold; of a score half its
    squared error, in standard deviations."""
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


class TextClassifier:
    """A trained classifier and its tokenizer."""

    def __init__(self, model: Classifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.tokenizer, self.about = tokenizer, about
        own = {key: value for key, value in about.items() if key != "task"}
        self.says = from_json(About, own, where="task.json")
        self.layout = Layout(tokenizer, self.says, model.config.body)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "TextClassifier":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "classify":
            raise InputError(f"a model for {about.get('task')!r}, not for classifying texts", where=str(run))
        return cls(for_inference(model.to(device)), tokenizer, about)

    def classify(
        self, texts: Sequence[str], *, pairs: Sequence[str] = (), choices: Sequence[Sequence[str]] = ()
    ) -> list[list[tuple[str, float]]]:
        """The labels, or the choices, of each text, the best first, each with its probability; of a model that gives
        scores, ("score", the score).

        `pairs`: a second text, or a question, for each. Raises InputError where a model of choices gets none, and the
        other way round.
        """
        if bool(choices) != (self.says.answer == "choice"):
            what = "this model chooses" if not choices else "this model does not choose"
            raise InputError(what, fix="give choices" if not choices else "give no choices")
        examples = [Example(text) for text in texts]
        if pairs:
            examples = [replace(one, pair=pair) for one, pair in zip(examples, pairs, strict=True)]
        if choices:
            examples = [replace(one, choices=tuple(own)) for one, own in zip(examples, choices, strict=True)]
        if any(not text.strip() for one in examples for text in (one.text, *one.choices)):
            raise InputError("an empty text", fix="give some words")
        unanswered = [replace(one, label=(*self.says.labels, "")[0]) for one in examples]
        made = []
        for one, logits in zip(unanswered, self._logits(self.layout.encode(unanswered)), strict=True):
            if self.says.answer == "score":
                made.append([("score", float(logits[0]) * self.says.deviation + self.says.mean)])
                continue
            names = one.choices or self.says.labels
            chances = logits.sigmoid() if self.says.answer == "labels" else logits.softmax(0)
            listed = zip(names, chances.tolist(), strict=False)  # a batch may have more choices than this one
            made.append(sorted(listed, key=lambda item: -item[1]))
        return made

    def evaluate(self, examples: Sequence[Example]) -> dict[str, float]:
        """The loss, and: accuracy and macro F1 of labels; F1 (macro, micro) and exact matches of sets of labels;
        Pearson's and Spearman's correlation of scores; accuracy of choices."""
        encoded = self.layout.encode(examples)
        logits = self._logits(encoded)
        losses = [
            answer_loss(own[None], torch.tensor([one.target]), self.says.answer)
            for own, one in zip(logits, encoded, strict=True)
        ]
        loss = float(sum(losses, torch.zeros(()))) / len(examples)
        labels = self.says.labels
        match self.says.answer:
            case "score":
                found = [float(own[0]) * self.says.deviation + self.says.mean for own in logits]
                right = [one.score for one in examples]
                error = sum((a - b) ** 2 for a, b in zip(found, right, strict=True)) / len(right)
                return {
                    "loss": loss,
                    "pearson": pearson(found, right),
                    "spearman": spearman(found, right),
                    "squared_error": error,
                }
            case "labels":
                sets = [[name for name, logit in zip(labels, own, strict=True) if logit > 0] for own in logits]
                macro, micro = f1(sets, [one.labels for one in examples])
                exact = accuracy([*map(set, sets)], [set(one.labels) for one in examples])
                return {"loss": loss, "micro_f1": micro, "macro_f1": macro, "exact_sets": exact}
            case "choice":
                return {"loss": loss, "accuracy": accuracy([int(own.argmax()) for own in logits], _choices(examples))}
            case _:
                said = [labels[int(own.argmax())] for own in logits]
                right_labels = [one.label for one in examples]
                macro, _ = f1([[label] for label in said], [[label] for label in right_labels])
                return {"loss": loss, "accuracy": accuracy(said, right_labels), "macro_f1": macro}

    @torch.inference_mode()
    def _logits(self, encoded: Sequence[Encoded]) -> list[Float[Tensor, "L"]]:
        lengths = [one.size for one in encoded]
        found: list[Tensor] = [torch.empty(0)] * len(encoded)
        device = self.model.out.weight.device
        for group in grouped(sorted(range(len(lengths)), key=lengths.__getitem__), lengths, READ):
            batch = batch_of([encoded[i] for i in group])
            logits = self.model(*(part.to(device) for part in batch[:3])).float().cpu()
            if logits.isnan().any():
                raise NonFiniteError("the model's answers are not finite", fix="train it with a lower train.lr")
            for i, own in zip(group, logits, strict=True):
                found[i] = own
        return found


def _choices(examples: Sequence[Example]) -> list[int]:
    return [one.choice for one in examples]
