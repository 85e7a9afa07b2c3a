"""What rewards are worth, by hand."""

import pytest

from heedful.metrics.rewards import RewardedPair, calibration_error, pair_scores


def test_the_calibration_error() -> None:
    assert calibration_error([0.95] * 20, [True] * 19 + [False]) == pytest.approx(0.0)
    assert calibration_error([0.9, 0.9, 0.6, 0.6], [True, True, False, False]) == pytest.approx((0.2 + 1.2) / 4)
    assert calibration_error([1.0], [True]) == 0


def test_scores_of_pairs() -> None:
    pairs = [RewardedPair(2.0, 1.0, 5, 3), RewardedPair(1.0, 2.0, 2, 9), RewardedPair(1.0, 1.0, 4, 4)]
    found = pair_scores(pairs)
    assert found["pair_accuracy"] == 0.5
    assert found["accuracy_longer"] == 1.0
    assert found["accuracy_shorter"] == 0.0
    assert found["length_correlation"] > 0.5
    sure = [RewardedPair(800.0, -800.0, 1, 1)]
    assert pair_scores(sure) == {"pair_accuracy": 1.0, "calibration_error": 0.0, "length_correlation": 0.0}


def test_equal_rewards_say_a_chance_of_a_half_and_are_half_right() -> None:
    found = pair_scores([RewardedPair(1.0, 1.0, 1, 2)] * 4)
    assert found["pair_accuracy"] == 0.5
    assert found["calibration_error"] == 0.0
