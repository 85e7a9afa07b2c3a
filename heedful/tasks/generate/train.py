"""Training a language model on running text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from heedful.core.seeds import counter_seed, shuffled
from heedful.data.batches import LazyBatches, TextBatch
from heedful.data.stored import StoredTexts
from heedful.data.text.documents import Documents
from heedful.data.tokenizer import BOS
from heedful.errors import InputError
from heedful.metrics.labels import entropy
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.tasks.generate.likelihood import Likelihood
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.generate.recipe import GenerateRecipe
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.tasks.shared.text_job import TextJob
from heedful.training.loss import Loss

ABOUT = {"task": "generate"}
SHOWN = 200  # tokens of a sample


class GenerateTask:
    """Batches cut from one stream, in which each document begins with `bos`, and the cross-entropy of the next token.

    In every epoch the stream is cut at other points, and its pieces are in another order. `across`: a token may attend
    to the documents before its own; otherwise segments separate them.
    """

    def __init__(
        self, documents: StoredTexts, plan: SmoothedTrain, *, context: int, across: bool, bos: int = BOS
    ) -> None:
        self.plan, self.context, self.across, self.bos = plan, context, across, bos
        self.stream = documents.behind(bos)
        if len(self.stream) < context + 2:
            what = f"{len(self.stream) - 2:,} tokens do not fill one row of {context}"
            raise InputError(what, fix="give more text, or --set model.context_length=32")

    def batches(self, epoch: int, model: object) -> LazyBatches[TextBatch, list[int]]:
        room = (len(self.stream) - 1) % self.context
        offset = counter_seed(self.plan.seed, "offset", epoch) % (room + 1)
        count = (len(self.stream) - 1 - offset) // self.context
        starts = [offset + self.context * i for i in shuffled(count, self.plan.seed, epoch)]
        rows = max(1, self.plan.tokens // self.context)
        return LazyBatches([starts[i : i + rows] for i in range(0, count, rows)], self._batch)

    def _batch(self, starts: list[int]) -> TextBatch:
        positions = np.array(starts)[:, None] + np.arange(self.context + 1)
        taken = torch.from_numpy(self.stream[positions].astype(np.int64))
        tokens = taken[:, :-1]
        segments = torch.ones_like(tokens) if self.across else (tokens == self.bos).cumsum(1) + 1
        return TextBatch(tokens, taken[:, 1:], segments)

    def loss(self, model: LM, batch: TextBatch) -> Loss:
        return next_token_loss(model, batch, across=self.across, smoothing=self.plan.smoothing or 0.0)


class GenerateJob(TextJob[GenerateRecipe, LM]):
    served: ClassVar = LanguageModel
    score_names = ("bits_per_byte",)

    def __init__(self, recipe: GenerateRecipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        row = None if recipe.start_from else row_of(LANGUAGE_MODELS, recipe)
        super().__init__(recipe, corpus, begun)
        size = self.tokenizer.size
        self.config = self.started(LMConfig) if row is None else lm_config(row, vocab_size=size)

    def spec(self) -> dict[str, Any]:
        return dict(ABOUT)

    def task(self, model: LM) -> GenerateTask:
        context = self.config.embed.context_length
        across, bos = self.recipe.data.across, self.tokenizer.bos
        return GenerateTask(self.documents, self.recipe.train, context=context, across=across, bos=bos)

    def chance(self) -> float:
        return entropy(self.documents.counts())

    def measure(self, model: LM) -> Measurement:
        language_model = LanguageModel(model, self.tokenizer, ABOUT)
        found = language_model.measure(self.valid, stride=language_model.context)
        ((sample,),) = language_model.generate([""], tokens=SHOWN)
        return Measurement(found.loss, _likelihood_scores(found), -found.loss, sample.text + "\n")

    def score(self, best: LanguageModel, part: list[str]) -> Mapping[str, Any]:
        found = best.measure(part)
        return {"loss": found.loss, **_likelihood_scores(found)}

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        rows = [
            f"| {name} | {each['loss']:.4f} | {each['perplexity']:.2f} | {each['bits_per_byte']:.4f} | "
            f"{each['word_perplexity']:.1f} |"
            for name, each in scores.items()
        ]
        header = "| text | nats a token | perplexity | bits a byte | perplexity of words |"
        return CardText(
            what="Continues a text.",
            learnt_on=self.learnt_on(),
            table=[header, "|---|---|---|---|---|", *rows],
            how=f"Scored through a window of {self.config.embed.context_length} tokens that moves by half of it.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            use=[f'heed generate {folder} "Once upon a time" --tokens 200', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and continues like it. What it says may be false, and may repeat "
            "what it was trained on word for word.",
        )


def _likelihood_scores(found: Likelihood) -> dict[str, float]:
    return {
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte,
        "word_perplexity": found.word_perplexity,
    }
