"""The tables of a model card."""

from heedful.run.card import score_table
from heedful.tasks.translate.training.card import _signatures


def test_a_score_that_one_test_set_lacks_is_a_dash() -> None:
    scores = {"test_a": {"loss": 0.5, "accuracy_shorter": 1.0, "pairs": 1234}, "test_b": {"loss": 0.25, "pairs": 2}}
    assert score_table("judgements", scores) == [
        "| judgements | loss | accuracy shorter | pairs |",
        "|---|---|---|---|",
        "| test_a | 0.5000 | 1.0000 | 1,234 |",
        "| test_b | 0.2500 | - | 2 |",
    ]


def test_each_test_set_has_the_signature_that_it_was_scored_by() -> None:
    """Of Chinese words are others than of German."""
    german = {"bleu": 30.0, "signature": "tok:13a", "chrf_signature": "nc:6"}
    chinese = {**german, "signature": "tok:zh"}
    assert _signatures({"one": german, "other": german}) == "`tok:13a` and `nc:6`"
    told = "`tok:13a` and `nc:6` (de); `tok:zh` and `nc:6` (zh, zh 2)"
    assert _signatures({"de": german, "zh": chinese, "zh 2": chinese}) == told
