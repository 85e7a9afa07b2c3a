import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from heedful.metrics.labels import accuracy, entropy, f1, pearson, spearman

HALVES = st.integers(-5, 5).map(lambda n: n / 2)


def test_f1_by_hand() -> None:
    """Label a: 1 hit, said twice, true once; b: 1 hit, said once, true twice; c: never said, true once."""
    found, right = [["a"], ["a"], ["b"], []], [["a"], ["b"], ["b"], ["c"]]
    macro, micro = f1(found, right)
    assert macro == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert micro == pytest.approx(2 * 2 / (3 + 4))
    assert accuracy("abca", "abbb") == 0.5


@given(st.lists(st.tuples(HALVES, HALVES), min_size=2, max_size=30))
def test_correlations_are_torchs(rows) -> None:
    ours, theirs = zip(*rows, strict=True)
    if len(set(ours)) == 1 or len(set(theirs)) == 1:
        assert pearson(ours, theirs) == spearman(ours, theirs) == 0
        return
    assert pearson(ours, theirs) == pytest.approx(
        float(torch.corrcoef(torch.tensor(rows, dtype=torch.float64).T)[0, 1])
    )
    ranks = torch.stack([_ranks(side) for side in (ours, theirs)])
    assert spearman(ours, theirs) == pytest.approx(float(torch.corrcoef(ranks)[0, 1]))


def _ranks(values) -> torch.Tensor:
    """By definition: how many are smaller, and half of those that are equal."""
    own = torch.tensor(values)
    return (own[:, None] > own).double().sum(1) + ((own[:, None] == own).double().sum(1) - 1) / 2


def test_knowing_how_often_answers_are_right_costs_their_entropy():
    assert entropy(["a", "b", "a", "b"]) == pytest.approx(math.log(2))
    assert entropy(["a", "a"]) == 0 == entropy([])
    right = torch.tensor([0] * 6 + [1] * 3 + [2])
    logits = torch.tensor([0.6, 0.3, 0.1]).log().expand(10, 3)
    assert entropy(right.tolist()) == pytest.approx(float(F.cross_entropy(logits, right)))


def test_what_does_not_vary_has_no_correlation() -> None:
    """The mean of three times 0.1 is not 0.1 to the last bit."""
    assert pearson([0.1] * 3, [0.7] * 3) == pearson([0.1] * 3, [1.0, 2.0, 4.0]) == 0
