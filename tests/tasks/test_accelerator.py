"""Every task on an accelerator, a pretend one where the machine has none: it learns and says what it does on a CPU."""

import json
from dataclasses import asdict, is_dataclass
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

import heedful
from accelerator import THERE, accelerator
from cases import BEGUN_SWING, BEGUN_WALK, CASES, CHARS, DOCUMENTS, PIXELS, SOUNDS, TINY, learnt, recipe_of
from heedful.data.images.files import to_image
from heedful.errors import InputError
from heedful.run.events import Trained
from heedful.tasks import TASKS
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.look import look
from heedful.verbs.train import train


def close(found: Any, wanted: Any, within: float = 1e-4) -> None:
    """Both are the same but for rounding, leaf by leaf, and nothing stays on the accelerator."""
    (leaves, shape), (others, other_shape) = tree_flatten(found), tree_flatten(wanted)
    assert shape == other_shape
    for leaf, other in zip(leaves, others, strict=True):
        if isinstance(leaf, torch.Tensor):
            assert leaf.device.type == "cpu"
            torch.testing.assert_close(leaf, other, rtol=within, atol=within)
        elif is_dataclass(leaf):
            close(asdict(leaf), asdict(other), within)
        else:
            assert leaf == (pytest.approx(other, rel=within, abs=within) if isinstance(other, float) else other)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for i, pixels in enumerate(PIXELS[:2]):
        to_image(pixels).save(folder / f"{i}.png")
    return sorted(map(str, folder.iterdir()))


@pytest.mark.parametrize("name", CASES)
def test_a_task_learns_and_says_what_it_does_on_a_cpu(name, files, run_of, tmp_path, monkeypatch):
    case = CASES[name]
    here = run_of(name)
    wanted = json.loads(here.with_suffix(".json").read_text())
    uses = case.uses(heedful.load(here), files)
    with accelerator() as device:
        monkeypatch.setattr("heedful.run.train.best_device", lambda: torch.device(device))
        close(learnt(case, tmp_path / "there"), wanted)
        model = heedful.load(here, device=device)
        assert {weight.device for weight in model.model.parameters()} == {THERE}
        close(case.uses(model, files), uses)


@pytest.mark.parametrize("name", CASES)
def test_laws_and_pictures_are_made_on_the_device(name, files, run_of):
    case = CASES[name]
    run = run_of(name)
    row = TASKS[case.task]
    with accelerator() as device:
        laws = [*check(run, device=device)]
        assert len(laws) > 3
        assert all(law.holds and (law.otherwise or law.figure is None) for law in laws)
        if row.inside.look is not None:
            told = {"match": {"shown": ["a"]}, "answer": {"pair": "ba is de."}}.get(case.task, {})
            told |= {"question": "what is it?"} if name == "questions" else {}
            text = files[0] if case.task in ("classify-images", "detect", "match", "describe") else "ba de"
            text = {"choices": BEGUN_WALK, "swings": BEGUN_SWING}.get(
                name, SOUNDS[0] if case.task == "transcribe" else text
            )
            looked = look(run, text, "html", row.inside.options()(**told), device=device)
            assert len(looked.picture) > 1000


def test_what_was_interrupted_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    plan = {"steps": 3, "save_every": 1, "eval_every": 3, "tokens": 128}
    plan |= {"optimizer": "muon", "precision": "bf16", "accumulate": 2}  # and Adam for what is no matrix
    recipe = build({"task": "generate", "model": TINY, "data": CHARS, "train": plan}, where="test")
    with accelerator() as device:
        monkeypatch.setattr("heedful.run.train.best_device", lambda: torch.device(device))
        *_, wanted = train(recipe, tmp_path / "whole", corpus=DOCUMENTS)
        events = train(recipe, tmp_path / "cut", corpus=DOCUMENTS)
        assert any(isinstance(event, Trained) and event.step.step == 2 for event in events)
        events.close()
        *_, found = train(recipe, tmp_path / "cut", corpus=DOCUMENTS)
    assert found.scores == wanted.scores


@pytest.mark.parametrize("name", ["label", "segment", "rnn"])
def test_dropout_is_drawn_on_the_device(name, tmp_path, monkeypatch):
    case = CASES[name]
    model = {key: 0.1 if key == "dropout" else value for key, value in case.model.items()}
    recipe = recipe_of(case, model, {"steps": 1, "tokens": 256, "precision": "fp32", "eval_sentences": 3})
    with accelerator() as device:
        monkeypatch.setattr("heedful.run.train.best_device", lambda: torch.device(device))
        events = train(recipe, tmp_path / "run", corpus=case.corpus)
        assert any(isinstance(event, Trained) for event in events)
        events.close()


def test_what_is_for_a_cpu_stays_there(run_of):
    text, pairs = run_of("gpt"), run_of("transformer")
    with accelerator() as device:
        for few in ({"weights": "int8"}, {"draft": "int8"}):
            with pytest.raises(InputError, match="int8 weights are for a CPU"):
                LanguageModel.load(text, device=device, **few)
        translator = heedful.load(pairs, device=device)
        with translator.in_processes(2) as same:
            assert same.processes is None
