"""Losses of judgements against their definitions, written out in double precision."""

import math
from itertools import permutations

import pytest
import torch

from heedful.training.preference import dpo_loss, ranking_loss


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def first_of(scores: list[float], among: list[int], first: int) -> float:
    """Minus the log-probability that `first` is chosen."""
    return -math.log(math.exp(scores[first]) / sum(math.exp(scores[i]) for i in among))


def test_dpo_is_the_logistic_loss_of_the_margin_of_ratios():
    given = torch.randn(4, 5, dtype=torch.float64) * 3
    written = [-math.log(sigmoid(0.3 * ((c - cr) - (r - rr)))) for c, r, cr, rr in given.T.tolist()]
    found = dpo_loss(*given, beta=0.3)
    assert found.total.item() == pytest.approx(sum(written), rel=1e-12)
    assert found.count == 5


def test_dpo_is_finite_however_far_apart_the_answers_are():
    far = torch.tensor([[-2000.0], [0.0], [0.0], [-2000.0]])
    assert dpo_loss(*far, beta=1.0).total.item() == pytest.approx(4000.0)


def test_of_two_answers_it_is_bradley_and_terrys():
    scores = torch.randn(6, 2, dtype=torch.float64) * 3
    ranks = torch.tensor([[0, 1], [1, 0]] * 3)
    better, worse = scores.gather(1, ranks.argsort(1)).T.tolist()
    written = sum(-math.log(sigmoid(b - w)) for b, w in zip(better, worse, strict=True))
    found = ranking_loss(scores, ranks)
    assert found.total.item() == pytest.approx(written, rel=1e-12)
    assert found.count == 6


def test_of_a_ranking_it_is_the_likelihood_of_choosing_one_after_another():
    scores = [0.4, -1.1, 2.0, 0.0]
    order = [2, 0, 3, 1]
    written = sum(first_of(scores, order[i:], order[i]) for i in range(3))
    ranks = torch.tensor([[order.index(i) for i in range(4)]])
    found = ranking_loss(torch.tensor([scores], dtype=torch.float64), ranks)
    assert found.total.item() == pytest.approx(written, rel=1e-12)
    assert found.count == 3


def test_the_likelihoods_of_all_rankings_sum_to_one():
    scores = torch.randn(1, 4, dtype=torch.float64)
    each = [math.exp(-ranking_loss(scores, torch.tensor([order])).total.item()) for order in permutations(range(4))]
    assert sum(each) == pytest.approx(1.0, rel=1e-12)


def test_ties_are_not_compared():
    scores = [0.4, -1.1, 2.0]
    written = first_of(scores, [0, 2], 0) + first_of(scores, [1, 2], 1)  # two of the first rank, one below
    found = ranking_loss(torch.tensor([scores], dtype=torch.float64), torch.tensor([[0, 0, 1]]))
    assert found.total.item() == pytest.approx(written, rel=1e-12)
    assert found.count == 2
    tied = ranking_loss(torch.randn(1, 3), torch.zeros(1, 3, dtype=torch.long))
    assert (tied.total.item(), tied.count) == (0.0, 0)


def test_an_answer_that_is_not_there_has_no_part_in_it():
    scores = torch.randn(1, 4, dtype=torch.float64, requires_grad=True)
    with_more = ranking_loss(scores, torch.tensor([[1, 0, -1, 2]]))
    alone = ranking_loss(scores[:, [0, 1, 3]], torch.tensor([[1, 0, 2]]))
    assert with_more.total.item() == pytest.approx(alone.total.item(), rel=1e-12)
    assert with_more.count == alone.count
    (gradient,) = torch.autograd.grad(with_more.total, scores)
    assert gradient.isfinite().all()
    assert gradient[0, 2] == 0
