"""Scores with their names, as people read them."""

import pytest

from heedful.metrics.names import in_words


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("answers", 1, "1 answer"),
        ("answers", 2, "2 answers"),
        ("tokens", 20_000, "20,000 tokens"),
        ("exact", 0.5, "50.0 % exactly right"),
        ("bleu_before", 12.0, "BLEU 12.0 before"),
    ],
)
def test_a_score_has_its_name(name: str, value: float, told: str) -> None:
    assert in_words(name, value) == told
