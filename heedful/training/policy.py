"""Reinforcement learning of what a model writes: advantages, and the losses of a policy and its values.

An answer is a row: its tokens are the actions, and `mask` says which positions hold one. B answers, T tokens, V
vocabulary.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TINY = 1e-8  # added to a variance
GROUP_TINY = 1e-4  # added to the deviation of a group


@dataclass(frozen=True, kw_only=True)
class AdaptiveKL:
    """A weight of the KL penalty that follows the KL to a target (Ziegler et al. 2019, section 2.2)."""

    target: float  # nats an answer
    gain: float = 0.1
    most: float = 0.2  # the largest relative error that counts

    def next(self, weight: float, kl: float) -> float:
        """The next weight, where `kl` was measured with this one."""
        error = max(-self.most, min(self.most, kl / self.target - 1))
        return weight * (1 + self.gain * error)


def token_log_probabilities(
    logits: Float[Tensor, "*N V"], tokens: Int[Tensor, "*N"]
) -> tuple[Float[Tensor, "*N"], Float[Tensor, "*N"]]:
    """The log-probability of each token, and the entropy of the distribution at its position, both in nats."""
    logs = logits.float().log_softmax(-1)
    return logs.gather(-1, tokens[..., None]).squeeze(-1), -(logs.exp() * logs).sum(-1)


def penalised_rewards(
    scores: Float[Tensor, "B"],
    log_probs: Float[Tensor, "B T"],
    reference: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    weight: float,
) -> Float[Tensor, "B T"]:
    """A reward for each token: the answer's score at its last one, and at each minus `weight` times log(policy /
    reference), whose sum is a sample of the KL divergence (Ziegler et al. 2019, equation 2)."""
    rewards = torch.where(mask, -weight * (log_probs - reference), 0.0)
    followed = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], dim=1)  # the next position has a token too
    last = mask & ~followed
    return rewards + torch.where(last, scores[:, None], 0.0)


def generalised_advantages(
    rewards: Float[Tensor, "B T"],
    values: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    discount: float,
    decay: float,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """The advantage of each token (Schulman et al. 2016, equation 16; `discount` is gamma, `decay` lambda), and the
    value that it should have had. The value after an answer's last token is 0."""
    rewards, values = torch.where(mask, rewards, 0.0), torch.where(mask, values, 0.0)
    advantages = torch.zeros_like(values)
    ahead, value_ahead = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])
    for t in reversed(range(values.shape[1])):
        error = rewards[:, t] + discount * value_ahead - values[:, t]
        ahead = torch.where(mask[:, t], error + discount * decay * ahead, 0.0)
        advantages[:, t], value_ahead = ahead, values[:, t]
    return advantages, torch.where(mask, advantages + values, 0.0)


def group_advantages(scores: Float[Tensor, "G N"]) -> Float[Tensor, "G N"]:
    """How far each of the N answers to a prompt is above their mean, in their standard deviations (Shao et al. 2024,
    section 4.1.2)."""
    return (scores - scores.mean(1, keepdim=True)) / (scores.std(1, keepdim=True) + GROUP_TINY)


def whitened(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Normalised to mean 0 and variance 1 over the tokens; 0 elsewhere."""
    own = values[mask]
    scale = torch.rsqrt(own.var(correction=0) + TINY)
    return torch.where(mask, (values - own.mean()) * scale, 0.0)


def clipped_policy_loss(
    log_probs: Float[Tensor, "B T"],
    before: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    clip: float,
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Minus the clipped surrogate objective of each token (Schulman et al. 2017, equation 7), and where clipping stops
    its gradient. `before`: the log-probabilities under the policy that wrote the answers."""
    ratio = (log_probs - before).exp()
    plain, limited = ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages
    return -torch.minimum(plain, limited), limited < plain


def clipped_value_loss(
    values: Float[Tensor, "B T"],
    before: Float[Tensor, "B T"],
    returns: Float[Tensor, "B T"],
    *,
    clip: float,
) -> Float[Tensor, "B T"]:
    """Half the squared error of each value, or of the value clipped to within `clip` of what it was, whichever is
    larger: as in the code of PPO's authors (Dhariwal et al. 2017, OpenAI Baselines)."""
    limited = before + (values - before).clamp(-clip, clip)
    return 0.5 * torch.maximum((values - returns).square(), (limited - returns).square())


def kl_estimates(log_probs: Float[Tensor, "B T"], reference: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """For each token an unbiased, non-negative estimate of the KL divergence from the reference (Shao et al. 2024,
    equation 4)."""
    ratio = reference - log_probs
    return ratio.exp() - ratio - 1


def answer_means(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """The mean over the tokens of each answer."""
    return torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)
