"""The tables of a model card."""

from heedful.run.card import score_table


def test_a_score_that_one_test_set_lacks_is_a_dash() -> None:
    scores = {"test_a": {"loss": 0.5, "accuracy_shorter": 1.0, "pairs": 1234}, "test_b": {"loss": 0.25, "pairs": 2}}
    assert score_table("judgements", scores) == [
        "| judgements | loss | accuracy shorter | pairs |",
        "|---|---|---|---|",
        "| test_a | 0.5000 | 1.0000 | 1,234 |",
        "| test_b | 0.2500 | - | 2 |",
    ]
