"""How likely given translations are: what a search adds up, whatever is asked at once."""

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from commands import heed
from heedful.data.text.corpus import Corpus
from heedful.decode.forced import log_probabilities as forced
from heedful.errors import InputError, TextError
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.tasks.shared.options import StudentOptions
from heedful.tasks.translate import searching
from heedful.tasks.translate.options import TeachingOptions, TranslateOptions
from heedful.tasks.translate.pairs import weigh as module
from heedful.tasks.translate.pairs.rerank import Judge, chosen_by
from heedful.tasks.translate.pairs.weigh import PairOptions, log_probabilities, weigh, weigh_texts
from heedful.tasks.translate.records import translate_texts
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.training.distil import planned_distillation, write_pairs
from heedful.tasks.translate.use import Translator
from made import DECODER, RECURRENT, TRANSFORMER, random_translator, with_about
from saved import save_run
from serving import loud, tokenizer_of, translator

KINDS = {"transformer": TRANSFORMER, "decoder": DECODER, "rnn": RECURRENT}
TEXTS = ["ba de gi", "ko", "lu ma ne pi ro"]


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(corpus: Corpus, request: pytest.FixtureRequest) -> Translator:
    return random_translator(corpus, KINDS[request.param])


def test_a_search_adds_up_the_same(model: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the logits of two tokens at a time exist."""
    monkeypatch.setattr(module, "LOGITS", 2 * model.target.size)
    ids, _ = model.encode(TEXTS)
    found = [best[0] for best in model.hypotheses(ids, model.decoding(beam=2, longest=9))]
    said = [[*one.tokens, *([model.target.eos] if one.finished else [])] for one in found]
    logs = log_probabilities(model, [*zip(ids, said, strict=True)])
    for own, hypothesis in zip(logs, found, strict=True):
        assert own == pytest.approx(hypothesis.token_log_probabilities, abs=1e-4)
    one_by_one = [log_probabilities(model, [pair])[0] for pair in zip(ids, said, strict=True)]
    assert [x for own in logs for x in own] == pytest.approx([x for own in one_by_one for x in own], abs=1e-4)


def test_a_device_with_room_is_given_more_at_once_and_finds_the_same(
    model: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SEARCH_TOKENS", 0)
    monkeypatch.setattr(module, "TOKENS", 100)
    ids, decoding = model.encode(TEXTS * 30)[0], model.decoding(beam=2, longest=3)
    found, groups, weighed = list[list[str]](), list[int](), list[list[float]]()
    for scale in (1, 3):
        for one in (searching, module):
            monkeypatch.setattr(one, "batch_scale", lambda device, scale=scale: scale)
        groups.append(len(searching.groups_of(ids, decoding, 1, torch.device("cpu"))))
        best = [own[0].tokens for own in model.hypotheses(ids, decoding)]
        found.append([*map(str, best)])
        pairs = [(own, [*tokens, model.target.eos]) for own, tokens in zip(ids, best, strict=True)]
        groups.append(sum(1 for _ in module.batches_of(model, pairs)))
        weighed.append([x for own in log_probabilities(model, pairs) for x in own])
    assert found[0] == found[1]
    assert weighed[0] == pytest.approx(weighed[1], abs=1e-4)
    assert groups[2] < groups[0]
    assert groups[3] < groups[1]


def test_each_pair_has_its_sum_and_its_mean(model: Translator) -> None:
    pairs = [("ba de", "DE BA"), ("ko", "BA BA BA")]
    records = [*weigh(model, pairs)]
    assert [(one["source"], one["target"]) for one in records] == pairs
    for record, (source, target) in zip(records, pairs, strict=True):
        tokens = [*model.target.encode([target])[0], model.target.eos]
        ids, segments = model.padded(model.encode([source])[0])
        ((wanted,),) = forced(model.model, ids, segments, bos=model.target.bos, continuations=[[tokens]])
        assert record["logprob"] == pytest.approx(sum(wanted), abs=1e-3)
        assert record["tokens"] == len(tokens)
        assert record["per_token"] == record["logprob"] / len(tokens)


def test_a_text_is_a_pair_or_its_source(translators: tuple[Path, Path]) -> None:
    model = Translator.load(translators[0])
    beside = [*weigh_texts(model, ["ba", "ko"], PairOptions(targets=("BA", "KO")))]
    assert [*weigh_texts(model, ["ba\tBA", "ko\tKO"], PairOptions())] == beside
    with pytest.raises(InputError, match="1 targets for 2 sources"):
        weigh_texts(model, ["ba", "ko"], PairOptions(targets=("BA",)))
    for wrong in ("ba", "ba\tBA\tba", "\tBA", "ba\t "):
        with pytest.raises(TextError):
            [*weigh_texts(model, [wrong], PairOptions())]


def test_a_cut_source_is_told(translators: tuple[Path, Path]) -> None:
    model = with_about(Translator.load(translators[0]), longest_source=2)
    (one,) = weigh(model, [("ba de gi ko lu", "BA")])
    assert "only 2 of its" in one["warning"]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_best_of_two_models_comes_first(translators: tuple[Path, Path], backwards: bool) -> None:
    own, other = map(Translator.load, translators)
    if backwards:
        other = with_about(other, source=own.languages[1], target=own.languages[0])
    options = TranslateOptions(decoding={"beam": 4, "n_best": 4})
    before = [*translate_texts(own, TEXTS, options)]
    judge = Judge(other, own)
    assert judge.backwards == backwards
    fewer = TranslateOptions(decoding={"beam": 4, "n_best": 2})
    after = [*translate_texts(own, TEXTS, fewer, partial(chosen_by, [judge]))]
    for one, wanted in zip(after, before, strict=True):
        texts = [each["text"] for each in wanted["hypotheses"]]
        pairs = [(text, wanted["source"])[:: 1 if backwards else -1] for text in texts if text.strip()]
        theirs = dict(zip(filter(str.strip, texts), weigh(other, pairs), strict=True))
        means = {
            each["text"]: (each["score"] + theirs[each["text"]]["per_token"]) / 2
            for each in wanted["hypotheses"]
            if each["text"].strip()
        }
        best = sorted(means, key=lambda text: -means[text])[:2]
        assert [each["text"] for each in one["hypotheses"]] == best
        assert [each["score"] for each in one["hypotheses"]] == pytest.approx([means[text] for text in best], rel=1e-3)
        assert (one["text"], one["score"]) == (best[0], one["hypotheses"][0]["score"])
    assert [one["text"] for one in after] != [one["text"] for one in before]


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_both_models_are_scored_by_one_length_penalty(
    translators: tuple[Path, Path], penalty: float, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = map(Translator.load, translators)
    options = TranslateOptions(decoding={"beam": 4, "n_best": 4, "length_penalty": penalty})
    (before,) = translate_texts(own, TEXTS[:1], options)
    scores = {each["text"]: each["score"] for each in before["hypotheses"] if each["text"].strip()}
    judged = weigh(other, [(TEXTS[0], text) for text in scores])
    theirs = {one["target"]: one["logprob"] / one["tokens"] ** penalty for one in judged}
    wanted = {text: (score + theirs[text]) / 2 for text, score in scores.items()}
    words = ["translate", translators[0], "--rerank", translators[1], "--beam", "4", "--n-best", "4", "--json"]
    assert heed(*words, "--length-penalty", penalty, TEXTS[0]) == 0
    found = json.loads(capsys.readouterr().out)["hypotheses"]
    assert {each["text"]: each["score"] for each in found} == pytest.approx(wanted, rel=1e-3)
    assert [each["text"] for each in found] == sorted(wanted, key=lambda text: -wanted[text])


def test_an_empty_translation_is_not_chosen_and_every_score_is_a_number(translators: tuple[Path, Path]) -> None:
    own, other = map(Translator.load, translators)
    filled, empty = ("BA DE", -1.0), (" ", -1.0)
    for listed, texts in (([empty, filled], ["BA DE"]), ([empty, empty], [" ", " "])):
        (found,) = chosen_by([Judge(other, own)], [Translation(TEXTS[0], *listed[0], listed)], most=2)
        assert [text for text, _ in found.hypotheses] == texts
        assert all(math.isfinite(score) for _, score in found.hypotheses)


@pytest.mark.parametrize("way", ["ab", "ba"])
def test_a_judge_has_no_say_on_what_is_too_long_for_it(way: str, tmp_path: Path, capsys) -> None:
    """Whichever way it reads: the others' order stands, which is told, and nobody's work ends."""
    own, vocabulary = translator(tmp_path / "own", "a", "b"), tokenizer_of()
    size = replace(
        TRANSLATORS["transformer-tiny"], d_model=16, n_heads=2, d_ff=32, position="learned", context_length=40
    )
    config = translator_config(size, source_vocab=vocabulary.size, target_vocab=vocabulary.size, joint=True)
    about = {"task": "translate", "source": way[0], "target": way[1]}
    judge = save_run(tmp_path / "judge", loud(config, seed=3), vocabulary, vocabulary, about)
    short, long = "ab", "a b c d e f g h i j k l m n o p q r s t u v w x y"
    words = ["translate", own, "--beam", "3", "--n-best", "3", "--json", short, long]
    assert heed(*words) == 0
    before = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert heed(*words, "--rerank", judge) == 0
    told = capsys.readouterr()
    after = [json.loads(line) for line in told.out.splitlines()]
    assert after[0]["hypotheses"] != before[0]["hypotheses"]
    assert after[1]["hypotheses"] == [one for one in before[1]["hypotheses"] if one["text"].strip()]
    assert told.err == "warning: text 2: too long for a model of --rerank, which had no say\n"
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{text} {number}\tx\n" for text in (short, long) for number in range(9))
    )
    teaching = TeachingOptions(rerank=[str(judge)], beam=3)
    student = StudentOptions(data=[str(tmp_path / "pairs.tsv")], out=tmp_path / "student")
    writing = planned_distillation(own, student, teaching).writing
    beyond = sum(text.startswith(long) for text in writing.texts)
    assert f"too long for a model of --rerank, which had no say: {beyond} texts" in [*write_pairs(writing, "cpu")]


def test_a_model_of_other_languages_judges_nothing(translators: tuple[Path, Path]) -> None:
    own, other = map(Translator.load, translators)
    other = with_about(other, source="other")
    with pytest.raises(InputError, match="is for other to high, the first for low to high"):
        Judge(other, own)
