"""What each method learns of answers that were made, or judged.

B answers or pairs, L tokens of a row, T = L - 1 that follow one.
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
    """Answers that were made: how likely each token was to the policy that made it and to the reference (nats), what
    was expected then and what came, by how much it was better than that, and the reward of the whole."""

    tokens: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B T"]
    before: Float[Tensor, "B T"]
    reference: Float[Tensor, "B T"]
    values: Float[Tensor, "B T"]
    returns: Float[Tensor, "B T"]
    advantages: Float[Tensor, "B T"]
    rewards: Float[Tensor, "B"]


class PreferenceBatch(NamedTuple):
    """The better answer to a prompt, and a worse one, and the log-probabilities of both by the reference (nats)."""

    tokens: Int[Tensor, "B 2 L"]
    mask: Bool[Tensor, "B 2 T"]
    reference: Float[Tensor, "B 2"]
    rewards: Float[Tensor, "B 2"]  # where they were made and not judged; else 0


BatchType = TypeVar("BatchType", RolloutBatch, PreferenceBatch)


def ppo_loss(own: TokenJudgements, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The clipped objective, with the values' errors and what is given for entropy (Schulman et al. 2017, equation 9),
    summed over the tokens. The KL penalty is part of the advantages."""
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
    """The clipped objective with the KL divergence from the reference taken from it, as a mean over the tokens of each
    answer, summed over the answers (Shao et al. 2024, equation 3)."""
    mask, count = batch.mask, int(batch.mask.sum())
    gains, held = clipped_policy_loss(own.log_probs, batch.before, batch.advantages, clip=plan.clip)
    total = gains + plan.kl * kl_estimates(own.log_probs, batch.reference) - plan.entropy * own.entropy
    beside = {
        **_told(own, batch),
        "clip_fraction": Sum(float(held[mask].sum()), count),
    }
    return Loss(answer_means(total, mask).sum(), len(mask), beside)


def imitation_loss(own: TokenJudgements, batch: RolloutBatch, plan: PreferSection) -> Loss:
    """The cross-entropy of the tokens of the answers, which are the best of several (Dong et al. 2023)."""
    total = -own.log_probs.sum() - plan.entropy * own.entropy.sum()
    return Loss(total, int(batch.mask.sum()), _told(own, batch))


def pair_loss(policy: Policy, batch: PreferenceBatch, plan: PreferSection) -> Loss:
    """Direct preference optimisation, summed over the pairs."""
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
    """That of the plan's method, of answers as the policy takes them now."""
    own = judge(policy, AnswerRows(batch.tokens, batch.mask), temperature=plan.temperature)
    return ROLLOUT_LOSSES[plan.method](own, on_device(policy, batch), plan)


def _told(own: TokenJudgements, batch: RolloutBatch) -> dict[str, Sum]:
    """What is known of answers since they were made, and how open the policy still is."""
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
