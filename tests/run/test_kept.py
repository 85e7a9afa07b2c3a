"""A tiny run of each format that was ever written: it is read, used and gone on with. Never change these folders."""

import shutil
from pathlib import Path

import pytest

import heedful
from heedful.run.recipe import override
from heedful.run.train import Trained
from heedful.store.checkpoint import load_newest
from heedful.tasks.recipes import saved_recipe
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import made_corpus

KEPT = Path(__file__).parent / "kept"
LOSSES = {"format-1": [5.896243, 5.950425]}  # of the two steps that come next


@pytest.mark.parametrize("name", sorted(path.name for path in KEPT.iterdir()))
def test_it_is_used_and_gone_on_with(name: str, tmp_path: Path) -> None:
    run = tmp_path / name
    shutil.copytree(KEPT / name, run)
    warnings: list[str] = []
    found = load_newest(run, warnings.append)
    assert warnings == []
    assert found is not None
    assert found.step == 2
    assert len(heedful.load(run).translate(["ba de gi"])) == 1
    assert [law.name for law in check(run) if not law.holds] == []
    recipe = override(saved_recipe(run), ["train.steps=4"])
    events = list(train(recipe, run, corpus=made_corpus(150)))
    losses = [event.step.loss for event in events if isinstance(event, Trained)]
    assert losses == pytest.approx(LOSSES[name], rel=1e-4)
