"""Two systems on the same texts: scores and probabilities are sacreBLEU's."""

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from heedful.errors import InputError
from heedful.metrics.paired import compare
from heedful.metrics.texts import score_bleu, score_rouge

WORDS = ["a", "small", "cat", "sleeps", "near", "the", "old", "red", "house", "while", "it", "rains"]
REFERENCES = [[" ".join(WORDS[i % 5 : i % 5 + 7])] for i in range(30)]
GOOD = [own.replace("cat", "dog") if i % 3 else own for i, (own,) in enumerate(REFERENCES)]
BAD = [" ".join(own.split()[::-1]) if i % 2 else own for i, own in enumerate(GOOD)]


def test_scores_and_probabilities_are_sacrebleus() -> None:
    found = compare(GOOD, BAD, REFERENCES, samples=200, ter=True)
    systems = [("bad", BAD), ("good", GOOD)]
    target = [[own for (own,) in REFERENCES]]
    _, theirs = PairedTest(systems, {"bleu": BLEU(), "ter": TER()}, target, test_type="bs", n_samples=200)()
    for name, key in (("bleu", "BLEU"), ("ter", "TER")):
        bad, good = (row for row in theirs[key] if isinstance(row, Result))
        assert (getattr(found.one, name), getattr(found.other, name)) == (good.score, bad.score)
        assert found.p[name] == good.p_value
        assert getattr(found.one, f"{name}_margin") == pytest.approx(good.ci)
    assert found.difference("bleu") > 0 > found.difference("ter")
    assert found.p["bleu"] < 0.01
    assert "|bs:200|" in found.one.signature
    assert found.one.exact == sum(text == own for text, (own,) in zip(GOOD, REFERENCES, strict=True)) / 30


def test_a_system_is_not_better_than_itself() -> None:
    found = compare(GOOD, GOOD, REFERENCES, samples=50, ter=True)
    assert found.p == {"bleu": 1.0, "chrf": 1.0, "ter": 1.0}


def test_ter_is_there_where_it_was_asked_for() -> None:
    assert score_bleu(GOOD, REFERENCES).ter is None
    found = score_bleu(BAD, REFERENCES, ter=True, bootstrap=50)
    assert found.ter == TER().corpus_score(BAD, [[own for (own,) in REFERENCES]]).score > 0
    assert found.ter_margin is not None
    assert "case:lc" in str(found)
    with pytest.raises(InputError, match="ROUGE"):
        score_rouge(GOOD, REFERENCES, ter=True)


def test_few_texts_show_no_difference() -> None:
    """Where each is better in one system, so are all resamples."""
    said, other, references = "the dog runs in the house", "the cat runs in the house", [["the dog runs in the house"]]
    for count in (1, 2, 5, 6, 12):
        found = compare([said] * count, [other] * count, references * count)
        assert found.p["bleu"] == pytest.approx(max(0.5 ** (count - 1), 1 / 1001))
        assert (found.p["bleu"] < 0.05) == (count > 5)
        assert (found.one.bleu_margin is None) == (count == 1)
    assert score_bleu([said], references, bootstrap=9).bleu_margin is None


def test_intervals_of_few_texts_of_which_some_share_no_word() -> None:
    """sacreBLEU's mean of resamples fails where some score 0: "don't know how to coerce float and float32"."""
    found = score_bleu(["a b c d", "x"], [["q"], ["x"]], bootstrap=40, ter=True)
    assert found.bleu_margin is not None
    assert (found.chrf_margin, found.exact) == (50.0, 0.5)
    ours = score_bleu(BAD, REFERENCES, bootstrap=100)
    measure = CHRF()
    theirs = measure.corpus_score(BAD, [[own for (own,) in REFERENCES]], n_bootstrap=100)
    assert (ours.chrf, ours.chrf_margin) == (theirs.score, pytest.approx(theirs._ci))
    assert ours.chrf_signature == str(measure.get_signature())
