"""Tiny runs of each format that was ever written: they are read, used and continued. Never change these folders."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import heedful
from heedful.data.text.documents import Documents
from heedful.run.events import Measured, Note, Trained
from heedful.run.recipe import override
from heedful.run.restore import restore_model
from heedful.store.checkpoint import load_newest
from heedful.store.model import read_config, read_model
from heedful.tasks.recipes import saved_recipe
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import backwards

KEPT = Path(__file__).parent / "kept"


class Kept(NamedTuple):
    corpus: Callable[[], Any]
    losses: list[float]  # of the two steps that come next
    used: Callable[[Any], Any]  # an answer of the model


def documents() -> Documents:
    lines = backwards(60, 4)
    both = [f"{source}\n{target}" for source, target in zip(lines.source, lines.target, strict=True)]
    texts = ["\n".join(both[i : i + 3]) for i in range(0, 60, 3)]
    return Documents(texts[:16], texts[16:], {}, "made", (), ())


def filled(model: Any) -> Any:
    return model.fill(["ba <mask> gi"])


RUNS = {
    "format-2-fill": Kept(documents, [5.711797, 5.658726], filled),
}


@pytest.mark.parametrize("name", sorted(path.name for path in KEPT.iterdir()))
def test_it_is_used_and_continued(name: str, tmp_path: Path) -> None:
    kept, run = RUNS[name], tmp_path / name
    shutil.copytree(KEPT / name, run)
    written = read_config(run)
    assert written["format"] == int(name.split("-")[1])
    warnings: list[str] = []
    found = load_newest(run, warnings.append)
    assert warnings == []
    assert found is not None
    assert found.step == 2
    assert len(kept.used(heedful.load(run))) == 1
    assert [law.name for law in check(run) if not law.holds] == []
    recipe = override(saved_recipe(run), ["train.steps=4"])
    events = list(train(recipe, run, corpus=kept.corpus()))
    losses = [event.step.loss for event in events if isinstance(event, Trained)]
    assert losses == pytest.approx(kept.losses, rel=1e-4)
    assert read_config(run) == written, "a run keeps the files that it began with"
    assert len(kept.used(heedful.load(run))) == 1
    again = list(train(override(recipe, ["train.steps=5"]), run, corpus=kept.corpus()))
    assert [event.step.step for event in again if isinstance(event, Trained)] == [5]


@pytest.mark.parametrize("name", RUNS)
def test_a_better_model_takes_its_place(name: str, tmp_path: Path) -> None:
    """Also the mean of the last checkpoints, the first of which were there."""
    kept, run = RUNS[name], Path(shutil.copytree(KEPT / name, tmp_path / name))
    about, before = (run / "task.json").read_bytes(), read_model(run)[1]
    recipe = override(saved_recipe(run), ["train.steps=8", "train.average_last=9", "train.eval_every=1"])
    events = list(train(recipe, run, corpus=kept.corpus()))
    assert any(isinstance(event, Measured) and event.best for event in events)
    assert any(isinstance(event, Note) and "checkpoints: validation loss" in event.text for event in events)
    after = read_model(run)[1]
    assert any(not tensor.equal(after[name]) for name, tensor in before.items())
    assert (run / "task.json").read_bytes() == about
    assert len(kept.used(heedful.load(run))) == 1


@pytest.mark.parametrize("name", RUNS)
def test_a_damaged_model_is_made_again(name: str, tmp_path: Path) -> None:
    run = Path(shutil.copytree(KEPT / name, tmp_path / name))
    before = read_model(run)[1]
    (run / "model.safetensors").write_bytes(b"")
    assert restore_model(run, print).same
    after = read_model(run)[1]
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
