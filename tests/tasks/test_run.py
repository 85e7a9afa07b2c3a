"""A whole run: what it leaves behind, that it goes on with the same numbers, and what it refuses."""

import json
import random
import shutil
import string

import pytest
import safetensors.torch
import torch

import heedful
from heedful.errors import HeedError, InputError, MissingError
from heedful.tasks.check import check
from heedful.tasks.recipe import build, override
from heedful.tasks.resume import saved_recipe
from heedful.tasks.run import Finished, Measured, Note, Saved, Trained, train
from made import RECURRENT, TRANSFORMER, made_recipe


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus):
    out = tmp_path_factory.mktemp("run") / "small"
    return out, list(train(made_recipe(), out, corpus=corpus))


def test_a_run_folder_is_complete(finished, corpus):
    out, events = finished
    assert {type(event) for event in events} == {Note, Trained, Measured, Saved, Finished}
    assert [event.step.step for event in events if isinstance(event, Trained)] == list(range(1, 13))
    names = {"recipe.yaml", "environment.json", "data.json", "metrics.jsonl", "scores.json", "README.md"}
    names |= {"config.json", "model.safetensors", "tokenizer.json", "task.json", "plots", "samples", "checkpoints"}
    assert names <= {path.name for path in out.iterdir()}
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] == ["step-12", "step-8"]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "bleu" in row] == [6, 12]
    assert "a note" in (out / "README.md").read_text()
    assert saved_recipe(out) == made_recipe()


def test_the_same_command_again_changes_nothing(finished, corpus):
    out, _ = finished
    before = (out / "model.safetensors").read_bytes()
    again = list(train(made_recipe(), out, corpus=corpus))
    assert not [event for event in again if isinstance(event, Trained)]
    assert (out / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("recipe", [TRANSFORMER, RECURRENT], ids=["transformer", "rnn"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_interrupted_run_ends_in_the_same_weights(tmp_path, corpus, recipe, precision):
    recipe = override(
        build(recipe, where="test"), [f"train.precision={precision}", "train.steps=6", "train.save_every=2"]
    )
    for _ in train(recipe, tmp_path / "straight", corpus=corpus):
        pass
    for event in train(recipe, tmp_path / "broken", corpus=corpus):
        if isinstance(event, Trained) and event.step.step == 5:  # after the save at step 4
            break
    for _ in train(recipe, tmp_path / "broken", corpus=corpus, resume=True):
        pass
    for name in ("weights", "average", "optimizer"):
        one, other = (
            safetensors.torch.load_file(tmp_path / run / "checkpoints" / "step-6" / f"{name}.safetensors")
            for run in ("straight", "broken")
        )
        assert one.keys() == other.keys()
        for key in one:
            assert torch.equal(one[key], other[key]), key


def test_going_on_with_another_training_is_refused(finished, corpus):
    out, _ = finished
    with pytest.raises(InputError, match=r"begun with train\.lr = 0\.002, not 0\.1"):
        next(train(made_recipe(lr=0.1), out, corpus=corpus))
    other = heedful.data.text.Corpus(corpus.valid, corpus.valid, corpus.tests, "low", "high", (), ())
    with pytest.raises(InputError, match="the training data is not the data that"):
        list(train(made_recipe(steps=14), out, corpus=other))


def test_more_steps_may_be_asked_for(finished, corpus, tmp_path):
    out = tmp_path / "copy"
    shutil.copytree(finished[0], out)
    steps = [
        event.step.step for event in train(made_recipe(steps=14), out, corpus=corpus) if isinstance(event, Trained)
    ]
    assert steps == [13, 14]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["data.path=nowhere.tsv"], "nowhere.tsv"),
        (["model.d_modle=3"], "unknown key 'd_modle'"),
        (["model.d_model=wide"], "expected int, found 'wide'"),
        (["data.longest=8"], "every pair is longer"),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path, corpus, settings, says):
    out = tmp_path / "never"
    lines = ["".join(random.sample(string.ascii_letters, 30)) for _ in range(9)]
    long = heedful.data.text.Pairs(lines, lines, "long")
    given = heedful.data.text.Corpus(long, long, {"test": long}, "a", "b", (), ())
    missing = settings[0].startswith("data.path")
    with pytest.raises(HeedError, match=says):
        list(train(override(made_recipe(), settings), out, corpus=None if missing else given))
    assert not out.exists()


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, corpus):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="not empty and holds no run"):
        next(train(made_recipe(), tmp_path, corpus=corpus))
    with pytest.raises(MissingError, match="no run to go on with"):
        next(train(made_recipe(), tmp_path / "none", corpus=corpus, resume=True))


@pytest.mark.parametrize("recipe", [TRANSFORMER, RECURRENT], ids=["transformer", "rnn"])
def test_a_trained_model_keeps_the_laws(tmp_path, corpus, recipe):
    out = tmp_path / "run"
    for _ in train(override(build(recipe, where="test"), ["train.steps=3"]), out, corpus=corpus):
        pass
    laws = list(check(out))
    assert len(laws) == (9 if recipe is TRANSFORMER else 8)
    assert [law.name for law in laws if not law.holds] == []


def test_separate_vocabularies(tmp_path, corpus):
    recipe = override(made_recipe(steps=2), ["data.joint=false", "data.tokenizer=unigram", "data.vocab_size=300"])
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    model = heedful.load(tmp_path / "run")
    assert model.source is not model.target
    assert len(model.translate(["ba de"], beam=2)) == 1
