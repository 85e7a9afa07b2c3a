"""A Decision Transformer learns from random walks what they did not do; and luck it takes for skill."""

from pathlib import Path
from typing import Any

from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished


def learnt(folder: Path, path: str, steps: int) -> dict[str, Any]:
    sections = {
        "task": "decide",
        "model": {"n_layers": 1, "d_model": 32},
        "data": {"path": path},
        "train": {"steps": steps, "eval_every": steps, "tokens": 4096, "optimizer": "muon", "lr": 4e-3, "warmup": 20}
        | {"average": 0.98, "precision": "fp32"},
    }
    scores: dict[str, Any] = finished(train(build(sections, where="test"), folder)).scores[path.partition(":")[0]]
    return scores


def test_a_key_and_a_door_from_random_walks(tmp_path: Path) -> None:
    """One walk in five opens the door."""
    scores = learnt(tmp_path / "run", "key-to-door:2000", 250)
    assert scores["learnt_from"] < 0.25
    assert scores["return"] >= 0.9
    assert scores["return"] > scores["behaviour_cloning"] + 0.3


def test_luck_cannot_be_asked_for(tmp_path: Path) -> None:
    """The best walks were lucky at almost every step. Fitted Q knows what is to be expected, and takes what is sure."""
    scores = learnt(tmp_path / "run", "bandit-walk:2000", 300)
    assert scores["fitted_q"] > 2.3
    assert scores["return"] < 0.9 * scores["fitted_q"]
