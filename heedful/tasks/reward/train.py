"""Trains a reward model, from a language model."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.data.batches import shuffled_groups
from heedful.data.frame import Framed, rectangles
from heedful.data.parts import Parts
from heedful.data.text.judgements import Judgement, read_judgements
from heedful.errors import counted
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.lm import LM, LMConfig
from heedful.run.card import CardText, Scores, score_table
from heedful.run.job import Measurement
from heedful.tasks.reward.prompting import Answered, cut_to, prompting_of
from heedful.tasks.reward.recipe import RewardRecipe
from heedful.tasks.reward.use import RewardModel
from heedful.tasks.shared.body import BodyJob
from heedful.tasks.shared.sections import TokenTrain
from heedful.training.loss import Loss
from heedful.training.preference import ranking_loss

SHOWN = 8  # judgements in a sample


class RewardBatch(NamedTuple):
    """Judgements of K answers each; where one has fewer, the rest are empty and have rank -1. Segment 0 is padding."""

    tokens: Int[Tensor, "B K T"]
    segments: Int[Tensor, "B K T"]
    ranks: Int[Tensor, "B K"]


class RankedAnswers(NamedTuple):
    """The tokens of answers to one prompt, and their ranks; 0 is the best."""

    rows: list[Answered]
    ranks: list[int]

    @property
    def size(self) -> int:
        """The number of tokens that are read, padding included."""
        return len(self.rows) * max(len(row.ids) for row in self.rows)


def reward_batch(judged: Sequence[RankedAnswers]) -> RewardBatch:
    tokens, segments, _ = rectangles([[Framed(row.ids, [0] * len(row.ids)) for row in one.rows] for one in judged])
    ranks = [[*one.ranks, *[-1] * (tokens.shape[1] - len(one.ranks))] for one in judged]
    return RewardBatch(tokens, segments, torch.tensor(ranks))


class RewardTask:
    """Batches of judgements, and their negative log-likelihood under the rewards of their answers."""

    def __init__(self, judged: Sequence[RankedAnswers], plan: TokenTrain) -> None:
        self.judged, self.plan = judged, plan

    def batches(self, epoch: int, model: object) -> list[RewardBatch]:
        lengths = [one.size for one in self.judged]
        groups = shuffled_groups(lengths, self.plan.tokens, self.plan.seed, epoch)
        return [reward_batch([self.judged[i] for i in group]) for group in groups]

    def loss(self, model: Classifier, batch: RewardBatch) -> Loss:
        tokens, segments, ranks = (part.to(model.out.weight.device) for part in batch)
        return ranking_loss(model(tokens, segments), ranks)


class RewardJob(BodyJob[RewardRecipe, Parts[list[Judgement]], Classifier]):
    unit: ClassVar = "judgements"
    kinds: ClassVar = "a .jsonl file of judgements or preferences, or a folder of such"
    served: ClassVar = RewardModel
    starts: ClassVar = ("generate",)
    score_names = ("pair_accuracy",)

    def __init__(self, recipe: RewardRecipe, corpus: Parts[list[Judgement]] | None = None, begun: Path | None = None):
        super().__init__(recipe, corpus, begun)
        body = self.body()
        assert isinstance(body, LMConfig)  # for all presets and starts
        self.config = ClassifierConfig(lm=body, answers=None, dropout=0.0, bias=False)
        self.about: dict[str, Any] = {} if self.start is None else dict(self.start.around)
        self.prompting = prompting_of(begun or Path(recipe.start_from), self.tokenizer, self.about)
        self.judged = self._compared(self.corpus.train)
        measured = [*self.valid, *chain(*self.corpus.tests.values())]
        self.prompting.prompts([one.prompt for one in measured])  # raises InputError before the training

    def read(self) -> Parts[list[Judgement]]:
        return read_judgements(self.recipe.data.path)

    def texts(self) -> list[str]:
        return [one.prompt + answer for one in self.corpus.train for answer in one.candidates]

    def _compared(self, judgements: Sequence[Judgement]) -> list[RankedAnswers]:
        asked = [(one.prompt, answer) for one in judgements for answer in one.candidates]
        rows = self.prompting.answered([prompt for prompt, _ in asked], [answer for _, answer in asked])
        most = self.config.embed.context_length
        cut = sum(len(row.ids) > most for row in rows)
        if cut:
            what = f"{cut:,} of {len(rows):,} prompts with their answers are longer than {most} tokens"
            self.notes.append(f"{what}, and lose their beginning")
        each = iter([cut_to(row, most) for row in rows])
        whole = [RankedAnswers([next(each) for _ in one.candidates], one.ranks) for one in judgements]
        if self.recipe.reward.by == "rankings":
            return whole
        pairs = ((own, pair) for one, own in zip(judgements, whole, strict=True) for pair in one.pairs())
        return [RankedAnswers([own.rows[better], own.rows[worse]], [0, 1]) for own, (better, worse) in pairs]

    def describe(self) -> str:
        pairs = sum(len(one.pairs()) for one in self.corpus.train)
        judgements = f"{counted(len(self.corpus.train), 'judgement')}, {counted(pairs, 'pair')}"
        return f"{judgements}, {self.tokenizer.size:,} in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        who = sorted({one.who for one in self.corpus.train if one.who})
        return {"pairs": sum(len(one.pairs()) for one in self.corpus.train), "who": who}

    def tokenizers(self) -> dict[str, bytes]:
        return super().tokenizers() | self.prompting.files()

    def spec(self) -> dict[str, Any]:
        return {"task": "reward", "prompting": self.about}

    def body_of(self, model: Classifier) -> LM:
        assert model.lm is not None
        return model.lm

    def task(self, model: Classifier) -> RewardTask:
        return RewardTask(self.judged, self.recipe.train)

    def measure(self, model: Classifier) -> Measurement:
        reward = RewardModel(model, self.tokenizer, self.spec(), self.prompting)
        scores = reward.measure(self.valid)
        loss = scores.pop("loss")
        lines = []
        for one in self.valid[:SHOWN]:
            found, _ = reward.weigh([one.prompt] * len(one.candidates), one.candidates)
            lines += [f"{one.prompt}\n"]
            each = sorted(zip(one.ranks, found, one.candidates, strict=True))
            lines += [f"    {rank + 1} {value:8.3f} {answer}\n" for rank, value, answer in each]
        return Measurement(loss, scores, -loss, "".join(lines))  # accuracy changes in jumps, and ignores margins

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        first = next(iter(scores.values()))
        bias = first["length_correlation"]
        return CardText(
            what="Rewards answers: the better people would like one, the more.",
            learnt_on=f"{counted(len(self.corpus.train), 'judgement')}, from `{self.corpus.name}`",
            table=score_table("judgements", scores),
            how="Accuracy is the share of pairs of a better and a worse answer in that order; the calibration error is "
            "how far the chances by the rewards are from it. Length is what is rewarded as far as the correlation of "
            "reward and length says, and where it is right less often about better answers that are shorter.",
            kept=f"step {best['step']:,}, the best on the validation judgements ({best['valid_loss']:.4f} nats a pair)",
            use=[
                f'heed reward {folder} "A question." "An answer."',
                f"heed eval {folder} --data more.jsonl",
                f"heed train prefer --method ppo --from RUN --reward {folder} --data prompts.txt",
            ],
            limits="It stands for those who judged, about the prompts above. A model that is trained against it finds "
            f"what it is wrong about (the correlation with length is {bias:.2f}): keep near to where it began, and "
            "let people judge what comes out.",
        )
