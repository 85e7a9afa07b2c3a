"""Advantages and losses of a policy against their definitions, written out in double precision a number at a time."""

import math

import pytest
import torch
from torch import Tensor

from heedful.training.policy import (
    AdaptiveKL,
    answer_means,
    clipped_policy_loss,
    clipped_value_loss,
    generalised_advantages,
    group_advantages,
    kl_estimates,
    penalised_rewards,
    token_log_probabilities,
    whitened,
)

B, T = 4, 6
LENGTHS = [6, 3, 1, 4]
MASK = torch.arange(T) < torch.tensor(LENGTHS)[:, None]


def loud(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64) * 1.5


def test_the_score_comes_with_the_last_token_and_the_penalty_with_each():
    scores, own, reference = loud(B), loud(B, T), loud(B, T)
    found = penalised_rewards(scores, own, reference, MASK, weight=0.3)
    for b, length in enumerate(LENGTHS):
        for t in range(T):
            written = -0.3 * float(own[b, t] - reference[b, t]) if t < length else 0.0
            written += float(scores[b]) if t == length - 1 else 0.0
            assert found[b, t].item() == pytest.approx(written, rel=1e-12)


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 0.5), (1.0, 1.0), (0.99, 0.0)])
def test_advantages_are_the_discounted_sums_of_errors(gamma, lam):
    rewards, values = loud(B, T), loud(B, T)
    advantages, returns = generalised_advantages(rewards, values, MASK, discount=gamma, decay=lam)
    for b, length in enumerate(LENGTHS):
        r, v = rewards[b].tolist(), [*values[b, :length].tolist(), 0.0]
        errors = [r[t] + gamma * v[t + 1] - v[t] for t in range(length)]
        for t in range(length):
            written = sum((gamma * lam) ** (s - t) * errors[s] for s in range(t, length))
            assert advantages[b, t].item() == pytest.approx(written, rel=1e-10)
            assert returns[b, t].item() == pytest.approx(written + v[t], rel=1e-10)
        assert not advantages[b, length:].any()
        assert not returns[b, length:].any()


def test_padding_changes_no_advantage():
    rewards, values = loud(B, T), loud(B, T)
    rewards[~MASK], values[~MASK] = math.inf, math.nan
    found = generalised_advantages(rewards, values, MASK, discount=0.9, decay=0.9)
    rewards[~MASK], values[~MASK] = 0.0, 0.0
    again = generalised_advantages(rewards, values, MASK, discount=0.9, decay=0.9)
    torch.testing.assert_close(found, again, rtol=0, atol=0)


def test_whitened_values_have_mean_0_and_variance_1():
    values = loud(B, T)
    found = whitened(values, MASK)
    own = values[MASK].tolist()
    mean = sum(own) / len(own)
    variance = sum((x - mean) ** 2 for x in own) / len(own)
    written = [(x - mean) / math.sqrt(variance + 1e-8) for x in own]
    torch.testing.assert_close(found[MASK].tolist(), written, rtol=1e-12, atol=1e-12)
    assert not found[~MASK].any()


def test_of_an_answer_of_one_token_all_is_its_error():
    rewards, values = torch.tensor([[1.0], [0.5]]), torch.tensor([[0.25], [2.0]])
    advantages, returns = generalised_advantages(
        rewards, values, torch.ones(2, 1, dtype=torch.bool), discount=0.9, decay=0.9
    )
    assert advantages.tolist() == [[0.75], [-1.5]]
    assert returns.tolist() == rewards.tolist()


def test_advantages_of_a_group_are_its_standard_scores():
    scores = loud(3, 4)
    found = group_advantages(scores)
    for own, row in zip(scores.tolist(), found.tolist(), strict=True):
        mean = sum(own) / 4
        deviation = math.sqrt(sum((x - mean) ** 2 for x in own) / 3)
        torch.testing.assert_close(row, [(x - mean) / (deviation + 1e-4) for x in own], rtol=1e-12, atol=1e-12)
    assert not group_advantages(torch.ones(1, 4)).any()  # all alike: nothing to be learnt


def test_the_clipped_objective_of_each_token():
    own, before, advantages = loud(B, T), loud(B, T), loud(B, T)
    found, held = clipped_policy_loss(own, before, advantages, clip=0.2)
    for at in [(b, t) for b in range(B) for t in range(T)]:
        ratio, gain = math.exp(float(own[at] - before[at])), float(advantages[at])
        written = min(ratio * gain, min(max(ratio, 0.8), 1.2) * gain)
        assert found[at].item() == pytest.approx(-written, rel=1e-12)
        assert held[at].item() == ((ratio > 1.2 and gain > 0) or (ratio < 0.8 and gain < 0))


def test_what_is_held_back_has_no_gradient():
    own = loud(B, T).requires_grad_()
    found, held = clipped_policy_loss(own, loud(B, T), loud(B, T), clip=0.2)
    (gradient,) = torch.autograd.grad(found.sum(), own)
    assert held.any()
    assert ((gradient == 0) == held).all()


def test_at_first_the_gradient_is_that_of_the_plain_policy():
    own, advantages = loud(B, T).requires_grad_(), loud(B, T)
    found, _ = clipped_policy_loss(own, own.detach(), advantages, clip=0.2)
    (gradient,) = torch.autograd.grad(found.sum(), own)
    torch.testing.assert_close(gradient, -advantages)


def test_the_clipped_error_of_each_value():
    values, before, returns = loud(B, T), loud(B, T), loud(B, T)
    found = clipped_value_loss(values, before, returns, clip=0.2)
    for at in [(b, t) for b in range(B) for t in range(T)]:
        value, old, goal = (float(x[at]) for x in (values, before, returns))
        limited = min(max(value, old - 0.2), old + 0.2)
        assert found[at].item() == pytest.approx(0.5 * max((value - goal) ** 2, (limited - goal) ** 2), rel=1e-12)


def test_the_estimate_of_the_divergence_is_unbiased_and_never_negative():
    own, reference = loud(7).log_softmax(0), loud(7).log_softmax(0)
    each = kl_estimates(own[None], reference[None])[0]
    assert (each >= 0).all()
    divergence = sum(math.exp(p) * (p - q) for p, q in zip(own.tolist(), reference.tolist(), strict=True))
    assert float((own.exp() * each).sum()) == pytest.approx(divergence, rel=1e-12)


def test_log_probabilities_and_entropy_of_logits():
    logits, tokens = torch.randn(B, T, 5) * 3, torch.randint(5, (B, T))
    found, entropy = token_log_probabilities(logits, tokens)
    for at in [(b, t) for b in range(B) for t in range(T)]:
        row = logits[at].double().tolist()
        norm = math.log(sum(map(math.exp, row)))
        logs = [x - norm for x in row]
        assert found[at].item() == pytest.approx(logs[int(tokens[at])], abs=1e-6)
        assert entropy[at].item() == pytest.approx(-sum(math.exp(x) * x for x in logs), abs=1e-6)


def test_means_of_answers_leave_padding_out():
    values = loud(B, T)
    written = [sum(row[:length]) / length for row, length in zip(values.tolist(), LENGTHS, strict=True)]
    values[~MASK] = math.nan
    torch.testing.assert_close(answer_means(values, MASK).tolist(), written, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kl", "factor"), [(6.0, 1.0), (6.6, 1.01), (600.0, 1.02), (0.0, 0.98), (5.4, 0.99)])
def test_the_weight_of_the_penalty_follows_the_target(kl, factor):
    assert AdaptiveKL(target=6.0).next(0.2, kl) == pytest.approx(0.2 * factor)
