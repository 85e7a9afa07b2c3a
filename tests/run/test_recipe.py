"""Recipes from options, YAML and Python files; what is wrong in one is said in one line."""

import pytest

import heedful
from heedful.errors import HeedError, InputError, MissingError
from heedful.run.recipe import override, write
from heedful.tasks.recipes import build, parse, read_recipe


def test_yaml_gives_back_every_key():
    recipe = override(
        heedful.recipe("translate"), ["train.lr=1e-4", "data.source=no", "model.d_model=64", "train.minutes=2"]
    )
    assert recipe.train.lr == 1e-4
    assert recipe.data.source == "no"  # Norwegian
    assert recipe.model == {"d_model": 64}
    assert recipe.train.minutes == 2.0
    assert parse(write(recipe), where="x") == recipe


@pytest.mark.parametrize(
    ("setting", "says", "fix"),
    [
        ("train.learning=1", "unknown key 'learning'", ""),
        ("train.stepps=1", "--set.train: unknown key 'stepps'", "did you mean 'steps'?"),
        ("trian.steps=1", "--set: unknown key 'trian'", "did you mean 'train'?"),
        ("train.steps", "'train.steps' is not key=value", "for example"),
        ("train.steps=many", "train.steps = 'many'", ""),
        ("train.steps=0", "train.steps = 0", ""),
        ("train.lr=.nan", "train.lr = '.nan'", ""),
        ("train.lr=-1e-3", "train.lr = -0.001", ""),
        ("preset=transformer-smal", "unknown key 'transformer-smal'", "did you mean 'transformer-small'?"),
        ("train.optimizer=adamw", "train.optimizer = 'adamw'", ""),
        ("train.steps={", "--set train.steps: not YAML", ""),
    ],
)
def test_a_wrong_setting_is_one_line(setting, says, fix):
    with pytest.raises(InputError) as caught:
        override(heedful.recipe("translate"), [setting])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert fix in caught.value.fix


def test_recipe_files(tmp_path):
    python = tmp_path / "mine.py"
    python.write_text("import heedful\nrecipe = heedful.recipe(preset='rnn-small')\n")
    assert read_recipe(str(python)).preset == "rnn-small"
    yaml = tmp_path / "mine.yaml"
    yaml.write_text("preset: rnn-small\ntrain:\n  steps: 5\n")
    assert read_recipe(str(yaml)).train.steps == 5
    python.write_text("recipe = 3\n")
    with pytest.raises(InputError, match=r"mine.py: defines no `recipe"):
        read_recipe(str(python))
    with pytest.raises(MissingError):
        read_recipe(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="unknown key 'tranlate'"):
        read_recipe("tranlate")
    yaml.write_text("train: [1")
    with pytest.raises(InputError, match=r"mine\.yaml: not YAML"):
        read_recipe(str(yaml))


@pytest.mark.parametrize("data", [[], 3, {"train": 5}, {"data": {"vocab_size": True}}, {"task": None}])
def test_what_is_no_recipe_is_refused(data):
    with pytest.raises(HeedError):
        build(data, where="x")
