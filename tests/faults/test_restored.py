"""A finished run whose model is damaged gets it again from its checkpoints, and says what it is."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import heedful
from commands import heed
from heedful.errors import HeedError, InputError, MissingError, StorageError
from heedful.run.restore import restore_model
from heedful.run.train import train
from heedful.store.checkpoint import load_newest, save_checkpoint
from heedful.store.model import read_model
from heedful.tasks.translate import TRANSLATE
from made import made_corpus, made_recipe

TEXTS = ["ba de", "gi ba", "su ko"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 6 steps with checkpoints of steps 3 and 6, whose best model is the last one's."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    recipe = made_recipe(steps=6, save_every=3, eval_every=6, eval_sentences=4)
    for _ in train(TRANSLATE, recipe, folder, corpus=made_corpus(60)):
        pass
    assert sorted(path.name for path in folder.glob("checkpoints/step-*")) == ["step-3", "step-6"]
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(path: Path, place: int, bit: int = 3) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.full)])
def test_whatever_became_of_the_file_the_same_weights_come_again(
    count: int, whole: Path, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    draw, right = random.Random(3), read_model(whole)[1]
    for number in range(count):
        run = Path(shutil.copytree(whole, tmp_path / str(number)))
        model = run / "model.safetensors"
        match number % 4:
            case 0:
                flip(model, draw.randrange(model.stat().st_size), draw.randrange(8))
            case 1:
                os.truncate(model, draw.randrange(model.stat().st_size))
            case 2:
                model.write_bytes(b"")
            case 3:
                model.unlink()
        with pytest.raises((StorageError, MissingError)) as caught:
            heedful.load(run)
        assert f"heed restore {run}" in caught.value.fix
        told: list[str] = []
        made = restore_model(run, told.append)
        assert (made.step, made.best_step, told) == (6, 6, [])
        assert (made.aside is None) == (number % 4 == 3)
        again = read_model(run)[1]
        assert again.keys() == right.keys()
        assert all(torch.equal(value, again[name]) for name, value in right.items())
        assert heedful.load(run).translate(TEXTS) == heedful.load(whole).translate(TEXTS)
    tally("R4 damaged models restored", count)


def test_the_command_says_which_step_it_took(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(run / "model.safetensors", -5)
    flip(run / "checkpoints" / "step-6" / "average.safetensors", -5)
    code = heed("restore", run, "--json")
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert "step-6: damaged, left out (average.safetensors" in shown.err
    assert f"{run}: the weights of step 3; " in shown.err
    made = json.loads(shown.out)
    assert made == {
        "out": str(run),
        "step": 3,
        "best_step": made["best_step"],
        "same": False,
        "aside": f"{run}/model.safetensors.damaged",
        "removed": ["confidence.json"],
        "weights": True,
        "config": False,
        "config_aside": None,
    }
    average = heedful.load(run)
    assert len(average.translate(TEXTS)) == len(TEXTS)


def test_what_was_fitted_to_other_weights_goes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The confidence of a run is of its best model: it stays with the same weights, and not with older ones."""
    kept = run / "confidence.json"
    assert kept.exists()
    flip(run / "model.safetensors", -5)
    assert heed("restore", run) == 0
    assert kept.exists()
    assert "the same as before" in capsys.readouterr().err
    flip(run / "model.safetensors", -5)
    flip(run / "checkpoints" / "step-6" / "average.safetensors", -5)
    assert heed("restore", run) == 0
    assert not kept.exists()
    told = capsys.readouterr().err
    assert "the same as before" not in told
    assert f"confidence.json is removed, as it was fitted to other weights; made again by: heed eval {run} " in told


def test_what_was_put_aside_is_kept_when_it_is_restored_again(run: Path) -> None:
    damaged = []
    for name in ("model.safetensors.damaged", "model.safetensors.damaged-2", "model.safetensors.damaged-3"):
        flip(run / "model.safetensors", -5 - len(damaged))
        damaged.append((run / "model.safetensors").read_bytes())
        assert restore_model(run, print).aside == str(run / name)
        for number, kept in enumerate(damaged, 1):
            own = run / f"model.safetensors.damaged{f'-{number}' if number > 1 else ''}"
            assert own.read_bytes() == kept


def test_a_later_model_may_have_been_better(run: Path) -> None:
    """One that was measured, and saved, after the newest checkpoint."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    last = json.loads(next(line for line in reversed(lines) if "valid_loss" in line))
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(last | {"step": 7}) + "\n")
    flip(run / "model.safetensors", -5)
    made = restore_model(run, print)
    assert (made.step, made.best_step, made.same) == (6, 6, False)


def test_a_sound_model_is_left_alone(run: Path) -> None:
    with pytest.raises(InputError, match="its model is sound"):
        restore_model(run, print)
    assert not (run / "model.safetensors.damaged").exists()


def test_other_damage_is_named(run: Path) -> None:
    flip(run / "model.safetensors", -5)
    tokenizer = run / "tokenizer.json"
    whole = tokenizer.read_text()
    tokenizer.write_text(whole.replace('"vocab"', '"vocaB"', 1))
    with pytest.raises(HeedError, match="tokenizer"):
        restore_model(run, print)
    tokenizer.write_text(whole)
    config = json.loads((run / "config.json").read_text())
    config["model"]["decoder"]["dropout"] = 0.77
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(StorageError, match=r"config.json: not the configuration that was trained"):
        restore_model(run, print)


@pytest.mark.parametrize("damage", ["truncated", "empty", "gone"])
def test_a_damaged_configuration_comes_again_and_sound_weights_stay(
    damage: str, run: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run / "config.json"
    right, weights = config.read_bytes(), (run / "model.safetensors").read_bytes()
    match damage:
        case "truncated":
            os.truncate(config, 100)
        case "empty":
            config.write_bytes(b"")
        case "gone":
            config.unlink()
    left = config.read_bytes() if config.exists() else None
    with pytest.raises((StorageError, MissingError)) as caught:
        heedful.load(run)
    assert f"heed restore {run}" in caught.value.fix
    assert heed("restore", run) == 0
    told = capsys.readouterr().err
    assert f"{config} is written again, by the checkpoint of step 6" in told
    assert "the weights are sound, and stay as they are" in told
    assert config.read_bytes() == right
    assert (run / "model.safetensors").read_bytes() == weights
    assert (run / "confidence.json").exists()
    aside = run / "config.json.damaged"
    assert (aside.read_bytes() if aside.exists() else None) == left
    assert heedful.load(run).translate(TEXTS) == heedful.load(whole).translate(TEXTS)


def test_both_are_made_again_where_both_are_damaged(run: Path, whole: Path) -> None:
    os.truncate(run / "config.json", 100)
    os.truncate(run / "model.safetensors", 100)
    made = restore_model(run, print)
    assert (made.config, made.weights, made.same) == (True, True, True)
    assert made.aside == str(run / "model.safetensors.damaged")
    assert made.config_aside == str(run / "config.json.damaged")
    assert (run / "config.json").read_bytes() == (whole / "config.json").read_bytes()
    assert heedful.load(run).translate(TEXTS) == heedful.load(whole).translate(TEXTS)


def test_a_checkpoint_that_does_not_say_the_kind_of_its_model_makes_no_configuration(run: Path) -> None:
    """Those of before."""
    newest = load_newest(run, print)
    assert newest is not None
    contents = {
        name: newest.json(name) if name.endswith(".json") else newest.tensors(name) for name in newest.manifest["files"]
    }
    del contents["state.json"]["kind"]
    save_checkpoint(run, 7, contents, finite=True, facts={})
    os.truncate(run / "config.json", 100)
    with pytest.raises(StorageError) as caught:
        restore_model(run, print)
    assert caught.value.where == str(run / "config.json")
    assert caught.value.what == "damaged, and checkpoints of this age do not say what kind of model it was"
    assert caught.value.fix == "get the whole folder from a copy, or train it again"
    assert (run / "config.json").stat().st_size == 100


def test_what_another_task_says_of_its_model_is_not_taken(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "task.json").write_text('{"task": "generate"}')
    (run / "model.safetensors").unlink()
    assert heed("restore", run) == 4
    what = "is of a model for 'generate', and the run was trained for 'translate'"
    assert capsys.readouterr().err.splitlines()[0] == f"error: {run / 'task.json'}: {what}"
    assert not (run / "model.safetensors").exists()


def test_without_a_checkpoint_it_says_so(run: Path) -> None:
    flip(run / "model.safetensors", -5)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(StorageError) as caught:
        heedful.load(run)
    assert "restore" not in caught.value.fix
    with pytest.raises(MissingError, match="there is no checkpoint to make the model of"):
        restore_model(run, print)
