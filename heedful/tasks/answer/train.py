"""Trains a model that answers questions, from scratch or from an encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from heedful.data.batches import shuffled_groups
from heedful.data.parts import Parts
from heedful.data.text.questions import Question, read_questions
from heedful.errors import counted
from heedful.metrics.labels import by_luck
from heedful.models.encoder import Encoder
from heedful.models.token_classifier import TokenClassifier, TokenClassifierConfig
from heedful.run.card import CardText, Scores, score_table
from heedful.run.job import Measurement
from heedful.tasks.answer.layout import AnswerBatch, AnswerLayout, AnswerSpec, Window, answer_batch, span_loss
from heedful.tasks.answer.recipe import AnswerRecipe
from heedful.tasks.answer.use import Answerer, word_f1
from heedful.tasks.shared.body import BodyJob
from heedful.tasks.shared.sections import TokenTrain
from heedful.training.loss import Loss

SHOWN = 8  # questions in a sample


class AnswerTask:
    """Batches of windows, and the cross-entropy of the beginnings and ends of their answers."""

    def __init__(self, windows: Sequence[Window], plan: TokenTrain) -> None:
        self.windows, self.plan = windows, plan
        self.lengths = [len(one.framed.tokens) for one in windows]

    def batches(self, epoch: int, model: object) -> list[AnswerBatch]:
        groups = shuffled_groups(self.lengths, self.plan.tokens, self.plan.seed, epoch)
        return [answer_batch([self.windows[i] for i in group]) for group in groups]

    def loss(self, model: TokenClassifier, batch: AnswerBatch) -> Loss:
        *read, valid, target = (part.to(model.out.weight.device) for part in batch)
        return Loss(span_loss(model(*read), valid, target), len(batch.tokens))


class AnswerJob(BodyJob[AnswerRecipe, Parts[list[Question]], TokenClassifier]):
    unit: ClassVar = "questions"
    kinds: ClassVar = "a .json or .jsonl file, or a folder of such"
    served: ClassVar = Answerer
    starts: ClassVar = ("fill", "encode")
    score_names = ("exact_match", "f1")
    answers: AnswerSpec

    def __init__(
        self, recipe: AnswerRecipe, corpus: Parts[list[Question]] | None = None, begun: Path | None = None
    ) -> None:
        super().__init__(recipe, corpus, begun)
        train = self.corpus.train
        encoder = self.encoder()
        unanswerable = any(not one.answers for one in train)
        self.answers = AnswerSpec(longest=recipe.answer.longest, unanswerable=unanswerable)
        self.config = TokenClassifierConfig(encoder=encoder, answers=2, dropout=0.0)
        layout = AnswerLayout(self.tokenizer, encoder.embed.context_length)
        self.windows = [window for own in layout.encode(train) for window in own]

    def read(self) -> Parts[list[Question]]:
        return read_questions(self.recipe.data.path)

    def texts(self) -> list[str]:
        train = self.corpus.train
        return [one.question for one in train] + [*dict.fromkeys(one.context for one in train)]

    def describe(self) -> str:
        sizes = f"{counted(len(self.corpus.train), 'question')} in {counted(len(self.windows), 'window')}"
        return f"{sizes}, {self.tokenizer.size:,} tokens in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        return {"windows": len(self.windows), "vocabulary": self.tokenizer.size}

    def body_of(self, model: TokenClassifier) -> Encoder:
        return model.encoder

    def task(self, model: TokenClassifier) -> AnswerTask:
        return AnswerTask(self.windows, self.recipe.train)

    def floor(self) -> float:
        """By always saying that there is no answer, or the whole text, which is the best of all answers that are given
        without a look at the question."""
        valid: list[Question] = self.valid
        whole = fmean(max((word_f1(one.context, own.text) for own in one.answers), default=0.0) for one in valid)
        return by_luck(len(valid), max(whole, fmean(not one.answers for one in valid)))

    def measure(self, model: TokenClassifier) -> Measurement:
        answerer, shown = Answerer(model, self.tokenizer, self.spec()), self.valid[:SHOWN]
        scores = answerer.measure(self.valid)
        found = answerer.answer([one.question for one in shown], [one.context for one in shown])
        sample = "".join(f"{one.question}\n    {best.text}\n" for one, (best, *_) in zip(shown, found, strict=True))
        return Measurement(scores.pop("loss"), scores, scores["f1"], sample)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return CardText(
            what="Answers questions by a stretch of a text.",
            learnt_on=f"{counted(len(self.corpus.train), 'question')}, from `{self.corpus.name}`",
            table=score_table("questions", scores),
            how="Exact matches and F1 are SQuAD's, from 0 to 1: case, punctuation and articles aside. Loss is in nats "
            f"a window of {self.config.embed.context_length} tokens.",
            kept=f"step {best['step']:,}, the best on the validation questions (F1 {best['f1']:.4f})",
            use=[f'heed answer {folder} "A question?" --context text.txt', f"heed eval {folder} --data more.json"],
            limits="It always finds something, right or wrong"
            + (", or says that the text does not tell." if self.answers.unanswerable else ".")
            + " It has seen only the questions above: on others expect worse than the table says.",
        )
