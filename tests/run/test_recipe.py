"""Recipes from options, YAML and Python files; what is wrong in one is said in one line."""

import re
from dataclasses import fields
from itertools import pairwise

import pytest

import heedful
from heedful.errors import HeedError, InputError, MissingError
from heedful.run.recipe import Recipe, Section, override, read_yaml, to_yaml
from heedful.tasks import trained
from heedful.tasks.recipes import build, from_yaml, read_recipe
from heedful.verbs.train import planned

RECIPES = {name: row.recipe() for name, row in trained().items() if row.recipe is not None}
# The keys that each task reads, such as "train.lr".
KEYS = {
    task: {
        f"{name}.{key}"
        for name, section in kind.model_fields.items()
        if isinstance(section.annotation, type) and issubclass(section.annotation, Section)
        for key in section.annotation.model_fields
    }
    for task, kind in RECIPES.items()
}


def test_an_option_of_a_task_sets_a_key_that_it_reads():
    several: dict[str, set[bool]] = {}
    for task, row in trained().items():
        sizes = RECIPES[task].PRESETS().values()
        known = KEYS[task] | {f"model.{field.name}" for size in sizes for field in fields(size)}
        assert {option.key for option in row.train_options.values()} <= known
        for name, option in row.train_options.items():
            several.setdefault(name, set()).add(option.several)
    assert {"source", "method"} <= set(several)
    assert all(len(each) == 1 for each in several.values())


def test_yaml_gives_back_every_key():
    recipe = override(
        heedful.recipe("translate"), ["train.lr=1e-4", "data.source=no", "model.d_model=64", "train.minutes=2"]
    )
    assert recipe.train.lr == 1e-4
    assert recipe.data.source == "no"  # Norwegian
    assert recipe.model == {"d_model": 64}
    assert recipe.train.minutes == 2.0
    assert from_yaml(to_yaml(recipe), where="x") == recipe


@pytest.mark.parametrize(
    "path", ["1e4", "1_0", "010", "1:30", "2024-01-01", "true", "no", ".5", "~", "\U0001f600 \u4f60.tsv", ""]
)
def test_a_path_is_kept_as_it_is(path):
    """Whatever number or truth value YAML might take it for."""
    recipe = override(heedful.recipe("tag"), {"data.path": path})
    assert recipe.data.path == path
    assert from_yaml(to_yaml(recipe), where="x") == recipe


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
        (f"train.seed={2**63}", f"train.seed = {2**63}", ""),
        ("steps=3", "unknown key 'steps'", "did you mean 'train.steps'?"),
        ("beam=3", "unknown key 'beam'", "did you mean 'decode.beam'?"),
        ("preset=transformer-smal", "unknown key 'transformer-smal'", "did you mean 'transformer-small'?"),
        ("train.optimizer=adamw", "train.optimizer = 'adamw'", ""),
        ("train.steps={", "--set train.steps: not YAML", ""),
        ("train.steps=2024-99-99", "train.steps = '2024-99-99': input should be", ""),
        ("train.minutes=1:30", "train.minutes = '1:30': input should be", ""),
        ("train.steps=!!int x", "--set train.steps: not YAML", ""),
        ("train.steps=!!int", "--set train.steps: not YAML", ""),
        ("train.compile=!!bool x", "--set train.compile: not YAML: 'x'", ""),
        ("train.steps=!!timestamp x", "--set train.steps: not YAML", ""),
        ("train.lr=true", "train.lr = True: input should be a number", ""),
        ("train.warmup=false", "train.warmup = False: input should be a number", ""),
        ("train.compile=1", "train.compile = 1: input should be true or false", ""),
        ("data.joint=0.0", "data.joint = 0.0: input should be true or false", ""),
        ("train=5", "train = 5: input should be a section of keys", ""),
        ("data=", "data = None: input should be a section of keys", ""),
        ("data.path=5", "data.path = 5: input should be", ""),
        ("model={5: 6}", "model.5 = 5: input should be", ""),
        ("data.mix=[5]", "data.mix.0 = 5: input should be", ""),
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
    with pytest.raises(InputError, match="unknown task 'tranlate'"):
        read_recipe("tranlate")
    for text, says in (
        ("train: [1", "not YAML"),
        ("train:\n  steps: 5\ndata: {}\ntrain:\n  lr: 0.1\n", "the key 'train' appears twice"),
        ("- train\n", r"the recipe = \['train'\]: input should be a section of keys"),
        ("preset: caf\xe9", "not UTF-8"),
    ):
        yaml.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match=rf"mine\.yaml: .*{says}"):
            read_recipe(str(yaml))


def lines_of_aliases(first: str, line: str) -> str:
    """Twenty lines, each of nine of the line before."""
    names = [f"a{number}" for number in range(20)]
    rest = (line.format(name=own, nine=", ".join([f"*{before}"] * 9)) for before, own in pairwise(names))
    return "\n".join(["task: translate", f"a0: &a0 {first}", *rest])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (lines_of_aliases("[x, x]", "{name}: &{name} [{nine}]"), "more than 100,000 values"),
        (lines_of_aliases("{x: 1}", "{name}: &{name} {{<<: [{nine}]}}"), "more than 100,000 values"),
        ("task: translate\nmodel: &own {x: *own}", "a value that is inside itself"),
        ("task: translate\ndata: &own [*own]", "a value that is inside itself"),
        ('task: translate\ndata: {path: "a\\0b"}', "input should be text without a null character"),
        ('task: translate\ndata: {path: "\\udce9"}', "input should be text without a null character"),
        ('task: translate\ndata: {path: ["b", "a\\0b"]}', "input should be text without a null character"),
        ("#" * (1 << 20), "more than the 1 MB"),
    ],
)
def test_a_recipe_that_does_harm_is_told_in_one_line(text, says, tmp_path):
    """Of a few lines, which would be billions of values, or which name no file."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\n")
    with pytest.raises(HeedError, match=rf"mine\.yaml: .*{says}") as caught:
        read_recipe(str(path))
    assert len(str(caught.value)) < 300 + len(str(path))
    assert str(caught.value).isprintable()


def test_aliases_that_do_not_multiply_are_read():
    lines = ["task: translate", "train: &own {lr: 0.1}", "data: {vocab_size: 300}", "decode: {beam: 2}"]
    assert from_yaml("\n".join(lines), where="x").train.lr == 0.1
    assert read_yaml("a: &own [1, 2]\nb: [*own, *own]", where="x") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}


@pytest.mark.parametrize("data", [[], 3, {"train": 5}, {"data": {"vocab_size": True}}, {"task": None}])
def test_what_is_no_recipe_is_refused(data):
    with pytest.raises(HeedError):
        build(data, where="x")


@pytest.mark.parametrize("task", KEYS)
def test_no_task_takes_a_key_of_another(task):
    """By `--set` and in a file alike, and the error names what the task does read: the nearest key, or all of them."""
    others = set().union(*KEYS.values()) - KEYS[task]
    assert others
    for name in others:
        section, key = name.split(".")
        unknown = f"unknown key '({section}|{key})'"
        with pytest.raises(InputError, match=unknown) as by_option:
            override(heedful.recipe(task), [f"{name}=1"])
        with pytest.raises(InputError, match=unknown) as by_file:
            from_yaml(f"task: {task}\n{section}: {{{key}: 1}}\n", where="x")
        for caught in (by_option, by_file):
            told = set(re.findall(r"\w+", caught.value.fix)) - {"did", "you", "mean", "known"}
            assert told
            assert told <= {part for own in KEYS[task] for part in own.split(".")} | {*Recipe.model_fields}


@pytest.mark.parametrize("task", KEYS)
def test_a_task_takes_each_key_of_its_own(task):
    plain = heedful.recipe(task).model_dump(mode="json")
    found = {f"{section}.{key}" for section, keys in plain.items() if isinstance(keys, dict) for key in keys}
    assert found == KEYS[task]
    assert build(plain, where="x").model_dump(mode="json") == plain


@pytest.mark.parametrize(
    ("given", "settings", "where"),
    [
        ({"preset": "transfromer-tiny"}, [], "--preset"),
        ({}, ["preset=transfromer-tiny"], "--set: preset"),
    ],
)
def test_a_misspelt_preset_is_headed_by_what_it_was_given_with(tmp_path, given, settings, where):
    with pytest.raises(InputError) as caught:
        planned("translate", tmp_path, {"data.path": "p.tsv", **given}, settings=settings)
    assert caught.value.where == where
    assert caught.value.fix == "did you mean 'transformer-tiny'?"
