"""From a policy to the batches of an epoch: answers are generated, rewarded and compared, then trained on.

All randomness comes from counter-based seeds, and what depends on the policy is kept in `Made`, so that a training that
continues within an epoch learns from the same answers.

N answers, T next-token positions of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.core.seeds import counter_seed, shuffled
from heedful.errors import InputError, NonFiniteError
from heedful.tasks.prefer.losses import PreferenceBatch, RolloutBatch, pair_loss, rollout_loss
from heedful.tasks.prefer.recipe import PreferSection
from heedful.tasks.prefer.rewards import Reward
from heedful.tasks.prefer.rollouts import AnswerRows, Policy, answers_in_words, judge_all, rows_of
from heedful.tasks.reward.prompting import Prompting
from heedful.training.loss import Loss
from heedful.training.policy import (
    AdaptiveKL,
    generalised_advantages,
    group_advantages,
    kl_estimates,
    penalised_rewards,
    whitened,
)

GROUP, PASSES = {"ppo": 1}, {"ppo": 4}  # defaults; of other methods 8 and 1


def refuse_one_answer(plan: PreferSection) -> None:
    """Raises InputError where a method compares answers to the same prompt, but only one is generated."""
    if plan.method not in GROUP and plan.group == 1:
        what = f"prefer.group = 1, but {plan.method} compares answers to the same prompt"
        raise InputError(what, fix="--set prefer.group=8")


@dataclass
class Made:
    """The answers of an epoch, and the weight of the KL penalty for the next epoch."""

    epoch: int
    kl: float
    answers: RolloutBatch

    def tensors(self) -> dict[str, Tensor]:
        own = {"epoch": torch.tensor(self.epoch), "kl": torch.tensor(self.kl, dtype=torch.float64)}
        return own | self.answers._asdict()

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> "Made":
        """The inverse of `tensors`."""
        rest = {name: own for name, own in tensors.items() if name not in ("epoch", "kl")}
        return cls(int(tensors["epoch"]), float(tensors["kl"]), RolloutBatch(**rest))


@dataclass
class Memory:
    """What was generated last."""

    made: Made | None = None


class RolloutTask:
    """Answers of a policy to prompts, in batches, and the loss of the method on them. Dropout is off, because a policy
    is compared with its earlier self and with the reference.

    `memory` holds the answers of the last epoch: where a training returns to that epoch, it learns from them again.
    """

    def __init__(
        self,
        prompts: Sequence[str],
        plan: PreferSection,
        *,
        seed: int,
        prompting: Prompting,
        reference: Policy,
        reward: Reward,
        memory: Memory,
    ) -> None:
        self.prompts, self.plan, self.seed = prompts, plan, seed
        self.prompting, self.reference, self.reward, self.memory = prompting, reference, reward, memory
        self.ids = prompting.prompts(prompts)
        self.group = plan.group or GROUP.get(plan.method, 8)
        self.passes = plan.passes or PASSES.get(plan.method, 1)

    def batches(self, epoch: int, model: Policy) -> list[RolloutBatch] | list[PreferenceBatch]:
        made = self.memory.made
        if made is None or made.epoch != epoch:
            made = self.memory.made = self._make(epoch, model, self.plan.kl if made is None else made.kl)
        if self.plan.method == "dpo":
            return self._pairs(epoch, made.answers)
        return self._rows(epoch, made.answers)

    def loss(self, model: Policy, batch: RolloutBatch | PreferenceBatch) -> Loss:
        model.eval()
        if isinstance(batch, PreferenceBatch):
            return pair_loss(model, batch, self.plan)
        return rollout_loss(model, batch, self.plan)

    def asked(self, epoch: int) -> list[int]:
        """The indices of the prompts that are answered in an epoch: every prompt is used once before any is used
        again."""
        count, own = len(self.prompts), -(-self.plan.rollouts // self.group)
        positions = range(epoch * own, (epoch + 1) * own)
        orders = {at // count: shuffled(count, self.seed, at // count) for at in positions}
        return [orders[at // count][at % count] for at in positions for _ in range(self.group)]

    def _make(self, epoch: int, model: Policy, kl: float) -> Made:
        plan = self.plan
        model.eval()
        asked = self.asked(epoch)
        prompts = [self.ids[i] for i in asked]
        seeds = [counter_seed(self.seed, "drawn", epoch, i) for i in range(len(asked))]
        answers, texts = answers_in_words(
            model, self.prompting, prompts, seeds, tokens=plan.tokens, temperature=plan.temperature
        )
        rewards = torch.tensor(self.reward([self.prompts[i] for i in asked], texts))
        rows = rows_of(prompts, answers, pad=self.prompting.tokenizer.pad)
        own = judge_all(model, rows, temperature=plan.temperature)
        reference = judge_all(self.reference, rows, temperature=plan.temperature).log_probs
        if not own.log_probs.isfinite().all():
            raise NonFiniteError("the policy's probabilities are not finite", fix="train it with a lower train.lr")
        if plan.method == "ppo":
            each = penalised_rewards(rewards, own.log_probs, reference, rows.mask, weight=kl)
            advantages, returns = generalised_advantages(
                each, own.values, rows.mask, discount=plan.discount, decay=plan.decay
            )
            advantages = whitened(advantages, rows.mask) if plan.whiten else advantages
        else:
            groups = group_advantages(rewards.view(-1, self.group)) if self.group > 1 else rewards[:, None]
            advantages, returns = torch.where(rows.mask, groups.reshape(-1, 1), 0.0), torch.zeros_like(own.values)
        if plan.kl_target is not None:
            kl = AdaptiveKL(target=plan.kl_target).next(kl, float(kl_estimates(own.log_probs, reference).sum(1).mean()))
        return Made(epoch, kl, RolloutBatch(*rows, own.log_probs, reference, own.values, returns, advantages, rewards))

    def _rows(self, epoch: int, made: RolloutBatch) -> list[RolloutBatch]:
        kept, batches = list(range(len(made.rewards))), []
        if self.plan.method == "best-of-n":
            kept = self._best(made)
            if not kept:  # a batch without a loss
                kept, made = [0], made._replace(mask=torch.zeros_like(made.mask))
        for again in range(self.passes):
            order = shuffled(len(kept), counter_seed(self.seed, "pass", again), epoch)
            for group in _in_groups([kept[i] for i in order], self.plan.batch):
                batches.append(RolloutBatch(*(part[group] for part in made)))
        return batches

    def _best(self, made: RolloutBatch) -> list[int]:
        """The best answer to each prompt, except for prompts whose answers all have the same reward."""
        each = made.rewards.view(-1, self.group)
        return [int(own.argmax()) + i * self.group for i, own in enumerate(each) if own.max() > own.min()]

    def _pairs(self, epoch: int, made: RolloutBatch) -> list[PreferenceBatch]:
        """The best and the worst answer to each prompt, except for prompts whose answers all have the same reward."""
        each = made.rewards.view(-1, self.group)
        found = [(i * self.group, own) for i, own in enumerate(each) if own.max() > own.min()]
        if not found:  # a batch without a loss
            found, made = [(0, each[0])], made._replace(mask=torch.zeros_like(made.mask))
        kept = torch.tensor([[first + int(own.argmax()), first + int(own.argmin())] for first, own in found])
        batches = []
        for again in range(self.passes):
            order = shuffled(len(kept), counter_seed(self.seed, "pass", again), epoch)
            for group in _in_groups(order, self.plan.batch):
                pairs = kept[group]
                reference = made.reference[pairs].sum(2)
                batches.append(PreferenceBatch(made.tokens[pairs], made.mask[pairs], reference, made.rewards[pairs]))
        return batches


class JudgedTask:
    """Judged pairs of a better and a worse answer, in batches, and the loss of direct preference optimisation."""

    def __init__(self, pairs: Sequence[tuple[AnswerRows, Tensor]], plan: PreferSection, *, seed: int) -> None:
        """`pairs`: the rows of each pair, and their log-probabilities under the reference."""
        self.pairs, self.plan, self.seed = pairs, plan, seed

    def batches(self, epoch: int, model: Policy) -> list[PreferenceBatch]:
        order = shuffled(len(self.pairs), self.seed, epoch)
        return [pair_batch([self.pairs[i] for i in group]) for group in _in_groups(order, self.plan.batch)]

    def loss(self, model: Policy, batch: PreferenceBatch) -> Loss:
        model.eval()
        return pair_loss(model, batch, self.plan)


def pair_batch(pairs: Sequence[tuple[AnswerRows, Tensor]]) -> PreferenceBatch:
    T = max(rows.mask.shape[1] for rows, _ in pairs)
    tokens = torch.stack([torch.nn.functional.pad(rows.tokens, (0, T - rows.mask.shape[1])) for rows, _ in pairs])
    mask = torch.stack([torch.nn.functional.pad(rows.mask, (0, T - rows.mask.shape[1])) for rows, _ in pairs])
    return PreferenceBatch(tokens, mask, torch.stack([reference for _, reference in pairs]), torch.zeros(len(pairs), 2))


def _in_groups(order: Sequence[int], size: int) -> list[list[int]]:
    return [list(order[i : i + size]) for i in range(0, len(order), size)]
