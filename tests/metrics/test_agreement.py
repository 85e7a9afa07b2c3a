"""Agreement of rankings, by hand."""

import math

import pytest

from heedful.metrics.agreement import agreement, kendall


def test_kendalls_tau() -> None:
    assert kendall([0, 1, 2], [0, 1, 2]) == pytest.approx(1.0)
    assert kendall([0, 1, 2], [2, 1, 0]) == pytest.approx(-1.0)
    assert kendall([0, 1, 2], [0, 2, 1]) == pytest.approx(1 / 3)
    assert kendall([0, 0, 1], [0, 1, 2]) == pytest.approx(2 / math.sqrt(2 * 3))  # tau-b
    assert kendall([0, 0, 0], [0, 1, 2]) is None


def test_agreement_of_several() -> None:
    judged = {
        "a": {"ada": [0, 1, 2], "bo": [0, 1, 2], "cy": [2, 1, 0]},
        "b": {"ada": [0, 1]},
        "c": {"ada": [0, 0], "bo": [0, 1]},
    }
    found = agreement(judged)
    assert found["items"] == 2
    assert found["comparisons"] == 9
    assert found["kendall_tau"] == pytest.approx((1 - 1 - 1) / 3)
    assert found["same_order"] == pytest.approx(3 / 9)
    assert agreement({"a": {"ada": [0, 1]}}) == {"items": 0, "comparisons": 0}


def test_what_one_did_not_rank_is_not_compared() -> None:
    whole = agreement({"a": {"ada": [0, 1, 2], "bea": [0, 1, 2]}})
    part = agreement({"a": {"ada": [0, 1, 2], "bea": [-1, 0, 1]}, "b": {"ada": [0, 1, 2], "bea": [-1, -1, 0]}})
    assert whole["comparisons"] == 3
    assert (part["items"], part["comparisons"], part["same_order"], part["kendall_tau"]) == (2, 1, 1.0, 1.0)
