"""Bracket scores against examples worked by hand, of which EVALB gives the same."""

import pytest

from heedful.data.text.trees import parse_trees
from heedful.metrics.brackets import bracket_scores

RIGHT = "(S (NP (DT the) (NN cat)) (, ,) (VP (VBZ sleeps) (PP (IN on) (NP (DT the) (NN mat)))) (. .))"


def scores(pairs, **options):
    right, found = zip(*((next(parse_trees([one], "x")) for one in pair) for pair in pairs), strict=True)
    return bracket_scores(right, found, **options)


@pytest.mark.parametrize(
    ("right", "found", "matched", "gold", "said"),
    [
        (RIGHT, RIGHT, 5, 5, 5),
        # the phrase on the mat is not part of what is done: VP is wrong, and all else right
        (
            RIGHT,
            "(S (NP (DT the) (NN cat)) (, ,) (VP (VBZ sleeps)) (PP (IN on) (NP (DT the) (NN mat))) (. .))",
            4,
            5,
            5,
        ),
        # where punctuation is does not count, and neither does a bracket of punctuation alone
        (
            RIGHT,
            "(S (NP (DT the) (NN cat) (PRN (, ,))) (VP (VBZ sleeps) (PP (IN on) (NP (DT the) (NN mat) (. .)))))",
            5,
            5,
            5,
        ),
        # each bracket counts once, however often it is said
        ("(S (NP (NP (NN a))))", "(S (NP (NN a)))", 2, 3, 2),
        ("(S (NP (NN a)))", "(S (NP (NP (NP (NN a)))))", 2, 2, 4),
        # a bracket around all that says nothing
        ("(TOP (S (NN a)))", "(S1 (S (NN a)))", 1, 1, 1),
        ("(S (ADVP (RB up)) (NN a))", "(S (PRT (RB up)) (NN a))", 2, 2, 2),
        ("(S (NP (RB up)) (NN a))", "(S (PRT (RB up)) (NN a))", 1, 2, 2),
    ],
)
def test_one_sentence(right, found, matched, gold, said):
    got = scores([(right, found)])
    assert got.precision == pytest.approx(matched / said)
    assert got.recall == pytest.approx(matched / gold)
    assert got.f1 == pytest.approx(2 * matched / (gold + said))
    assert got.complete == (matched == gold == said)
    assert got.valid == 1.0


def test_sentences_are_counted_together_and_those_that_cannot_be_compared_are_left_out():
    pairs = [
        (RIGHT, RIGHT),
        ("(S (NP (NN a)) (NN b))", "(S (NN a) (VP (NN b)))"),
        ("(S (NN a) (NN b))", "(S (NN a))"),
        ("(S (NN a))", "(S (NN b))"),
        ("(X (. .))", "(X (. .))"),
    ]
    got = scores(pairs)
    assert got.valid == pytest.approx(2 / 5)
    assert got.f1 == pytest.approx(6 / 7)
    assert got.complete == 0.5
    assert scores(pairs, longest=2).f1 == pytest.approx(1 / 2)
    assert scores(pairs, longest=8).f1 == pytest.approx(6 / 7)
    assert scores(pairs[3:]) == scores([("(X (. .))", "(X (. .))")])
