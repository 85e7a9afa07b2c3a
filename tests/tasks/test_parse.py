"""A parser as a run: trained, kept, used and scored by the command line."""

import json

import pytest
import torch

from commands import heed
from heedful.data.text.trees import parse_trees
from heedful.errors import InputError
from heedful.models import make_model
from heedful.tasks.parse.look import look_at_parse
from heedful.tasks.parse.train import ParseJob
from heedful.tasks.parse.use import Parser
from heedful.tasks.recipes import build
from heedful.verbs.check import check

TREES = [
    f"( (S (NP-SBJ (DT {one}) (NN {two})) (VP (VBZ runs) (NP (-NONE- *)) (PP (IN to) (NP (DT {two})))) (. .)) )"
    for one in ("a", "the", "this")
    for two in ("cat", "dog", "hen", "cow", "-LRB-")
]
TEXTS = ["a cat runs .", "", "this ( x ) is , so it seems , a longer sentence than all .", "hen"]
TINY = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    (folder / "train.tree").write_text("\n".join(TREES))
    (folder / "dev.tree").write_text("\n".join(TREES[:3]))
    (folder / "test.tree").write_text("\n".join(TREES[3:6]))
    return folder


@pytest.fixture(scope="module")
def run(data):
    settings = {f"model.{key}": value for key, value in TINY.items()}
    settings |= {"data.vocab_size": 300, "train.steps": 2, "train.eval_every": 2, "decode.beam": 2}
    words = [f"--set={key}={value}" for key, value in settings.items()]
    assert heed("train", "parse", "--data", data, "--out", data / "run", *words) == 0
    return data / "run"


def test_parse_prints_a_tree_a_line(run, capsys):
    assert heed("parse", run, *TEXTS, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    assert rows[1]["tree"] == ""
    for row in (rows[0], *rows[2:]):
        (tree,) = parse_trees([row["tree"]], "x")
        assert tree.words() == row["text"].split()


def test_eval_gives_the_scores(run, data, capsys):
    assert heed("eval", run, "--data", data / "test.tree", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"loss", "f1", "precision", "recall", "complete", "valid", "f1_40"}
    assert found["valid"] == 1.0
    assert heed("eval", run, "--data", data, "--json") == 0
    assert json.loads(capsys.readouterr().out) == found
    assert json.loads((run / "scores.json").read_text())["scores"]["test"] == found


def test_a_batch_is_its_sentences_one_by_one(run):
    parser = Parser.load(run)
    for parameter in parser.model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    assert parser.parse(TEXTS, beam=3) == [parser.parse([text], beam=3)[0] for text in TEXTS]


def test_the_laws_hold(run):
    assert all(law.holds for law in check(run))


def test_a_sentence_without_places_is_refused(data):
    bart = {"style": "bart", "d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    recipe = build({"task": "parse", "preset": "bart-base", "model": bart | {"context_length": 20}}, where="test")
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"path": str(data), "vocab_size": 300})})
    job = ParseJob(recipe)
    parser = Parser(make_model(job.config), job.tokenizer, job.spec())
    (tree,) = parser.parse(["a b c d e f g h"])
    assert len(tree.words()) == 8
    with pytest.raises(InputError, match="a sentence of 30 words needs"):
        parser.parse(["a " * 30])


def test_there_is_no_other_model_to_begin_with(data):
    with pytest.raises(InputError, match="begins with no other model"):
        ParseJob(build({"task": "parse", "start_from": "runs/x", "data": {"path": str(data)}}, where="test"))


@pytest.mark.parametrize("name", ["dev", "test"])
def test_trees_that_cannot_be_scored_are_refused_before_anything_is_learnt(tmp_path, name):
    (tmp_path / "train.tree").write_text("\n".join(TREES))
    (tmp_path / "dev.tree").write_text(TREES[0])
    (tmp_path / f"{name}.tree").write_text(f"(S {'(NP (NP (NN cat)))' * 6})")
    model = TINY | {"style": "bart", "context_length": 20}
    recipe = build(
        {"task": "parse", "preset": "bart-base", "model": model, "data": {"path": str(tmp_path), "vocab_size": 300}},
        where="test",
    )
    with pytest.raises(InputError, match="a text of 33 tokens, but the model has 20 positions"):
        ParseJob(recipe)


def test_what_brackets_look_at(run, tmp_path, capsys):
    parser, text = Parser.load(run), TEXTS[0]
    seen = look_at_parse(parser, text)
    assert seen.text == str(parser.parse(text))
    assert seen.read[1:] == seen.said[:-1]
    (tree,) = parse_trees([seen.text], "x")
    assert seen.said[:-1] == [parser.brackets.names[number] for number in parser.brackets.encode(tree)]
    for name, weights in seen.weights.items():
        rows = seen.source if name.startswith("encoder") else seen.said
        columns = seen.read if name.startswith("decoder") and name.endswith("self_attention") else seen.source
        assert weights.shape[1:] == (len(rows), len(columns)), name
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
    assert heed("look", run, text, "--out", tmp_path / "x.html", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["text"] == seen.text
    assert f'"{seen.said[0]}"' in (tmp_path / "x.html").read_text()
    with pytest.raises(InputError, match="there is no word to look at"):
        look_at_parse(parser, "")
