"""Trains word vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.data.parts import spread
from heedful.data.text.documents import Documents
from heedful.errors import InputError, NonFiniteError
from heedful.models.vectors import VECTORS, Vectors, vectors_config
from heedful.run.card import CardText, Scores, fingerprint
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.store import files
from heedful.tasks.shared.text_job import documents_for
from heedful.tasks.vectors.batches import PairBatches, WindowBatch, WindowBatches, WordPairBatch
from heedful.tasks.vectors.formats import as_binary, as_text
from heedful.tasks.vectors.losses import cbow, glove, skipgram
from heedful.tasks.vectors.recipe import VectorsRecipe
from heedful.tasks.vectors.use import WordVectors
from heedful.tasks.vectors.words import (
    GAP,
    Splitting,
    count_words,
    kept_shares,
    near_pairs,
    numbered,
    some_of_stream,
)
from heedful.training.loss import Loss

PAIRS = 8  # pairs of GloVe for each word of `train.tokens`
MEASURED = 200_000  # the most words of the validation text that are measured on
SHOWN = 8  # words in a sample, with their neighbours


class VectorsTask:
    """Batches of a text as word numbers, and the loss of the recipe's method."""

    def __init__(self, recipe: VectorsRecipe, counts: Tensor, stream: Tensor, method: str) -> None:
        self.plan, self.window, self.stream, self.method = recipe.train, recipe.data.window, stream, method
        self.kept = kept_shares(counts, recipe.data.subsample)
        weights = counts.double() ** recipe.train.power
        self.drawn = (weights / weights.sum()).cumsum(0)
        self.pairs = near_pairs(stream, len(counts), self.window) if method == "glove" else None

    def batches(self, epoch: int, model: object) -> WindowBatches | PairBatches:
        key = (self.plan.seed, epoch)
        if self.pairs is not None:
            return PairBatches(self.pairs, rows=PAIRS * self.plan.tokens, key=key)
        rows = max(1, self.plan.tokens // 64)
        return WindowBatches(self.stream, self.kept, self.drawn, window=self.window, rows=rows, key=key)

    def loss(self, model: Vectors, batch: WindowBatch | WordPairBatch) -> Loss:
        device = model.words.weight.device
        if isinstance(batch, WordPairBatch):
            return glove(model, WordPairBatch(*(part.to(device) for part in batch)), self.plan.x_max)
        method = skipgram if self.method == "skipgram" else cbow
        return method(model, WindowBatch(*(part.to(device) for part in batch)), self.plan.negatives)


class VectorsJob(Job[VectorsRecipe, Documents, Vectors]):
    unit: ClassVar = "documents"
    kinds: ClassVar = "a .txt or .jsonl file, or a folder of such"
    served: ClassVar = WordVectors
    score_names = ()
    halves = False  # each half would fill tables of gradients, which takes most of the time

    def __init__(self, recipe: VectorsRecipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        row = row_of(VECTORS, recipe)
        super().__init__(recipe, corpus, begun)
        data = recipe.data
        self.splitting = Splitting(data.words, data.lower)
        self.counts = count_words(self.corpus.train, self.splitting, least=data.min_count)
        self.numbers = {word: number for number, word in enumerate(self.counts)}
        self.stream = self._numbered(self.corpus.train)
        real = self.stream != GAP
        if not bool((real[1:] & real[:-1]).any()):
            what = "no word stands near another: each line has one that has a vector, or none"
            raise InputError(what, where=self.corpus.name, fix="give lines of several words, or --set data.min_count=1")
        self.config = vectors_config(row, vocab_size=len(self.counts))
        self.counted = "pairs" if self.config.method == "glove" else ""
        self.fingerprint = fingerprint(self.corpus.train)

    def _numbered(self, texts: Sequence[str]) -> Tensor:
        return numbered(texts, self.splitting, self.numbers, gap=self.recipe.data.window)

    @property
    def _frequencies(self) -> Tensor:
        return torch.tensor([*self.counts.values()])

    def read(self) -> Documents:
        return documents_for(self.recipe.data.path, self.begun)

    def describe(self) -> str:
        return f"{sum(self.counts.values()):,} words, {len(self.counts):,} of them different"

    def own_facts(self) -> dict[str, object]:
        return {"words": sum(self.counts.values()), "vocabulary": len(self.counts)}

    def spec(self) -> dict[str, Any]:
        data = self.recipe.data
        return {"task": "vectors", "words": [*self.counts], "splitting": data.words, "lower": data.lower}

    def task(self, model: Vectors) -> VectorsTask:
        return VectorsTask(self.recipe, self._frequencies, self.stream, self.config.method)

    def measure(self, model: Vectors) -> Measurement:
        """Measures the loss on the validation text, with the same negative samples each time; the sample shows
        neighbours."""
        loss = self._loss(model, self.valid)
        words = WordVectors(model, self.spec())
        asked = [words.words[i] for i in spread(min(len(words.words), 400), SHOWN / min(len(words.words), 400))]
        lines = [f"{one}: {', '.join(near.word for near in words.near(one, top=6))}" for one in asked]
        return Measurement(loss, {}, -loss, "\n".join(lines) + "\n")

    @torch.no_grad()
    def _loss(self, model: Vectors, texts: Sequence[str]) -> float:
        """The mean loss on texts. Raises NonFiniteError."""
        stream = some_of_stream(self._numbered(texts), MEASURED, gap=self.recipe.data.window)
        if int((stream >= 0).sum()) < 2:
            return 0.0
        task = VectorsTask(self.recipe, self._frequencies, stream, self.config.method)
        total, count = 0.0, 0
        for batch in task.batches(-1, model):
            loss = task.loss(model, batch)
            total, count = total + float(loss.total), count + loss.count
        if total != total or total == float("inf"):
            raise NonFiniteError("the vectors are not finite", fix="train them with a lower train.lr")
        return total / max(1, count)

    def score(self, best: WordVectors, part: list[str]) -> Mapping[str, Any]:
        return {"loss": self._loss(best.model, part)}

    def finish(self, folder: Path, device: str) -> Scores:
        """The scores; also writes the vectors in word2vec's formats, to vectors.txt and vectors.bin."""
        best = WordVectors.load(folder)
        rows = best.vectors.numpy()
        files.write_bytes(folder / "vectors.txt", as_text(best.words, rows))
        files.write_bytes(folder / "vectors.bin", as_binary(best.words, rows))
        return super().finish(folder, device)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        rows = [f"| {name} | {each['loss']:.4f} |" for name, each in scores.items()]
        return CardText(
            what=f"Vectors of {len(self.counts):,} words, {self.config.d_model} wide, by {self.config.method}.",
            learnt_on=f"{sum(self.counts.values()):,} words, from `{self.corpus.name}`",
            after=" `vectors.txt` and `vectors.bin` have them in word2vec's formats.",
            table=["| text | loss |", "|---|---|", *rows],
            how="The loss is what the training makes smaller, on text that it has not seen.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f})",
            use=[f"heed vectors {folder} near king", f"heed vectors {folder} analogy man woman king"],
            limits="A word has one vector, whatever it means in a sentence. Vectors repeat the prejudices of the text.",
        )
