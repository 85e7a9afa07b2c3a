"""The mean of a training's last checkpoints: what it is, kept where it is better, the same after an interruption."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from heedful.data.text.corpus import Corpus
from heedful.errors import Interrupted
from heedful.run.events import Event, Measured, Note, Trained
from heedful.run.job import Measurement
from heedful.store.model import read_model
from heedful.tasks.translate.train import TranslateJob
from heedful.verbs.train import train
from made import made_recipe
from trainer import ends

PLAN: dict[str, Any] = {"steps": 8, "save_every": 2, "eval_every": 4, "keep": 1, "average_last": 3, "average": 0}


@pytest.fixture
def ranked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Measurements whose ranks, one after another, are these."""
    ranks: list[float] = []
    measure = TranslateJob.measure

    def found(job: TranslateJob, model: Any) -> Measurement:
        return replace(measure(job, model), rank=ranks.pop(0))

    monkeypatch.setattr(TranslateJob, "measure", found)
    yield ranks
    assert not ranks


def events(out: Path, corpus: Corpus, *, until: int = 100) -> list[Event]:
    seen = []
    for event in train(made_recipe(**PLAN), out, corpus=corpus, resume=(out / "recipe.yaml").exists()):
        seen.append(event)
        if isinstance(event, Trained) and event.step.step == until:
            break
    return seen


def mean(out: Path) -> dict[str, torch.Tensor]:
    each = [safetensors.torch.load_file(out / f"checkpoints/step-{step}/weights.safetensors") for step in (4, 6, 8)]
    return {name: torch.stack([tensors[name] for tensors in each]).mean(0) for name in each[0]}


def test_the_better_mean_is_the_model(tmp_path: Path, corpus: Corpus, ranked: list[float]) -> None:
    ranked += [1.0, 2.0, 3.0]
    seen = events(tmp_path / "run", corpus)
    kept, expected = read_model(tmp_path / "run")[1], mean(tmp_path / "run")
    assert all(torch.allclose(kept[name], expected[name], rtol=1e-6, atol=1e-7) for name in expected)
    assert any(isinstance(event, Note) and "mean of the last 3 checkpoints" in event.text for event in seen)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row.get("averaged")) for row in rows if "valid_loss" in row] == [(4, None), (8, None), (8, 3)]
    assert "the mean of the last 3 checkpoints up to step 8" in (tmp_path / "run" / "README.md").read_text()
    assert not [event for event in events(tmp_path / "run", corpus) if isinstance(event, Measured)], "nothing is left"


def test_a_mean_that_is_no_better_is_left(tmp_path: Path, corpus: Corpus, ranked: list[float]) -> None:
    ranked += [1.0, 2.0, 2.0]
    events(tmp_path / "run", corpus)
    kept = read_model(tmp_path / "run")[1]
    last = safetensors.torch.load_file(tmp_path / "run" / "checkpoints" / "step-8" / "average.safetensors")
    assert all(torch.equal(kept[name], last[name]) for name in last)
    assert "the mean of" not in (tmp_path / "run" / "README.md").read_text()


def test_interrupted_it_is_the_same(tmp_path: Path, corpus: Corpus) -> None:
    events(tmp_path / "straight", corpus)
    events(tmp_path / "broken", corpus, until=7)
    events(tmp_path / "broken", corpus)
    one, other = (read_model(tmp_path / name)[1] for name in ("straight", "broken"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_signals_add_nothing_to_it(tmp_path: Path, corpus: Corpus) -> None:
    """They are followed by checkpoints of steps 3 and 7, neither of which was planned."""

    def asked_to_leave(after: int) -> None:
        for event in train(made_recipe(**PLAN), tmp_path / "broken", corpus=corpus):
            if isinstance(event, Trained) and event.step.step == after:
                os.kill(os.getpid(), signal.SIGTERM)

    events(tmp_path / "straight", corpus)
    for step in (2, 6):
        with pytest.raises(Interrupted, match=f"saved at step {step + 1};"):
            asked_to_leave(step)
    events(tmp_path / "broken", corpus)
    assert ends(tmp_path / "broken") == ends(tmp_path / "straight")
