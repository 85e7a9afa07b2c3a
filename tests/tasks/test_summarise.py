"""Summarising is translation with other scores: columns, several references, ROUGE, and a denoiser to begin with."""

import importlib
import json

import pytest

from commands import heed
from heedful.data.text.corpus import read_parallel
from heedful.data.text.pairs import Pairs
from heedful.errors import InputError, MissingError
from heedful.metrics.texts import score_bleu, score_rouge
from heedful.tasks.recipes import build
from heedful.tasks.translate.train import TranslateJob

SETTINGS = {"model.d_model": 16, "model.n_heads": 2, "model.d_ff": 32, "model.encoder_layers": 1}
SETTINGS |= {"model.decoder_layers": 1, "data.vocab_size": 300}
PLAN = {"train.steps": 2, "train.eval_every": 2, "decode.beam": 1, "decode.longest": 6}


def settings(**sets):
    return [f"--set={key}={value}" for key, value in sets.items()]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    for part, count in (("train", 8), ("dev", 3), ("test", 3)):
        rows = [
            {"abstract": [f"Number {i} is here. " * 9, "It ends."], "short": [f"It is {i}.", "", f"Here is {i}."]}
            for i in range(count)
        ]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_lists_are_a_text_and_references(data):
    corpus = read_parallel(data, source="abstract", target="short")
    assert corpus.tests["test"].source[1] == "Number 1 is here. " * 9 + " It ends."
    assert corpus.tests["test"].references[1] == ["It is 1.", "Here is 1."]
    assert corpus.valid.rows([2]).references == [["It is 2.", "Here is 2."]]
    apart = corpus.train.apart()
    assert len(apart) == 16
    assert apart.target[:3] == ["It is 0.", "Here is 0.", "It is 1."]
    assert Pairs(["a"], ["b"], "x").references == [["b"]]


@pytest.mark.parametrize(
    ("long", "short"),
    [("document", "summary"), ("dialogue", "summary"), ("article", "highlights"), ("text", "summary")],
)
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_the_names_of_public_sets_are_known(tmp_path, long, short, kind):
    rows = [{"id": f"x{n}", long: f"Long {n}.", short: f"Short {n}.", "topic": "t"} for n in range(9)]
    table = ",".join(rows[0]) + "\n" + "".join(",".join(row.values()) + "\n" for row in rows)
    text = {"jsonl": "\n".join(map(json.dumps, rows)), "json": json.dumps(rows), "csv": table}[kind]
    (tmp_path / f"train.{kind}").write_text(text)
    corpus = read_parallel(tmp_path)
    assert (corpus.source, corpus.target) == (long, short)
    assert corpus.train.target == [text.replace("Long", "Short") for text in corpus.train.source]


def test_references_may_be_numbered(data, tmp_path):
    rows = [
        {"fname": "x", "dialogue": f"Long {n}.", "summary1": f"A {n}.", "topic1": "t", "summary2": f"B {n}."}
        for n in range(9)
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = read_parallel(tmp_path / "p.jsonl")
    assert (corpus.source, corpus.target, len(corpus.train)) == ("dialogue", "summary", 7)
    assert [text[0] for text in corpus.valid.references[0]] == ["A", "B"]


def test_rouge_is_the_best_of_the_references():
    one = score_rouge(["the cats slept"], [["a dog barked loudly", "the cat sleeps"]])
    assert one.rouge1 == pytest.approx(100 * 4 / 6)  # "the" and the stem of "cats"; "slept" has another
    assert one.rouge2 == pytest.approx(100 * 2 / 4)
    assert one.rougeL == pytest.approx(100 * 4 / 6)
    mean = score_rouge(["the cats slept", "no"], [["the cat sleeps"], ["yes"]])
    assert mean.rouge1 == pytest.approx(one.rouge1 / 2)
    with pytest.raises(InputError, match="nothing to score"):
        score_rouge([], [])
    with pytest.raises(InputError, match="BLEU and chrF alone"):
        score_rouge(["a"], [["a"]], bootstrap=10)


def test_bleu_of_unequally_many_references():
    texts, best = ["the cat sleeps on the mat", "a dog"], ["the cat sleeps on the mat", "a dog"]
    found = score_bleu(texts, [["no", best[0]], [best[1]]])
    assert found.bleu == pytest.approx(100)
    assert found.exact == 1.0


def test_without_the_package_it_is_told_before_training(data, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("heedful.metrics.texts.import_module", absent)
    recipe = build(
        {"task": "summarise", "data": {"path": str(data), "source": "abstract", "target": "short"}}, where=""
    )
    with pytest.raises(MissingError, match="ROUGE needs the package rouge-score"):
        TranslateJob(recipe)
    assert importlib.import_module("rouge_score")


def test_a_run_from_a_denoiser(data, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("Number one is here. It ends. " * 60)
    start = ["train", "denoise", "--data", text, "--out", tmp_path / "start"]
    assert heed(*start, *settings(**SETTINGS, **PLAN, **{"data.objective": "infill"})) == 0
    run = tmp_path / "run"
    columns = ["--source", "abstract", "--target", "short"]
    words = ["train", "summarise", "--data", data, *columns, "--from", tmp_path / "start", "--out", run]
    assert heed(*words, *settings(**PLAN, **{"data.longest": 30}), "--verbose") == 0
    assert "16 sources are cut after 30 tokens" in capsys.readouterr().err
    assert "Summarises texts" in (run / "README.md").read_text()
    assert heed("eval", run, "--data", data, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"loss", "rouge1", "rouge2", "rougeL", "signature"}
    assert json.loads((run / "scores.json").read_text())["scores"]["test"]["rouge1"] == found["rouge1"]
    assert heed("summarise", run, "Number 3 is here.", "--json") == 0
    assert json.loads(capsys.readouterr().out)["source"] == "Number 3 is here."
