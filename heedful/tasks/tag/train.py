"""Trains a tagger of words, from scratch or from an encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch.nn.functional as F

from heedful.data.batches import shuffled_groups
from heedful.data.parts import Parts
from heedful.data.text.tagged import Sentence, read_tagged
from heedful.errors import are, counted
from heedful.metrics.labels import by_luck, entropy, has_spans, most_frequent, spans
from heedful.models.encoder import Encoder
from heedful.models.token_classifier import TokenClassifier, TokenClassifierConfig
from heedful.run.card import CardText, Scores, score_table
from heedful.run.job import Measurement
from heedful.run.teacher import Teacher
from heedful.tasks.shared.body import BodyJob
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.tasks.tag.layout import NONE, TagBatch, TaggedPiece, TagLayout, TagSpec, tag_batch, tagged_pieces
from heedful.tasks.tag.recipe import TagRecipe
from heedful.tasks.tag.use import Tagger, never_right
from heedful.training.distillation import Outputs
from heedful.training.loss import Loss

SHOWN = 8  # sentences in a sample


class TagTask:
    """Batches of sentences, and the cross-entropy of their words' labels."""

    def __init__(self, examples: Sequence[TaggedPiece], plan: SmoothedTrain, teacher: Teacher | None = None) -> None:
        self.examples, self.plan, self.teacher = examples, plan, teacher
        self.lengths = [len(piece.framed.tokens) for piece, _ in examples]

    def batches(self, epoch: int, model: object) -> list[TagBatch]:
        groups = shuffled_groups(self.lengths, self.plan.tokens, self.plan.seed, epoch)
        return [tag_batch([self.examples[i] for i in group]) for group in groups]

    def loss(self, model: TokenClassifier, batch: TagBatch) -> Loss:
        *read, labels = (part.to(model.out.weight.device) for part in batch)
        hidden, chosen = model.hidden(*read), labels != NONE
        logits, smoothing = model.out(hidden).float(), self.plan.smoothing or 0.0
        total = F.cross_entropy(logits[chosen], labels[chosen], reduction="sum", label_smoothing=smoothing)
        loss = Loss(total, int((batch.labels != NONE).sum()))
        if self.teacher is None:
            return loss
        student = Outputs(hidden[chosen], model.out)
        return self.teacher.mixed(loss, student, lambda other: Outputs(other.hidden(*read)[chosen], other.out))


class TagJob(BodyJob[TagRecipe, Parts[list[Sentence]], TokenClassifier]):
    unit: ClassVar = "sentences"
    kinds: ClassVar = "a .conllu or .tsv file, or a folder of such"
    served: ClassVar = Tagger
    starts: ClassVar = ("fill", "encode")
    answers: TagSpec

    def __init__(
        self, recipe: TagRecipe, corpus: Parts[list[Sentence]] | None = None, begun: Path | None = None
    ) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        encoder = self.encoder()
        labels = tuple(sorted({label for one in corpus.train for label in one.labels}))
        self.answers = TagSpec(labels=labels)
        self.config = TokenClassifierConfig(encoder=encoder, answers=len(labels))
        layout = TagLayout(self.tokenizer, encoder.embed.context_length)
        self.examples = tagged_pieces(layout, corpus.train, labels)
        if layout.parted:
            self.notes.append(
                f"{counted(layout.parted, 'sentence')} {are(layout.parted)} too long for the model, and read in parts"
            )
        others = [one for part in (corpus.valid, *corpus.tests.values()) for one in part]
        if new := {label for one in others for label in one.labels} - {*labels}:
            self.notes.append(never_right(new))
        self.rank = "span_f1" if has_spans(labels) else "accuracy"
        self.score_names = (self.rank,)

    def read(self) -> Parts[list[Sentence]]:
        return read_tagged(self.recipe.data.path)

    def texts(self) -> list[str]:
        return [one.text for one in self.corpus.train]

    def describe(self) -> str:
        words = sum(len(one.words) for one in self.corpus.train)
        labels = counted(self.config.answers, "label")
        sizes = f"{counted(len(self.corpus.train), 'sentence')}, {counted(words, 'word')} of {labels}"
        return f"{sizes}, {self.tokenizer.size:,} tokens in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        return {"labels": list(self.answers.labels), "vocabulary": self.tokenizer.size}

    def body_of(self, model: TokenClassifier) -> Encoder:
        return model.encoder

    def task(self, model: TokenClassifier) -> TagTask:
        return TagTask(self.examples, self.recipe.train, self.teacher)

    def chance(self) -> float:
        return entropy(label for one in self.corpus.train for label in one.labels)

    def floor(self) -> float:
        if self.rank == "span_f1":
            return by_luck(sum(len(spans(one.labels)) for one in self.valid) or 1)
        labels = [label for one in self.valid for label in one.labels]
        return by_luck(len(labels), most_frequent(labels))

    def measure(self, model: TokenClassifier) -> Measurement:
        tagger, valid = Tagger(model, self.tokenizer, self.spec()), self.valid
        scores = tagger.measure(valid)
        found = tagger.tag_words([one.words for one in valid[:SHOWN]])
        sample = "".join(" ".join(f"{word.word}/{word.label}" for word in words) + "\n" for words in found)
        return Measurement(scores.pop("loss"), scores, scores[self.rank], sample)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return CardText(
            what="Labels the words of sentences.",
            learnt_on=f"{counted(len(self.corpus.train), 'sentence')}, from `{self.corpus.name}`",
            after=f" Labels: {', '.join(self.answers.labels)}.",
            table=score_table("sentences", scores),
            how=f"Loss is in nats a word. The model reads {self.config.embed.context_length} tokens at a time.",
            kept=f"step {best['step']:,}, the best on the validation sentences ({self.rank} {best[self.rank]:.4f})",
            use=[f'heed tag {folder} "words of a sentence"', f"heed eval {folder} --data more.tsv"],
            limits="It has seen only the sentences above: on others expect worse than the table says. A text given to "
            "`heed tag` is parted at blanks alone; where the words above were parted otherwise (a full stop from its "
            "word), part it so.",
        )
