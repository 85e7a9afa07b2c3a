"""Losses of preferences and of policies against TRL's trainers, which are asked for their losses alone: of models that
are tables of logits, with nothing around them."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from torch import Tensor

from heedful.training.policy import (
    answer_means,
    clipped_policy_loss,
    group_advantages,
    kl_estimates,
    token_log_probabilities,
)
from heedful.training.preference import dpo_loss, ranking_loss

pytest.importorskip("trl", reason="TRL is not installed: its losses are not compared with")

B, T, V = 6, 5, 11
LENGTHS = torch.tensor([5, 2, 4, 1, 3, 5])
MASK = torch.arange(T) < LENGTHS[:, None]


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def logs() -> Tensor:
    """Log-probabilities of the tokens of answers."""
    return token_log_probabilities(torch.randn(B, T, V) * 2, torch.randint(V, (B, T)))[0]


def test_the_loss_of_a_reward() -> None:
    from trl.trainer.reward_trainer import RewardTrainer

    rewards = torch.randn(2 * B) * 3
    trainer = MagicMock(args=SimpleNamespace(center_rewards_coefficient=None))
    model = MagicMock(return_value=SimpleNamespace(logits=rewards[:, None]))
    theirs = RewardTrainer.compute_loss(trainer, model, {"attention_mask": torch.ones(2 * B, T)})
    ours = ranking_loss(rewards.view(2, B).T, torch.tensor([[0, 1]] * B))
    close(ours.total / ours.count, theirs)


def test_the_loss_of_direct_preference_optimisation() -> None:
    from trl.trainer.dpo_trainer import DPOTrainer

    own, reference = logs() * MASK, logs() * MASK
    said = {"entropy": torch.zeros(B, T), "mean_logits": torch.zeros(B, T), "is_top1": MASK}
    trainer = MagicMock(
        beta=0.3,
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        f_divergence_type="reverse_kl",
        ld_alpha=None,
        precompute_ref_logps=False,
        use_weighting=False,
        aux_loss_enabled=False,
        model=MagicMock(return_value=None),
        ref_model=MagicMock(return_value=SimpleNamespace(log_probs=reference, **said)),
    )
    model = MagicMock(return_value=SimpleNamespace(log_probs=own, **said))
    trainer.accelerator.gather.side_effect = trainer.accelerator.gather_for_metrics.side_effect = lambda tensor: tensor
    trainer._total_train_tokens, trainer._tp_size = 0, 1
    whole = torch.cat([torch.zeros(B, 1).bool(), MASK], dim=1)
    inputs = {"input_ids": torch.zeros(B, T + 1), "attention_mask": torch.ones(B, T + 1), "completion_mask": whole}
    theirs = DPOTrainer._compute_loss(trainer, model, inputs, False)
    ours = dpo_loss(*own.sum(1).view(2, -1), *reference.sum(1).view(2, -1), beta=0.3)
    close(ours.total / ours.count, theirs)


def test_the_loss_of_groups_of_answers() -> None:
    from trl.trainer.grpo_trainer import GRPOTrainer

    own, before, reference, scores = logs().requires_grad_(), logs(), logs(), torch.randn(2, B // 2)
    advantages = group_advantages(scores).flatten()
    trainer = MagicMock(
        beta=0.04,
        loss_type="grpo",
        importance_sampling_level="token",
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        epsilon_low=0.2,
        epsilon_high=0.2,
        use_vllm=False,
        aux_loss_enabled=False,
        current_gradient_accumulation_steps=1,
        _entropy_bonus_enabled=False,
        args=SimpleNamespace(use_bias_correction_kl=False, delta=None),
    )
    trainer.accelerator.gather.side_effect = lambda tensor: tensor
    trainer._get_per_token_logps_and_entropies.return_value = own, torch.zeros(B, T), None
    inputs = {
        "prompt_ids": torch.zeros(B, 1),
        "prompt_mask": torch.ones(B, 1),
        "completion_ids": torch.zeros(B, T),
        "completion_mask": MASK.long(),
        "advantages": advantages,
        "old_per_token_logps": before,
        "ref_per_token_logps": reference,
    }
    theirs = GRPOTrainer._compute_loss(trainer, MagicMock(), inputs)
    policy, _ = clipped_policy_loss(own, before, advantages[:, None].expand(-1, T), clip=0.2)
    ours = answer_means(policy + 0.04 * kl_estimates(own, reference), MASK).mean()
    close(ours, theirs)
    close(*(torch.autograd.grad(loss, own, retain_graph=True)[0] for loss in (ours, theirs)))


def test_what_a_token_was_worth() -> None:
    from trl.trainer.utils import entropy_from_logits, selective_log_softmax

    logits, tokens = torch.randn(B, T, V) * 4, torch.randint(V, (B, T))
    log_probs, entropy = token_log_probabilities(logits, tokens)
    close(log_probs, selective_log_softmax(logits, tokens))
    close(entropy, entropy_from_logits(logits))
