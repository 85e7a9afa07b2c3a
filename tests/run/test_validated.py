"""A run is continued on the validation data that it was begun with, in every task: its models are compared by it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases import CASES, PROMPTED, PROMPTS, learnt, preferring, save_start
from heedful.data.text.pairs import Pairs
from heedful.errors import InputError
from heedful.run.events import Checkpointed
from heedful.tasks.shared.picture_job import some_pictures
from heedful.verbs.train import train

OTHER = "the validation data is not the data that this run was begun with"


def fewer(valid: Any) -> Any:
    """Without the last."""
    if isinstance(valid, list):
        return valid[:-1]
    numbers = [*range(len(valid) - 1)]
    return valid.rows(numbers) if isinstance(valid, Pairs) else some_pictures(valid, numbers)


@pytest.mark.parametrize("name", CASES)
def test_other_validation_data_is_noticed(name: str, run_of: Callable[[str], Path], tmp_path: Path) -> None:
    run, case = Path(shutil.copytree(run_of(name), tmp_path / "run")), CASES[name]
    before = (run / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match=OTHER):
        learnt(replace(case, corpus=replace(case.corpus, valid=fewer(case.corpus.valid))), run, steps=3)
    assert (run / "model.safetensors").read_bytes() == before
    losses, _ = learnt(case, run, steps=3)
    assert len(losses) == 1


def test_so_it_is_of_what_is_preferred(tmp_path: Path) -> None:
    recipe = preferring(save_start(tmp_path / "start"), steps=4)
    for event in train(recipe, tmp_path / "run", corpus=PROMPTED):
        if isinstance(event, Checkpointed):
            break
    with pytest.raises(InputError, match=OTHER):
        list(train(recipe, tmp_path / "run", corpus=replace(PROMPTED, valid=PROMPTS[13:14])))


def test_references_and_labels_count_and_names_of_pictures_do_not(
    run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    for name, change in (
        ("transformer", {"others": (("KO",),) * 4}),
        ("classify-images", {"labels": [*"ababaa"]}),
    ):
        run, case = Path(shutil.copytree(run_of(name), tmp_path / name)), CASES[name]
        with pytest.raises(InputError, match=OTHER):
            learnt(replace(case, corpus=replace(case.corpus, valid=replace(case.corpus.valid, **change))), run, steps=3)
    run, case = Path(shutil.copytree(run_of("detect"), tmp_path / "detect")), CASES["detect"]
    renamed = replace(case.corpus, valid=replace(case.corpus.valid, names=[*"uvwxyz"]))
    assert learnt(replace(case, corpus=renamed), run, steps=3)
