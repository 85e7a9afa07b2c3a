"""A budget of minutes chooses a model that this machine can train in it, and a run that has begun keeps its own."""

import pytest
import torch

import heedful
from heedful.tasks.generate import sizing
from heedful.tasks.generate.sizing import sized
from heedful.verbs.train import train

CPU = torch.device("cpu")


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat and the dog sat on the log\n" * 200)
    return tmp_path / "text.txt"


def wanted(text, minutes):
    data = {"path": str(text), "tokenizer": "chars"}
    return heedful.recipe("generate", data=data, train={"minutes": minutes})


def test_more_minutes_make_a_larger_model(text, tmp_path, monkeypatch):
    """A machine that is as slow as a model is large."""

    def trial(shape, vocabulary, device, dtype):
        size = 12 * shape["n_layers"] * shape["d_model"] ** 2
        return size, 1e11 / size

    monkeypatch.setattr(sizing, "_trial", trial)
    widths = []
    for minutes in (0.1, 1, 10, 100):
        recipe, why = sized(wanted(text, minutes), tmp_path / "none", CPU)
        widths.append(recipe.model["d_model"])
        size = 12 * recipe.model["n_layers"] * widths[-1] ** 2
        assert widths[-1] == 64 or 60 * minutes * 1e11 / size >= sizing.TOKENS * size
        assert f"{recipe.model['n_layers']} layers {widths[-1]} wide" in why
        assert recipe.train.minutes == minutes
    assert widths == sorted(widths)
    assert len(set(widths)) > 2


def test_what_was_chosen_trains_and_is_kept(text, tmp_path):
    """Timed for real; the run that it began keeps it, however fast the machine is later."""
    recipe, _ = sized(wanted(text, 0.02), tmp_path / "run", CPU)
    for _ in train(recipe, tmp_path / "run"):
        pass
    again, why = sized(wanted(text, 5), tmp_path / "run", CPU)
    assert again.model == recipe.model
    assert again.train.minutes == 5
    assert "as" in why
