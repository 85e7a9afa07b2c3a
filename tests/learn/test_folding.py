"""A model of structures learns from made chains to tell contacts of others, better than covariance does."""

from pathlib import Path

from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished


def test_contacts_of_other_chains(tmp_path: Path) -> None:
    sections = {
        "task": "fold",
        "model": {"n_layers": 1, "structure_layers": 2, "recycles": 0},
        "data": {"path": "chains:300"},
        "train": {"steps": 120, "eval_every": 120, "optimizer": "muon", "lr": 4e-3, "warmup": 20}
        | {"average": 0.95, "precision": "fp32"},
    }
    scores = finished(train(build(sections, where="test"), tmp_path / "run")).scores["test"]
    assert scores["precision"] > scores["precision_covariance"] + 0.1
    assert scores["precision"] > scores["precision_prior"] + 0.3
    assert scores["lddt"] > 0.3
