"""A pruned run: its zeros last through training, interruption, averages and exports, and each door tells of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from cases import CASES, recipe_of
from commands import heed
from heedful.errors import InputError, MissingError
from heedful.models import make_model
from heedful.run.events import Finished, Note, Trained
from heedful.run.folder import read_masks
from heedful.run.recipe import Recipe, override
from heedful.store.checkpoint import load_newest, place_of, steps_of
from heedful.store.model import read_model
from heedful.store.tensors import read_tensors
from heedful.tasks import TASKS
from heedful.tasks.recipes import saved_recipe
from heedful.training.pruning import masks_by_pattern
from heedful.verbs.compress import prune
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.info import describe_run
from heedful.verbs.train import train
from made import finished
from trainer import ends

PLAN = {"steps": 4, "eval_every": 2, "tokens": 256, "precision": "fp32", "eval_sentences": 3}
ON = ["train.steps=4", "train.save_every=2", "train.average_last=2", "train.lr=0.01"]
WITHOUT_BLOCKS = {"rnn", "vectors"}  # of linear maps


@pytest.fixture(scope="module", params=["transformer", "gpt", "labels", "classify-images"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    case, out = CASES[request.param], tmp_path_factory.mktemp("run") / request.param
    finished(train(recipe_of(case, case.model, PLAN), out, corpus=case.corpus))
    return request.param, out


def need_zeros(tensors: dict[str, Tensor], masks: dict[str, Tensor]) -> None:
    assert masks.keys() <= tensors.keys()
    for name, mask in masks.items():
        assert not tensors[name][~mask].any(), name
        assert tensors[name][mask].count_nonzero() > 0.9 * mask.sum(), name


@pytest.mark.parametrize("pattern", ["", "2:4"])
def test_zeros_stay_zeros_through_a_training_that_is_interrupted(
    run: tuple[str, Path], tmp_path: Path, pattern: str
) -> None:
    name, whole = run
    corpus = CASES[name].corpus
    for out in ("straight", "cut"):
        events = prune(whole, tmp_path / out, pattern=pattern, settings=ON, corpus=corpus)
        if out == "straight":
            scores = finished(events).scores
        else:
            assert any(isinstance(event, Trained) and event.step.step == 3 for event in events)
            events.close()
            assert load_newest(tmp_path / out, print).step == 2
            again = prune(whole, tmp_path / out, pattern=pattern, settings=ON, corpus=corpus)
            assert finished(again).scores == scores
    assert ends(tmp_path / "cut") == ends(tmp_path / "straight")
    out = tmp_path / "straight"
    masks = read_masks(out)
    assert sum(int((~mask).sum()) for mask in masks.values()) == sum(map(torch.numel, masks.values())) // 2
    before, after = read_model(whole)[1], read_model(out)[1]
    need_zeros(after, masks)
    assert any(not torch.equal(before[key][masks[key]], after[key][masks[key]]) for key in masks)
    for step in steps_of(out):
        for file in ("weights", "average"):
            need_zeros(read_tensors(place_of(out, step) / f"{file}.safetensors")[0], masks)
    told = f"Trained from the model in `{whole}`, pruned: of {sum(map(torch.numel, masks.values())):,} weights"
    assert told in (out / "README.md").read_text()
    assert describe_run(out)["zeros"].endswith("% of the parameters")
    assert "zeros" not in describe_run(whole)


def test_without_data_it_is_pruned_alone(run: tuple[str, Path], tmp_path: Path) -> None:
    name, whole = run
    *_, note = prune(whole, tmp_path / "none")
    assert note == Note("neither measured nor trained: the run does not say what it was trained on")
    need_zeros(read_model(tmp_path / "none")[1], read_masks(tmp_path / "none"))
    assert isinstance(heedful.load(tmp_path / "none"), TASKS[CASES[name].task].served())
    events = [*prune(whole, tmp_path / "measured", settings=["train.steps=0"], corpus=CASES[name].corpus)]
    assert isinstance(events[-1], Finished)
    assert events[-1].scores == json.loads((tmp_path / "measured" / "scores.json").read_text())["scores"]
    assert not any(isinstance(event, Trained) for event in events)
    longer = override(saved_recipe(tmp_path / "measured"), {"train.steps": 2})
    finished(train(longer, tmp_path / "measured", corpus=CASES[name].corpus, resume=True))
    need_zeros(read_model(tmp_path / "measured")[1], read_masks(tmp_path / "measured"))


@pytest.mark.parametrize("run", ["gpt"], indirect=True)
def test_an_exported_model_has_the_same_zeros(run: tuple[str, Path], tmp_path: Path) -> None:
    _, whole = run
    for _ in prune(whole, tmp_path / "pruned", pattern="2:4"):
        pass
    export_model(tmp_path / "pruned", tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "back")
    need_zeros(read_model(tmp_path / "back")[1], read_masks(tmp_path / "pruned"))
    assert describe_run(tmp_path / "back")["zeros"] == describe_run(tmp_path / "pruned")["zeros"]


def recipe_like(name: str) -> Recipe:
    case = CASES[name]
    return recipe_of(case, case.model, PLAN)


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITHOUT_BLOCKS))
def test_models_of_every_task_have_maps_to_prune(name: str) -> None:
    job = TASKS[CASES[name].task].job
    assert job is not None
    model: Any = make_model(job()(recipe_like(name), CASES[name].corpus).config)
    assert masks_by_pattern(model, "2:4")


@pytest.mark.parametrize("run", ["gpt"], indirect=True)
def test_the_command_prunes_trains_and_refuses(
    run: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(CASES["gpt"].corpus.train))
    whole = tmp_path / "whole"
    finished(train(override(recipe_like("gpt"), {"data.path": str(text)}), whole))
    capsys.readouterr()
    words = ["prune", whole, "--out", tmp_path / "half", "--pattern", "2:4", "--device", "cpu", "--json"]
    assert heed(*words) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["steps"] == 1  # a tenth of four
    assert "weights in linear maps of blocks 2:4 stay" in told.err
    assert "pruned, valid: loss" in told.err
    assert saved_recipe(tmp_path / "half").train.lr == pytest.approx(0.1 * saved_recipe(whole).train.lr)
    for more, what in (
        (["--out", tmp_path / "half"], "is not empty"),
        (["--out", whole], "is not empty"),
        (["--out", tmp_path / "x", "--share", "0.5", "--pattern", "2:4"], "--share and --pattern"),
        (["--out", tmp_path / "x", "--pattern", "2:7"], "which are no groups of 7"),
        (["--out", tmp_path / "x", "--set", "train.stepz=1"], "unknown key 'stepz'"),
        (["--out", tmp_path / "x", "--set", "train.lora=4"], "adapters are added to zeros too"),
    ):
        assert heed("prune", whole, *more) == 2
        assert what in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    text.unlink()
    assert heed("prune", whole, "--out", tmp_path / "x") == 0
    assert f"neither measured nor trained: {text}" in capsys.readouterr().err
    with pytest.raises(MissingError):
        next(iter(prune(tmp_path / "nowhere", tmp_path / "y")))
    (whole / "scores.json").unlink()
    with pytest.raises(InputError, match="the training has not ended"):
        next(iter(prune(whole, tmp_path / "y")))
