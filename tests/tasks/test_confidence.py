"""Confidence: the model's own probabilities, mapped so that what is said with 0.7 comes true seven times of ten."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import heedful
from commands import heed
from heedful.data.documents.passages import Passage
from heedful.data.text.pairs import Pairs
from heedful.decode.contract import Hypothesis
from heedful.errors import InputError, StorageError
from heedful.run.train import train
from heedful.store.lock import run_lock
from heedful.tasks import TASKS
from heedful.tasks.translate import searching
from heedful.tasks.translate.calibration import _fitted, calibrated, calibration_error, found_in, with_noise
from heedful.tasks.translate.cli import translate
from heedful.tasks.translate.confidence import (
    FILE,
    UNLIKE,
    Calibration,
    Sigmoid,
    log_odds,
    write_calibration,
)
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.inside.words import AlignOptions, align
from heedful.tasks.translate.options import TranslateOptions, TranslationScoring
from heedful.tasks.translate.records import translate_texts
from heedful.tasks.translate.scoring import score_translator
from heedful.tasks.translate.use import Translator
from heedful.verbs.use import ask
from made import backwards, made_corpus, made_recipe, with_about
from serving import opened, translator

TEXTS = ["ba de gi", "ko", "", "lu ma ne pi"]
HALF = Sigmoid(slope=0.5, intercept=0.1, error=0.02, uncalibrated_error=0.2, count=9)
CALIBRATION = Calibration(sentence=replace(HALF, slope=2.0), word=HALF)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return translator(tmp_path / "made", "low", "high", seed=2)


def test_words_are_those_of_the_text_and_their_tokens_make_the_score(run: Path) -> None:
    model = Translator.load(run)
    for one in model.search(TEXTS, confidence=True, n_best=2, length_penalty=0.0):
        for (text, score), said in zip(one.hypotheses, one.said, strict=True):
            assert [word for word, _ in said.words] == text.split()
            assert said.mean * said.tokens == pytest.approx(score, abs=1e-4)
    assert model.search(TEXTS)[0].said == (), "only who asks waits for it"


def test_without_a_calibration_it_is_the_probability_itself(run: Path) -> None:
    model = Translator.load(run)
    made = model.search(TEXTS, confidence=True)
    for record, one in zip(translate_texts(model, TEXTS, TranslateOptions()), made, strict=True):
        (said,) = one.said
        assert record["calibrated"] is False
        assert record["confidence"] == (math.exp(said.mean) if one.text else 1.0)
        assert [word["confidence"] for word in record["words"]] == [math.exp(own) for _, own in said.words]
        assert record["hypotheses"][0] == {key: record[key] for key in ("text", "score", "confidence", "words")}


@pytest.mark.parametrize("text", ["ba de gi", "ba {n} gi", "ba 3.5 gi", "ba 1,000", "Ba de. Gi {n}.\nKo 7."])
def test_every_way_to_ask_tells_the_same(run: Path, text: str) -> None:
    """Also of what another translation was put in place of, for its placeholders or numbers."""
    write_calibration(run, CALIBRATION)
    model = Translator.load(run)
    (record,) = ask(model, "translate", [text])
    looked = align(model, text, AlignOptions())
    assert record["calibrated"] is looked["calibrated"] is True
    assert record["confidence"] == pytest.approx(looked["confidence"], abs=1e-4)
    if "{" in text:  # was put back into words that the model said without it
        return
    for own, other in zip(record["words"], looked["words"], strict=True):
        assert own["text"] == other["text"]
        assert own["confidence"] == pytest.approx(other["confidence"], abs=1e-4)
        assert other["confidence"] == pytest.approx(HALF(math.log(other["probability"])), abs=1e-6)


def test_a_text_in_parts_has_the_words_of_all(run: Path) -> None:
    model = with_about(Translator.load(run), source_tokens={"longest": 3, "centile_99": 3})
    whole = model.search("Ba de. Gi ko.", confidence=True)
    parts = model.search(["Ba de.", "Gi ko."], confidence=True)
    assert whole.said[0].words == (*parts[0].said[0].words, *parts[1].said[0].words)
    assert whole.said[0].tokens == sum(one.said[0].tokens for one in parts)
    assert whole.said[0].mean == min(one.said[0].mean for one in parts), "a text is as sure as its least sure sentence"


def test_several_models_are_not_calibrated(run: Path) -> None:
    write_calibration(run, CALIBRATION)
    model = Translator.load(run).join(Translator.load(run))
    assert [one["calibrated"] for one in translate_texts(model, ["ba"], TranslateOptions())] == [False]


def test_a_sigmoid_is_found_again() -> None:
    draw = torch.Generator().manual_seed(1)
    odds = 3 * torch.randn(20_000, generator=draw, dtype=torch.float64)
    right = torch.rand(len(odds), generator=draw) < (0.5 * odds - 1).sigmoid()
    columns = torch.stack([odds, torch.zeros_like(odds), torch.ones_like(odds)], dim=1)
    assert _fitted(columns, right).tolist() == pytest.approx([0.5, 0.0, -1.0], abs=0.05)
    assert calibration_error((0.5 * odds - 1).sigmoid(), right) < 0.02
    assert calibration_error(odds.sigmoid(), right) > 0.1
    assert [math.isfinite(own) for own in _fitted(columns, torch.ones_like(right)).tolist()] == [True] * 3


def test_log_odds_are_finite() -> None:
    assert log_odds(math.log(0.25)) == pytest.approx(math.log(1 / 3))
    assert log_odds(0.0) < 20
    assert log_odds(-1e9) == log_odds(-50.0)


def test_a_word_is_right_as_often_as_the_reference_has_it() -> None:
    assert found_in(["Ein", "Hund", "Hund,", "ein"], ["Ein Hund."]) == [True, True, False, False]
    assert found_in(["Hund", "!"], ["Katze", "Ein Hund !"]) == [True, True], "of several references the best"
    assert found_in(["日", "犬"], ["日本"]) == [True, False]
    assert found_in(["schön."], ["scho\u0308n."]) == found_in(["scho\u0308n"], ["schön"]) == [True]


def test_what_comes_true_is_what_it_says(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the references are the translations of half of the sources, half of the sentences come true."""
    model = opened(run).changed(run=run)
    pairs = backwards(40, seed=5)
    made = model.translate(pairs.source)
    wanted = [text if row % 2 else "x y z" for row, text in enumerate(made)]
    found = calibrated(model, Pairs(pairs.source, wanted, "half"))
    assert found is not None
    assert found.sentence.count == 40
    assert found.wrong == 20
    mean = [one.said[0].mean for one in model.search(pairs.source, confidence=True)]
    noised = [one.said[0].mean for one in model.search(with_noise(pairs).source, confidence=True)]
    assert sum(map(found.sentence, [*mean, *noised])) / 60 == pytest.approx(20 / 60, abs=0.02)
    assert calibrated(model, backwards(19, seed=5)) is None


def test_eval_calibrates_an_old_run_and_what_is_unsure_is_flagged(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = backwards(40, seed=5)
    for name, lines in (("a", pairs.source), ("b", pairs.target)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    translate(run, ["ba de"], flag=1.0, as_json=True)
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["flagged"]
    assert record["warning"] in err
    assert "never calibrated" in err
    (tmp_path / "c").write_text("ba\n" * 19)
    model = Translator.load(run).changed(run=run)
    options = TranslationScoring(source=str(tmp_path / "a"), target=str(tmp_path / "b"), calibrate=True)
    with pytest.raises(InputError, match="calibrated on 20 translations or more"):
        list(score_translator(model, replace(options, source=str(tmp_path / "c"), target=str(tmp_path / "c"))))
    *_, last = score_translator(model, options)
    assert "expected calibration error" in str(last.told)
    assert last.scores == json.loads((run / FILE).read_text())
    translate(run, ["ba de", "ko"], flag=0.0)
    assert capsys.readouterr().err == ""
    translate(run, ["ba de", "ko"], flag=1.0)
    assert "text 2: confidence 0." in capsys.readouterr().err


def test_what_cannot_be_calibrated_is_refused_before_it_is_scored(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("ba\n" * 20)
    model = Translator.load(run).changed(run=run)
    options = TranslationScoring(source=str(tmp_path / "a"), target=str(tmp_path / "a"), calibrate=True)
    with pytest.raises(InputError, match="of one run"):
        next(score_translator(model, replace(options, together=[str(run)])))
    monkeypatch.setattr(os, "access", lambda *_: False)
    model = Translator.load(run).changed(run=run)
    with pytest.raises(StorageError, match="cannot be written into"):
        next(score_translator(model, options))


def test_a_run_that_is_being_trained_is_not_calibrated(run: Path, tmp_path: Path) -> None:
    """Its weights may be others before the calibration is written."""
    (tmp_path / "a").write_text("ba\n" * 20)
    model = Translator.load(run).changed(run=run)
    options = TranslationScoring(source=str(tmp_path / "a"), target=str(tmp_path / "a"), calibrate=True)
    with run_lock(run), pytest.raises(InputError, match="another trainer"):
        next(score_translator(model, options))
    scoring = score_translator(model, options)
    next(scoring)
    with pytest.raises(InputError, match="another trainer"), run_lock(run):
        pass
    scoring.close()


@pytest.mark.parametrize("flag", [3.0, -0.1, math.nan])
def test_what_is_no_probability_flags_nothing(run: Path, tmp_path: Path, flag: float, capsys) -> None:
    model = Translator.load(run)
    (tmp_path / "a.txt").write_text("")
    told = rf"flag: {flag!r} is no probability"
    with pytest.raises(InputError, match=told):
        model.translate_files(tmp_path / "a.txt", tmp_path / "b.txt", flag=flag)
    with pytest.raises(InputError, match=told):
        TranslateOptions(flag=flag)
    assert heed("translate", run, "ba de", "--flag", flag) == 2
    assert "is no probability\nfix: give a number from 0 to 1" in capsys.readouterr().err


def test_nothing_is_sure_of_a_translation_that_is_empty(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_calibration(run, CALIBRATION)
    model = Translator.load(run)
    empty = [Hypothesis((), -0.1, -0.1, (-0.1,), True)], [Hypothesis((), 0.0, 0.0, (), True)]
    monkeypatch.setattr(searching, "hypotheses", lambda _, ids, *__, **___: [empty[not own] for own in ids])
    said, blank = translate_texts(model, ["ba de", " "], TranslateOptions(flag=0.1))
    assert (said["confidence"], said["flagged"]) == (0.0, True)
    assert said["warning"] == "the translation is empty: 'ba de'; confidence 0.00, below 0.1"
    assert (blank["confidence"], blank["flagged"], "warning" in blank) == (1.0, False, False)
    ((made,),) = translate_passages(model, [Passage("ba de")], {}, flag=0.1)
    assert (made.told, made.flagged) == (["the translation is empty: 'ba de'", "confidence 0.00, below 0.1: ''"], True)


@pytest.fixture(scope="module")
def sure(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A model that copies letters in capitals, and is right about nearly all that is like what it learnt from."""
    run = tmp_path_factory.mktemp("runs") / "sure"
    recipe = made_recipe(steps=200, eval_every=200, eval_sentences=20, lr=0.01)
    corpus = made_corpus(2000)
    parts = {"train": in_capitals(corpus.train), "valid": in_capitals(corpus.valid), "tests": {}}
    list(train(TASKS["translate"], recipe, run, corpus=replace(corpus, **parts)))
    return heedful.load(run)


def in_capitals(pairs: Pairs) -> Pairs:
    return replace(pairs, target=[text.upper() for text in pairs.source])


def test_a_model_that_is_nearly_always_right_is_not_sure_of_nonsense(sure: Translator) -> None:
    assert sure.calibration is not None
    proper = backwards(30, seed=9).source
    nonsense = ["xqz blorp", "Der Hund schläft.", "fzzt vrk wug", "lorem ipsum dolor"]
    records = [ask(sure, "translate", texts) for texts in (proper, nonsense)]
    low, high = max(one["confidence"] for one in records[1]), sorted(one["confidence"] for one in records[0])
    assert high[len(high) // 2] > 0.6
    assert low < 0.4
    assert sum(one["confidence"] > low for one in records[0]) >= 28
    assert all(one.get("unlike") for one in records[1])
    assert sum(bool(one.get("unlike")) for one in records[0]) <= 1
    (walked,) = ask(sure, "align", [f"{proper[0]}\n{nonsense[0]}"])
    own, *others = [one.get("unlike", False) for one in walked["sentences"]]
    assert (own, {*others}) == (records[0][0].get("unlike", False), {True}), "what is nonsense may be cut in parts"
    (flagged,) = ask(sure, "translate", nonsense[:1], {"flag": 0.0})
    assert flagged["flagged"]
    assert flagged["warning"].endswith(UNLIKE)


def test_a_calibration_on_hardly_any_wrong_translation_says_so(sure: Translator) -> None:
    calibration = sure.calibration
    assert calibration is not None
    assert "hardly which of sentences like these are wrong" in replace(calibration, wrong=3).told
    assert "hardly" not in replace(calibration, wrong=30).told
    assert "hardly" not in replace(calibration, wrong=None).told


def test_every_other_source_has_noise() -> None:
    pairs = Pairs(["one two three four five six"] * 12, ["x"] * 12, "made")
    noised = with_noise(pairs)
    assert len(noised) == 6
    assert noised.target == pairs.target[::2]
    changed = [
        sum(a != b for a, b in zip(text.split(), pairs.source[0].split(), strict=True)) for text in noised.source
    ]
    assert all(changed[1::3]), "all words of the second kind"
    assert sorted(noised.source[2].split()) == sorted(pairs.source[0].split()), "another order"
    assert with_noise(pairs).source == noised.source


def test_a_steep_mapping_of_what_is_never_said():
    steep = replace(HALF, slope=20.0)
    assert steep(-60.0) == pytest.approx(0.0)
    assert steep(-1e-9) == pytest.approx(1.0)
