"""Classifies texts with a trained model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, NotRequired, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.batches import of_like_length
from heedful.data.parts import read_tests
from heedful.data.text.labelled import TABLES, Example, read_examples
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, TextError
from heedful.metrics.labels import accuracy, f1, pearson, spearman
from heedful.models.classifier import Classifier
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.classify.layout import ClassifyLayout, ClassifySpec, Encoded, classify_batch, label_loss
from heedful.tasks.classify.options import ClassifyOptions
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.lengths import cut_warning, warn
from heedful.tasks.shared.one_or_many import one_or_many, refuse_other_count
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.reading import READ
from heedful.tasks.shared.served import Reads, TextModel, refuse_nan_answers, spec_of


class Labelling(NamedTuple):
    """The labels of a text with their probabilities, the best first; and a warning, or ""."""

    labels: list[tuple[str, float]]
    warning: str = ""


class TextClassifier(TextModel[Classifier]):
    """A trained text classifier and its tokenizer."""

    task: ClassVar = "classify"
    purpose: ClassVar = "classifying texts"

    def __init__(self, model: Classifier, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(ClassifySpec, about)
        self.layout = ClassifyLayout(tokenizer, self.spec, model.config.body)

    @property
    def reads(self) -> Reads:
        body = self.model.lm or self.model.encoder
        assert body is not None
        place: Literal["first", "last"] = "last" if self.model.lm else "first"
        return Reads(body, self.layout.frame, self.tokenizer.encode, "either", place, names=self.layout.names)

    @one_or_many("pairs", "choices")
    def classify(
        self, texts: Sequence[str], *, pairs: Sequence[str] = (), choices: Sequence[Sequence[str]] = ()
    ) -> list[list[tuple[str, float]]]:
        """The labels, or the choices, of each text with their probabilities, the best first; for a model of scores,
        ("score", the score).

        `pairs`: a second text, or a question, for each text. Warns about texts that are too long to be read as a whole.
        Raises InputError where a model of choices gets none, or another model gets some.
        """
        found = self.search(texts, pairs=pairs, choices=choices)
        warn([one.warning for one in found])
        return [one.labels for one in found]

    @checks_arguments
    def search(
        self, texts: Sequence[str], *, pairs: Sequence[str] = (), choices: Sequence[Sequence[str]] = ()
    ) -> list[Labelling]:
        """Like `classify`, but returns the warnings instead of issuing them."""
        if bool(choices) != (self.spec.answer == "choice"):
            what = "this model chooses" if not choices else "this model does not choose"
            raise InputError(what, fix="give choices" if not choices else "give no choices")
        examples = [Example(text) for text in texts]
        if pairs:
            examples = [replace(one, pair=pair) for one, pair in zip(examples, pairs, strict=True)]
        if choices:
            examples = [replace(one, choices=tuple(own)) for one, own in zip(examples, choices, strict=True)]
        if any(not text.strip() for one in examples for text in (one.text, *one.choices)):
            raise TextError("an empty text", fix="give some words")
        unanswered = [replace(one, label=(*self.spec.labels, "")[0]) for one in examples]
        encoded = self.layout.encode(unanswered)
        sizes = [own.size for own in encoded]
        self.spend(sum(sizes), max(sizes, default=0))
        return [
            Labelling(self._labels(one.choices or self.spec.labels, logits), cut_warning(own.read, own.tokens))
            for one, own, logits in zip(unanswered, encoded, self._logits(encoded), strict=True)
        ]

    def _labels(self, names: Sequence[str], logits: Float[Tensor, "L"]) -> list[tuple[str, float]]:
        if self.spec.answer == "score":
            return [("score", float(logits[0]) * self.spec.deviation + self.spec.mean)]
        chances = logits.sigmoid() if self.spec.answer == "labels" else logits.softmax(0)
        listed = zip(names, chances.tolist(), strict=False)  # padded to the batch's most choices
        return sorted(listed, key=lambda item: -item[1])

    @checks_arguments
    def measure(self, examples: Sequence[Example]) -> dict[str, float]:
        """The loss, and: accuracy and macro F1 of labels; F1 (macro, micro) and exact matches of sets of labels;
        Pearson's and Spearman's correlation, and the mean squared error, of scores; accuracy of choices."""
        refuse_nothing(examples)
        encoded = self.layout.encode(examples)
        logits = self._logits(encoded)
        losses = [
            label_loss(own[None], torch.tensor([one.target]), self.spec.answer)
            for own, one in zip(logits, encoded, strict=True)
        ]
        loss = float(sum(losses, torch.zeros(()))) / len(examples)
        labels = self.spec.labels
        match self.spec.answer:
            case "score":
                found = [float(own[0]) * self.spec.deviation + self.spec.mean for own in logits]
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
                return {
                    "loss": loss,
                    "accuracy": accuracy([int(own.argmax()) for own in logits], [one.choice for one in examples]),
                }
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
        for group in of_like_length(lengths, READ):
            batch = classify_batch([encoded[i] for i in group])
            logits = self.model(*(part.to(device) for part in batch[:3])).float().cpu()
            refuse_nan_answers(logits)
            for i, own in zip(group, logits, strict=True):
                found[i] = own
        return found


class Classified(TypedDict):
    """An answer as a record: the labels with their probabilities, the best first."""

    input: str
    pair: NotRequired[str]
    labels: list[dict[str, Any]]
    warning: NotRequired[str]


def classify_texts(classifier: TextClassifier, texts: Sequence[str], options: ClassifyOptions) -> Iterator[Classified]:
    refuse_other_count("pairs", options.pairs, texts)
    pairs = [own or options.pair for own in options.pairs or ("",) * len(texts)]
    choices = [options.choices] * len(texts) if options.choices else ()
    for text, pair, found in zip(texts, pairs, classifier.search(texts, pairs=pairs, choices=choices), strict=True):
        labels = [{"label": label, "score": score} for label, score in found.labels]
        made: Classified = {"input": text, "labels": labels}
        if pair:
            made = {"input": text, "pair": pair, "labels": labels}
        if found.warning:
            made["warning"] = found.warning
        yield made


ASK = Ask(classify_texts, ClassifyOptions, gathers=lambda options: not options.pairs)


def score_classifier(classifier: TextClassifier, options: DataOptions) -> Iterator[Scored]:
    """Scores the model on test sets. Raises InputError for examples whose answers are of another kind than the
    model's."""

    def read(path: Path) -> list[Example]:
        answer, examples = read_examples(path)
        if answer != classifier.spec.answer:
            what = f"holds a {answer}, and the model gives a {classifier.spec.answer}"
            raise InputError(what, where=str(path), fix="give examples as it was trained on")
        return examples

    for name, examples in read_tests(options.path, read, kinds=TABLES).items():
        yield Scored(name, classifier.measure(examples), examples=map(repr, examples))


def classifier_facts(saved: Saved) -> dict[str, Any]:
    assert saved.tokenizers is not None
    spec = spec_of(ClassifySpec, dict(saved.about))
    answers = ", ".join(spec.labels) or spec.answer
    return {"task": "classify", "answers": answers, "vocabulary": saved.tokenizers[0].size}
