"""Trains a text classifier, from scratch, from a language model or from an encoder."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, ClassVar

from torch import Tensor

from heedful.data.batches import shuffled_groups
from heedful.data.text.labelled import AnswerKind, Example, Labelled, read_labelled
from heedful.errors import InputError, counted
from heedful.metrics.labels import accuracy, by_luck, entropy, f1, most_frequent
from heedful.models import config_from
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lm import LM, LMConfig
from heedful.run.card import CardText, Scores, score_table
from heedful.run.job import Measurement
from heedful.run.teacher import Teacher
from heedful.tasks.classify.baseline import bag_of_words
from heedful.tasks.classify.layout import (
    ClassifyBatch,
    ClassifyLayout,
    ClassifySpec,
    Encoded,
    classify_batch,
    label_loss,
)
from heedful.tasks.classify.recipe import ClassifyRecipe
from heedful.tasks.classify.use import TextClassifier
from heedful.tasks.shared.body import BodyJob
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.training.distillation import Outputs, yes_or_no
from heedful.training.loss import Loss, linear_cross_entropy

RANKS = {"label": "accuracy", "choice": "accuracy", "score": "spearman", "labels": "micro_f1"}
BAG = "bag_of_words"  # the key of its accuracy among the model's scores
TAUGHT = ("label", "labels")  # answers that a teacher's probabilities are learnt of
SHOWN = 8  # examples in a sample
AUXILIARY = 0.5  # the default for a language model (Radford et al. 2018, section 4.1)


class ClassifyTask:
    """Batches of labelled texts, and the loss of their answers, plus `auxiliary` times that of predicting the texts,
    which only a language model can do.

    The auxiliary loss is in nats per token (Radford et al. 2018, equation 5), scaled to the mean length of the
    examples.
    """

    def __init__(
        self,
        examples: Sequence[Encoded],
        plan: SmoothedTrain,
        *,
        answer: AnswerKind,
        auxiliary: float = 0.0,
        teacher: Teacher | None = None,
    ) -> None:
        self.examples, self.plan, self.answer, self.teacher = examples, plan, answer, teacher
        tokens = sum(len(own.tokens) for one in examples for own in one.sequences)
        self.auxiliary = auxiliary * len(examples) / max(1, tokens)

    def batches(self, epoch: int, model: object) -> list[ClassifyBatch]:
        lengths = [one.size for one in self.examples]
        groups = shuffled_groups(lengths, self.plan.tokens, self.plan.seed, epoch)
        return [classify_batch([self.examples[i] for i in group]) for group in groups]

    def loss(self, model: Classifier, batch: ClassifyBatch) -> Loss:
        tokens, segments, types, target = (part.to(model.out.weight.device) for part in batch)
        hidden = model.hidden(tokens, segments, types)
        read, smoothing = model.read(hidden, segments), self.plan.smoothing or 0.0
        total = label_loss(model.decide(read, segments), target, self.answer, smoothing=smoothing)
        loss = self._with_auxiliary(Loss(total, len(batch.tokens)), model, hidden, tokens, segments)
        if self.teacher is None:
            return loss

        def outputs(teacher: Classifier) -> Outputs:
            return self._outputs(teacher, teacher.read(teacher.hidden(tokens, segments, types), segments))

        return self.teacher.mixed(loss, self._outputs(model, read), outputs)

    def _outputs(self, model: Classifier, read: Tensor) -> Outputs:
        """Of each example what the head reads, and the head; of sets of labels, that of each label alone."""
        if self.answer == "labels":
            return Outputs(read.sum(1), lambda rows: yes_or_no(model.out(rows)))
        return Outputs(read.sum(1), model.out)

    def _with_auxiliary(self, loss: Loss, model: Classifier, hidden: Tensor, tokens: Tensor, segments: Tensor) -> Loss:
        if not self.auxiliary:
            return loss
        assert model.lm is not None
        real, head = segments[:, :, 1:] > 0, model.lm.head
        following = tokens[:, :, 1:][real]
        extra = self.auxiliary * linear_cross_entropy(
            hidden[:, :, :-1][real], head.weight, head.bias, following, softcap=model.lm.config.softcap
        )
        return Loss(loss.total + extra, loss.count, extra=extra)


class ClassifyJob(BodyJob[ClassifyRecipe, Labelled, Classifier]):
    unit: ClassVar = "examples"
    kinds: ClassVar = "a .jsonl, .tsv or .csv file, or a folder of such"
    served: ClassVar = TextClassifier
    starts: ClassVar = ("generate", "fill", "encode")
    answers: ClassifySpec

    def __init__(self, recipe: ClassifyRecipe, corpus: Labelled | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        body = self.body(pooler=True)
        self.answers = _spec(corpus, symmetric=recipe.classify.symmetric)
        if self.teacher is not None and corpus.answer not in TAUGHT:
            what = f"a {corpus.answer} has no probabilities of labels, which a teacher teaches"
            raise InputError(what, where="distil.teacher", fix="leave it out")
        least = {"label": 2, "labels": 1}.get(corpus.answer, 0)
        if len(self.answers.labels) < least:
            what = f"{counted(len(self.answers.labels), 'label')} in all of what is to be learnt from"
            raise InputError(what, where=corpus.name, fix=f"give examples of {least} or more")
        answers = {"choice": None, "score": 1}.get(corpus.answer, len(self.answers.labels))
        layout = ClassifyLayout(self.tokenizer, self.answers, body)
        if isinstance(body, LMConfig):
            grown = replace(body, embed=replace(body.embed, vocab_size=layout.tokens))
            self.config, auxiliary = ClassifierConfig(lm=grown, answers=answers), AUXILIARY
        else:
            self.config, auxiliary = ClassifierConfig(encoder=body, answers=answers), 0.0
            if recipe.classify.auxiliary:
                what = "an encoder cannot predict texts, which classify.auxiliary is the weight of"
                raise InputError(what, fix="leave out classify.auxiliary")
        self.auxiliary = auxiliary if recipe.classify.auxiliary is None else recipe.classify.auxiliary
        self.examples = layout.encode(corpus.train)
        if recipe.train.lora and self._grows():
            what = "the tokens where texts part and end are new to the model"
            self.notes.append(f"{what}, so the vectors of all tokens are learnt beside the adapters")
        if layout.cut:
            self.notes.append(
                f"the end of a text is cut from {counted(layout.cut, 'sequence')} of more than {layout.context} tokens"
            )
        for examples in (corpus.valid, *corpus.tests.values()):
            layout.encode(examples)  # raises InputError for unknown labels before the training
        self.rank = RANKS[corpus.answer]
        self.score_names = (self.rank,)

    def read(self) -> Labelled:
        return read_labelled(self.recipe.data.path)

    def texts(self) -> list[str]:
        return [text for one in self.corpus.train for text in (one.text, one.pair, *one.choices) if text]

    def new_heads(self) -> Collection[str]:
        """The head; the pooler where the encoder had none; and a language model's token embeddings, because two tokens
        are new."""
        begun = None if self.start is None else config_from(self.start.model)
        lacks = isinstance(begun, EncoderConfig) and not begun.pooler
        new = [*(["encoder.pooler"] if lacks else []), *(["lm.embed.tokens"] if self._grows() else [])]
        return (*super().new_heads(), *new)

    def _grows(self) -> bool:
        """Whether the vocabulary of the model to start from is extended."""
        return self.start is not None and isinstance(config_from(self.start.model), LMConfig)

    def describe(self) -> str:
        spec = self.answers
        what = {"score": "scored", "choice": "with choices"}.get(
            spec.answer, f"of {counted(len(spec.labels), 'label')}"
        )
        return f"{counted(len(self.examples), 'example')} {what}, {self.tokenizer.size:,} tokens in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        labels = list(self.answers.labels)
        return {"answer": self.corpus.answer, "labels": labels, "vocabulary": self.tokenizer.size}

    def body_of(self, model: Classifier) -> LM | Encoder:
        body = model.lm or model.encoder
        assert body is not None
        return body

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores on each test set; for single texts with one label, also the accuracy of a bag of words that was
        trained on the same examples."""
        scores = super().finish(folder, device)
        tests = dict(self.tests())
        parts = [self.corpus.train, self.corpus.valid, *tests.values()]
        if self.corpus.answer != "label" or any(one.pair for part in parts for one in part):
            return scores
        labels = {label: i for i, label in enumerate(self.answers.labels)}
        train, valid, *tested = (
            (self.tokenizer.encode([one.text for one in part]), [labels[one.label] for one in part]) for part in parts
        )
        found = bag_of_words(train, valid, len(labels))
        baseline = {name: accuracy(found(texts), right) for name, (texts, right) in zip(tests, tested, strict=True)}
        return {name: {**own, BAG: baseline[name]} for name, own in scores.items()}

    def doubts(self, scores: Scores) -> Iterator[str]:
        for name, own in scores.items():
            if BAG in own and float(own[BAG]) > float(own["accuracy"]):
                what = f"{name}: a bag of words, and of pairs of neighbours, is right more often: {own[BAG]:.3f}"
                yield f"{what} of the texts; the model may need more examples, or another model to begin with (--from)"

    def task(self, model: Classifier) -> ClassifyTask:
        answer, plan = self.answers.answer, self.recipe.train
        return ClassifyTask(self.examples, plan, answer=answer, auxiliary=self.auxiliary, teacher=self.teacher)

    def chance(self) -> float | None:
        return entropy(one.label for one in self.corpus.train) if self.corpus.answer == "label" else None

    def floor(self) -> float:
        valid: list[Example] = self.valid
        count = len(valid)
        match self.answers.answer:
            case "label":
                return by_luck(count, most_frequent(one.label for one in valid))
            case "choice":
                return by_luck(count, fmean(1 / len(one.choices) for one in valid))
            case "score":
                return 2 / math.sqrt(max(1, count - 1))  # two standard deviations of a correlation by luck
        right = [one.labels for one in valid]
        always = [label for label in self.answers.labels if 2 * sum(label in own for own in right) > count]
        return by_luck(sum(map(len, right)) or 1, f1([always] * count, right)[1])

    def measure(self, model: Classifier) -> Measurement:
        classifier = TextClassifier(model, self.tokenizer, self.spec())
        scores = classifier.measure(self.valid)
        loss = scores.pop("loss")
        shown = self.valid[:SHOWN]
        found = classifier.classify(
            [one.text for one in shown],
            pairs=[one.pair for one in shown],
            choices=[one.choices for one in shown] if self.answers.answer == "choice" else (),
        )
        lines = [
            f"{one.text} {one.pair}\n    {label} {score:.3f}\n"
            for one, ((label, score), *_) in zip(shown, found, strict=True)
        ]
        return Measurement(loss, scores, scores[self.rank], "".join(lines))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        labels = self.answers.labels
        ask = {"choice": ' --choice "One." --choice "Another."'}.get(self.answers.answer, "")
        return CardText(
            what="Classifies texts.",
            learnt_on=f"{counted(len(self.corpus.train), 'example')}, from `{self.corpus.name}`",
            after=f" Labels: {', '.join(labels)}." if labels else "",
            table=score_table("texts", scores),
            how=f"Texts are cut to {self.config.embed.context_length} tokens.",
            kept=f"step {best['step']:,}, the best on the validation examples ({self.rank} {best[self.rank]:.4f})",
            use=[f'heed classify {folder} "A text."{ask}', f"heed eval {folder} --data more.jsonl"],
            limits="It has seen only the texts above: on others expect worse than the table says. Its probabilities "
            "are not calibrated.",
        )


def _spec(corpus: Labelled, *, symmetric: bool) -> ClassifySpec:
    match corpus.answer:
        case "label":
            return ClassifySpec(
                answer="label", labels=tuple(sorted({one.label for one in corpus.train})), symmetric=symmetric
            )
        case "labels":
            labels = sorted({label for one in corpus.train for label in one.labels})
            return ClassifySpec(answer="labels", labels=tuple(labels), symmetric=symmetric)
        case "score":
            scores = [one.score for one in corpus.train]
            return ClassifySpec(
                answer="score", mean=fmean(scores), deviation=pstdev(scores) or 1.0, symmetric=symmetric
            )
        case _:
            return ClassifySpec(answer="choice")
