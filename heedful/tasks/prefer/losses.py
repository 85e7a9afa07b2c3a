"""The loss of each method on generated or judged answers.

B answers or pairs, L tokens of a row, T = L - 1 next-token positions.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.tasks.prefer.recipe import Method, PreferSection
from heedful.tasks.prefer.rollouts import AnswerRows, Policy, TokenJudgements, judge, language_model
from heedful.training.loss import Loss, Sum
from heedful.training.policy import answer_means, clipped_policy_loss, clipped_value_loss, kl_estimates
from heedful.training.preference import dpo_loss


class RolloutBatch(NamedTuple):
    """Generated answers: the log-probability of each token (nats) under the policy that generated it and under the
    reference, the values, returns and advantages, and the reward of each answer."""

    tokens: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B T"]
    before: Float[Tensor, "B T"]
    reference: Float[Tensor, "B T"]
    values: Float[Tensor, "B T"]
    returns: Float[Tensor, "B T"]
    advantages: Float[Tensor, "B T"]
    rewards: Float[Tensor, "B"]


class PreferenceBatch(NamedTuple):
    """A better and a worse answer to each prompt, and the log-probabilities of both under the reference (nats)."""

    tokens: Int[Tensor, "B 2 L"]
    mask: Bool[Tensor, "B 2 T"]
    reference: Float[Tensor, "B 2"]
    rewards: Float[Tensor, "B 2"]  # of generated answers; 0 for judged ones


BatchType = TypeVar("BatchType", RolloutBatch, PreferenceBatch)


def ppo_loss(own: TokenJudgements, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The clipped objective with the value loss and the entropy bonus (Schulman et al. 2017, equation 9), summed over
    the tokens. The KL penalty is part of the advantages."""
    mask, count = batch.mask, int(batch.mask.sum())
    gains, held = clipped_policy_loss(own.log_probs, batch.before, batch.advantages, clip=plan.clip)
    errors = clipped_value_loss(own.values, batch.values, batch.returns, clip=plan.value_clip)
    total = gains + plan.value_weight * errors - plan.entropy * own.entropy
    beside = {
        **_told(own, batch),
        "clip_fraction": Sum(float(held[mask].sum()), count),
        "value_loss": Sum(float(errors[mask].detach().sum()), count),
    }
    return Loss(total[mask].sum(), count, beside)


def grpo_loss(own: TokenJudgements, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The clipped objective minus the KL divergence from the reference, as a mean over the tokens of each answer,
    summed over the answers (Shao et al. 2024, equation 3)."""
    mask, count = batch.mask, int(batch.mask.sum())
    gains, held = clipped_policy_loss(own.log_probs, batch.before, batch.advantages, clip=plan.clip)
    total = gains + plan.kl * kl_estimates(own.log_probs, batch.reference) - plan.entropy * own.entropy
    beside = {
        **_told(own, batch),
        "clip_fraction": Sum(float(held[mask].sum()), count),
    }
    return Loss(answer_means(total, mask).sum(), len(mask), beside)


def imitation_loss(own: TokenJudgements, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The cross-entropy of the tokens of answers that are the best of several (Dong et al. 2023)."""
    total = -own.log_probs.sum() - plan.entropy * own.entropy.sum()
    return Loss(total, int(batch.mask.sum()), _told(own, batch))


def pair_loss(policy: Policy, batch: PreferenceBatch, plan: PreferSection) -> Loss:
    """The loss of direct preference optimisation, summed over the pairs."""
    rows = AnswerRows(batch.tokens.flatten(0, 1), batch.mask.flatten(0, 1))
    own, batch = judge(policy, rows, temperature=plan.temperature), on_device(policy, batch)
    better, worse = own.log_probs.sum(1).view(-1, 2).unbind(1)
    better_reference, worse_reference = batch.reference.unbind(1)
    loss = dpo_loss(better, worse, better_reference, worse_reference, beta=plan.beta)
    count, margins = int(batch.mask.sum()), (better - better_reference) - (worse - worse_reference)
    beside = {
        "pair_accuracy": Sum(float((margins > 0).sum()), len(margins)),
        "margin": Sum(plan.beta * float(margins.detach().sum()), len(margins)),
        "entropy": Sum(float(own.entropy.detach().sum()), count),
        "length": Sum(float(count), 2 * len(margins)),
    }
    if batch.rewards.any():
        beside["reward"] = Sum(float(batch.rewards.sum()), 2 * len(margins))
    return Loss(loss.total, loss.count, beside)


ROLLOUT_LOSSES: Mapping[Method, Callable[[TokenJudgements, RolloutBatch, PreferSection], Loss]] = {
    "ppo": ppo_loss,
    "grpo": grpo_loss,
    "best-of-n": imitation_loss,
}


def rollout_loss(policy: Policy, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The loss of the plan's method, for answers under the current policy."""
    own = judge(policy, AnswerRows(batch.tokens, batch.mask), temperature=plan.temperature)
    return ROLLOUT_LOSSES[plan.method](own, on_device(policy, batch), plan)


def _told(own: TokenJudgements, batch: RolloutBatch) -> dict[str, Sum]:
    """The metrics of generated answers, and the policy's current entropy."""
    count = len(batch.mask)
    return {
        "reward": Sum(float(batch.rewards.sum()), count),
        "kl": Sum(float((batch.before - batch.reference)[batch.mask].sum()), count),
        "length": Sum(float(batch.mask.sum()), count),
        "entropy": Sum(float(own.entropy.detach().sum()), int(batch.mask.sum())),
    }


def on_device(policy: Policy, batch: BatchType) -> BatchType:
    device = language_model(policy).head.weight.device
    return type(batch)(*(part.to(device) for part in batch))
