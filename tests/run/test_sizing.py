"""A budget of minutes chooses among the presets of a task when training begins; a run that has begun keeps its own."""

import pytest
import torch
import yaml

import heedful
from heedful.errors import InputError
from heedful.run import sizing
from heedful.run.events import Note, Trained
from heedful.run.recipe import override
from heedful.run.sizing import EACH, STEPS, Trial, sized_job, with_begun_preset
from heedful.tasks import TASKS
from heedful.verbs.train import planned, train

CPU = torch.device("cpu")
SMALL = ["data.vocab_size=300", "train.tokens=512", "train.eval_every=3"]


@pytest.fixture
def labelled(tmp_path):
    lines = [f'{{"text": "the {word} sat on it {n}", "label": "{word}"}}' for n in range(60) for word in ("cat", "dog")]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "texts.jsonl"


def wanted(labelled, out, minutes=1.0, **given):
    return planned("classify", out, {"data.path": str(labelled), "train.minutes": minutes, **given}, settings=SMALL)[0]


def machine(monkeypatch, speed, tokens=10**9):
    """One that makes so many steps of a model of a million parameters in a minute, and data with so many tokens."""

    def trial(job, minutes, device, smaller=None):
        row = job.config.lm
        count = 12 * row.stack.n_layers * row.d_model**2
        return Trial(job.recipe.preset, count, minutes * speed * 1e6 / count, tokens, 100)

    monkeypatch.setattr(sizing, "_trial", trial)


def chosen(recipe):
    job, why = sized_job(TASKS["classify"], recipe, None, CPU)
    return job.recipe, why


def test_more_minutes_make_a_larger_model(labelled, tmp_path, monkeypatch):
    machine(monkeypatch, 1000)
    recipes = [chosen(wanted(labelled, tmp_path / "none", minutes)) for minutes in (0.01, 1, 3, 1000)]
    assert [recipe.preset for recipe, _ in recipes] == ["gpt-nano", "gpt-nano", "gpt-mini", "gpt-micro"]
    assert {recipe.model.get("context_length", 256) for recipe, _ in recipes} == {256}  # as long a text as usually
    assert " steps, the smallest, though it would need 500" in recipes[0][1]
    assert "; gpt-mini would make about 318 steps" in recipes[1][1]
    assert [recipe.train.minutes for recipe, _ in recipes] == [0.01, 1, 3, 1000]


def test_little_data_makes_a_small_model(labelled, tmp_path, monkeypatch):
    machine(monkeypatch, 1e6, tokens=2_000_000 // EACH)
    recipe, why = chosen(wanted(labelled, tmp_path / "none"))
    assert recipe.preset == "gpt-nano"
    assert "gpt-mini has 3,145,728 parameters for 100,000 tokens of data" in why


def test_what_is_larger_than_usual_must_see_enough():
    tried = Trial("x", 10_000_000, float(STEPS), 1_000_000, 100)
    assert tried.lacks(usual=True) == ""
    assert "too little" in tried.lacks(usual=False)
    assert "too little" in Trial("x", 100, 1e6, None, 100).lacks(usual=False)


def test_what_was_chosen_trains_and_is_kept(labelled, tmp_path):
    """Timed for real; continuing keeps it, however fast the machine is later. On a busy one the minutes may be used up
    before the third step."""
    recipe = override(wanted(labelled, tmp_path / "run", 0.01), ["train.steps=3"])
    assert recipe.preset == "auto"
    events = list(train(recipe, tmp_path / "run"))
    assert any("0.01 minutes: gpt-nano" in event.text for event in events if isinstance(event, Note))
    saved = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text())
    assert (saved["preset"], saved["model"]) == ("gpt-nano", {"context_length": 256})
    again = override(wanted(labelled, tmp_path / "run", 100), ["train.steps=5"])
    assert with_begun_preset(again, tmp_path / "run").preset == "gpt-nano"
    made = [event.step.step for event in events if isinstance(event, Trained)]
    assert made
    more = [event.step.step for event in train(again, tmp_path / "run") if isinstance(event, Trained)]
    assert [*made, *more] == [1, 2, 3, 4, 5]


def test_much_data_is_told_before_it_is_read(labelled, tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.run.begin.LARGE", 10)
    recipe = planned("classify", tmp_path, {"data.path": str(labelled), "train.steps": 1})[0]
    first = next(iter(train(recipe, tmp_path / "run")))
    assert first == Note("reading 0 MB of data: the first step may be minutes away")
    assert not (tmp_path / "run").exists()


def test_who_names_a_preset_gets_it(labelled, tmp_path):
    assert wanted(labelled, tmp_path, preset="gpt-mini").preset == "gpt-mini"
    assert planned("classify", tmp_path, {"data.path": str(labelled)})[0].preset == "gpt-mini"
    assert planned("detect", tmp_path, {"data.path": "shapes", "train.minutes": 1})[0].preset == "detr-nano-affine"
    with pytest.raises(InputError, match="auto is for a new model and a budget of minutes"):
        heedful.recipe("classify", preset="auto")
    with pytest.raises(InputError, match="auto"):
        heedful.recipe("detect", preset="auto", train={"minutes": 1})


def test_minutes_mean_one_thing_however_they_are_given(labelled, tmp_path):
    """By an option, by --set, and in a recipe from Python; a recipe file and a preset say what they want themselves."""
    by_option = planned("classify", tmp_path, {"data.path": str(labelled), "train.minutes": 2.0})[0]
    by_setting = planned("classify", tmp_path, {"data.path": str(labelled)}, settings=["train.minutes=2.0"])[0]
    made = heedful.recipe("classify", data={"path": str(labelled)}, train={"minutes": 2.0})
    assert by_option == by_setting == planned(made, tmp_path, {})[0]
    assert by_option.preset == "auto"
    named = ["train.minutes=2.0", "preset=gpt-micro"]
    assert planned("classify", tmp_path, {"data.path": str(labelled)}, settings=named)[0].preset == "gpt-micro"
    unlimited = ["train.minutes=null", "train.steps=3"]
    assert planned("classify", tmp_path, {"data.path": str(labelled)}, settings=unlimited)[0].preset == "gpt-mini"


def test_sizes_are_presets_with_the_usual_one_among_them():
    rows = [row.recipe() for row in TASKS.values() if row.recipe is not None]
    sized = [kind for kind in rows if kind.SIZES]
    assert len(sized) > 8
    for kind in sized:
        assert set(kind.SIZES) <= set(kind.PRESETS())
        assert kind.model_fields["preset"].default in kind.SIZES
