"""Trains an encoder on masked language modelling: the hidden tokens are drawn anew in every epoch (Liu et al. 2019,
section 4.1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from heedful.core.seeds import counter_seed, shuffled
from heedful.data.blanks import SHARE, WHOLE, MaskedRows, Masker, PairSampler, packed, pieces
from heedful.data.stored import StoredTexts
from heedful.data.text.documents import Documents
from heedful.errors import InputError
from heedful.metrics.labels import entropy
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.presets import ENCODERS, encoder_config
from heedful.run.card import CardText, Scores, score_table
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.run.teacher import Teacher
from heedful.tasks.fill.recipe import FillRecipe
from heedful.tasks.fill.use import Filler
from heedful.tasks.shared.sections import SmoothedTrain
from heedful.tasks.shared.text_job import TextJob
from heedful.training.distillation import Outputs
from heedful.training.loss import Loss, linear_cross_entropy

LEAST = 8  # the shortest context, in tokens
SHOWN = 5  # texts in a sample


class FillTask:
    """Texts packed into rows of `context` tokens, and the cross-entropy of the chosen tokens; for pairs, plus that of
    the pair classification, with the same weight. An epoch has the texts of a turn."""

    def __init__(
        self,
        documents: StoredTexts,
        plan: SmoothedTrain,
        *,
        context: int,
        masker: Masker,
        sampler: PairSampler,
        teacher: Teacher | None = None,
    ) -> None:
        if context < LEAST:
            raise InputError(f"{context} tokens are too few to read", fix=f"give model.context_length at least {LEAST}")
        if not documents.tokens:
            raise InputError("no text to learn from", fix="give training text")
        self.documents, self.plan, self.context, self.teacher = documents, plan, context, teacher
        self.masker, self.sampler, self.longest = masker, sampler, context - 2 - sampler.extra
        texts = int((-(-documents.lengths // self.longest)).sum())
        self.weight = SHARE * documents.tokens / ((1 - WHOLE) * texts)  # chosen tokens per pair

    def batches(self, epoch: int, model: object) -> list[MaskedRows]:
        seed = self.plan.seed
        texts = [
            piece
            for i, ids in enumerate(self.documents.turn(seed, epoch))
            for piece in pieces(ids, self.longest, counter_seed(seed, "pieces", epoch, i))
        ]
        told = self.sampler.join(texts, self.longest, seed, "pairs", epoch)
        order, rows = shuffled(len(told), seed, epoch), max(1, self.plan.tokens // self.context)
        batches = packed(told, order, context=self.context, rows=rows, tokenizer=self.masker.tokenizer)
        return [self.masker.hide_in(each, seed, "blanks", epoch, n, mixed=True) for n, each in enumerate(batches)]

    def loss(self, model: Encoder, batch: MaskedRows) -> Loss:
        assert model.transform is not None
        assert model.head is not None
        head = model.head
        tokens, segments, types, words, chosen, pairs = (part.to(head.weight.device) for part in batch)
        hidden = model.hidden(tokens, segments, types)
        named, smoothing = model.transform(hidden[chosen]), self.plan.smoothing or 0.0
        total = linear_cross_entropy(named, head.weight, head.bias, words[chosen], smoothing=smoothing)
        loss = Loss(total, int(batch.chosen.sum()))
        if self.sampler.kind != "none":
            logits = model.next_sentence(hidden[pairs >= 0]).float()
            extra = self.weight * F.cross_entropy(logits, pairs[pairs >= 0], reduction="sum")
            loss = Loss(total + extra, loss.count, extra=extra)
        if self.teacher is None:
            return loss

        def outputs(hidden: Tensor, model: Encoder) -> Outputs:
            return Outputs(hidden[chosen], model.predict_tokens)

        taught = self.teacher.mixed
        return taught(loss, outputs(hidden, model), lambda other: outputs(other.hidden(tokens, segments, types), other))


class FillJob(TextJob[FillRecipe, Encoder]):
    served: ClassVar = Filler
    score_names = ("accuracy",)

    def __init__(self, recipe: FillRecipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        pairs = recipe.data.pairs != "none"
        row = None if recipe.start_from else row_of(ENCODERS, recipe)
        super().__init__(recipe, corpus, begun)
        self.turns = self.documents.turns
        self.config = (
            self.started(EncoderConfig)
            if row is None
            else encoder_config(row, vocab_size=self.tokenizer.size, pooler=pairs, nsp_head=pairs)
        )
        if pairs and (not self.config.nsp_head or self.config.embed.types < 2):
            what = f"the model {recipe.start_from or recipe.preset} does not tell pairs of texts apart"
            raise InputError(what, fix="leave out data.pairs")

    def spec(self) -> dict[str, Any]:
        pairs = self.recipe.data.pairs
        return {"task": "fill"} | ({"pairs": pairs} if pairs != "none" else {})

    def task(self, model: Encoder) -> FillTask:
        context, data = self.config.embed.context_length, self.recipe.data
        masker, sampler = Masker(self.tokenizer, whole_words=data.whole_words), PairSampler(self.tokenizer, data.pairs)
        plan, teacher = self.recipe.train, self.teacher
        return FillTask(self.documents, plan, context=context, masker=masker, sampler=sampler, teacher=teacher)

    def chance(self) -> float:
        return entropy(self.documents.counts())

    def measure(self, model: Encoder) -> Measurement:
        filler = Filler(model, self.tokenizer, self.spec())
        found = filler.measure(self.valid)
        sample = "".join(f"{filler.sample(text)}\n" for text in self.valid[:SHOWN])
        scores = found.scores()
        return Measurement(scores.pop("loss"), scores, -found.loss, sample)

    def score(self, best: Filler, part: list[str]) -> Mapping[str, Any]:
        return best.measure(part).scores()

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return CardText(
            what="Names hidden words of a text.",
            learnt_on=self.learnt_on(),
            table=score_table("text", scores),
            how=f"{SHARE:.0%} of the tokens were hidden, the same ones each time; loss is in nats a hidden token. The "
            f"model reads {self.config.embed.context_length} tokens at a time.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            use=[f'heed fill {folder} "The cat sat on the <mask>."', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and expects texts like it. What it names may be false.",
        )
