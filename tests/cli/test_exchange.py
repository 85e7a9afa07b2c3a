"""heed import and heed export, as a person and a program use them."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from commands import heed
from heedful.tasks.recipes import saved_recipe
from heedful.tasks.translate.use import Translator
from hub import LINES, gpt2_folder
from saved import save_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hub") / "tiny"
    gpt2_folder(path)
    return path


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    assert heed("import", folder, "--out", folder.parent / "run") == 0
    return folder.parent / "run"


def test_import_says_what_it_became(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert heed("import", folder, "--json") == 0
    said = capsys.readouterr()
    parameters = sum(parameter.numel() for parameter in heedful.load("runs/tiny").model.parameters())
    assert json.loads(said.out) == {
        "family": "GPT-2",
        "task": "generate",
        "parameters": parameters,
        "vocab_size": 301,
        "out": "runs/tiny",
        "notes": [],
    }
    assert said.err.splitlines()[0] == f"GPT-2: {parameters:,} parameters, 301 tokens in the vocabulary"


def test_adapters_without_their_model_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    assert heed("import", tmp_path, "--out", tmp_path / "run") == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path}: adapters alone, without the model that they change\n")
    assert "merge_and_unload" in told


def test_what_was_imported_can_be_used_as_it_says(run_of: Callable[[str], Path], tmp_path: Path, capsys) -> None:
    """A bare encoder too, of which no verb has the name of its task."""
    hub, out = tmp_path / "hub", tmp_path / "run"
    assert heed("export", run_of("pairs"), "--out", hub) == 0
    weights = load_file(hub / "model.safetensors")
    save_file({name: own for name, own in weights.items() if not name.startswith("cls.")}, hub / "model.safetensors")
    capsys.readouterr()
    assert heed("import", hub, "--out", out) == 0
    assert (
        capsys.readouterr().err.splitlines()[1] == f"this run reads texts, for others to start from: heed embed {out}"
    )


def test_an_imported_model_is_tuned_gently(run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "book.txt").write_text("\n".join(LINES), encoding="utf-8")
    words = ["train", "generate", "--data", tmp_path / "book.txt", "--from", run, "--set", "train.steps=1"]
    words += ["--set", "train.precision=fp32", "--verbose"]
    rates = {}
    for name, more in (("default", []), ("own", ["--set", "train.lr=3e-4"])):
        assert heed(*words, "--out", tmp_path / name, *more) == 0
        rates[name] = saved_recipe(tmp_path / name).train
    assert (rates["default"].optimizer, rates["default"].lr) == ("adam", 5e-5)
    assert rates["own"].lr == 3e-4
    assert "an imported model is tuned with" in capsys.readouterr().err
    assert heed(*words[:5], tmp_path / "default", *words[6:], "--out", tmp_path / "again") == 0
    assert saved_recipe(tmp_path / "again").train.lr == heedful.recipe("generate").train.lr


def test_an_imported_model_is_served_by_every_verb(run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "book.txt").write_text("\n".join(LINES), encoding="utf-8")
    assert heed("generate", run, "The small", "--tokens", 5, "--temperature", 0, "--json") == 0
    assert json.loads(capsys.readouterr().out)["prompt"] == "The small"
    assert heed("generate", run, "--tokens", 5) == 0
    assert heed("look", run, "The small", "--out", tmp_path / "look.html", "--json") == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])["last"]
    assert sum(share for _, share in last) == pytest.approx(1, abs=1e-4)
    assert heed("score", run, "The small", "--json") == 0
    assert heed("eval", run, "--data", tmp_path / "book.txt", "--json") == 0
    capsys.readouterr()
    assert heed("info", run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["vocabulary"] == 301
    assert heed("check", run, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["broken"] == 0


def test_export_says_what_loads_it(run: Path, tmp_path: Path, capsys) -> None:
    assert heed("export", run, "--to", "hf", "--out", tmp_path / "hub", "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found.keys() == {"family", "to", "out", "files"}
    assert (found["family"], found["to"], found["out"]) == ("GPT-2", "hf", str(tmp_path / "hub"))
    assert found["files"] == sorted(path.name for path in (tmp_path / "hub").iterdir())
    assert "transformers.AutoModelForCausalLM.from_pretrained(" in said.err


def test_the_card_of_a_run_goes_with_it(run: Path, tmp_path: Path) -> None:
    made = shutil.copytree(run, tmp_path / "mine")
    (made / "README.md").write_text("# mine\n\nContinues texts.\n")
    assert heed("export", made, "--to", "hf", "--out", tmp_path / "hub") == 0
    card = (tmp_path / "hub" / "README.md").read_text()
    assert card.startswith("# mine\n\nContinues texts.\n\n## By transformers\n")
    assert 'model = transformers.AutoModelForCausalLM.from_pretrained(".")' in card
    assert heed("import", tmp_path / "hub", "--out", tmp_path / "back") == 0


def test_the_card_of_a_run_that_was_moved_has_its_new_name(run: Path, tmp_path: Path) -> None:
    """But not where somebody has given it a title."""
    use = 'heed generate runs/old "A text."\nheed eval runs/old --data x\n'
    text = f"# {{}}\n\nContinues texts.\n\n## Use\n\n```\n{use}```\n"
    made = shutil.copytree(run, tmp_path / "new")
    for title, named in (("old", "new"), ("Our model", "Our model")):
        (made / "README.md").write_text(text.format(title))
        assert heed("export", made, "--to", "hf", "--out", tmp_path / title) == 0
        card = (tmp_path / title / "README.md").read_text()
        assert card.startswith(f"# {named}\n\nContinues texts.\n")
        assert f'heed generate {"new" if named == "new" else "runs/old"} "A text."\n' in card


@pytest.mark.parametrize(
    ("words", "code", "error", "fix"),
    [
        (["import", "nowhere"], 3, "nowhere: no such folder", "check the path; or give a name of the Hub, ORG/NAME"),
        (["import", "{other}"], 2, "no rule for their tensor 'score.bias'", "take a model of this family without"),
        (["import", "{run}", "--out", "never"], 2, "no model_type: not a model of the Hub", "give the folder"),
        (["import", "{folder}", "--out", "{run}"], 2, "run: is not empty", "choose another --out"),
        (["export", "{run}", "--out", "{folder}"], 2, "tiny: is not empty", "choose another --out"),
        (["export", "{run}", "--to", "zzz", "--out", "never"], 2, "--to: unknown key 'zzz'", "known: ctranslate2"),
        (["export", "nowhere", "--out", "never"], 3, "nowhere: no such folder", "check the path"),
        (["generate", "{folder}", "x"], 2, "a Hugging Face model", "heed import"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(
    folder, run, tmp_path, monkeypatch, capsys, words, code, error, fix
) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    weights = load_file(other / "model.safetensors")
    save_file(weights | {"score.bias": torch.zeros(2)}, other / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    assert heed(*(word.format(run=run, folder=folder, other=other) for word in words)) == code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("error: ")
    assert error in said[0]
    assert said[1].startswith(f"fix: {fix}")
    assert not list(tmp_path.glob("**/*never*"))


@pytest.mark.parametrize("verb", ["import", "export"])
def test_the_example_of_every_help_runs(folder, run, tmp_path, monkeypatch, capsys, verb) -> None:
    assert heed(verb, "--help") == 0
    example = re.search(r"Example: heed (.+?)\n\n", capsys.readouterr().out, re.DOTALL)
    assert example is not None
    places = {"openai-community/gpt2": folder, "runs/text": run}
    monkeypatch.chdir(tmp_path)
    assert heed(*(places.get(word, word) for word in shlex.split(example[1]))) == 0


@pytest.mark.parametrize(
    "said", ["{{ messages }}é", [{"name": "default", "template": "{{ 1 }}"}]], ids=["one", "named"]
)
def test_a_chat_template_is_kept_as_it_is(folder: Path, tmp_path: Path, said: object) -> None:
    """In either of the two files that may have it, or in both."""
    theirs = tmp_path / "theirs"
    shutil.copytree(folder, theirs)
    config = json.loads((theirs / "tokenizer_config.json").read_text())
    (theirs / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": said}))
    program = b"{% for message in messages %}\r\n{{ message.content }} \n{% endfor %}"
    (theirs / "chat_template.jinja").write_bytes(program)
    assert heed("import", theirs, "--out", tmp_path / "run") == 0
    assert heed("export", tmp_path / "run", "--out", tmp_path / "back") == 0
    assert (tmp_path / "back" / "chat_template.jinja").read_bytes() == program
    assert json.loads((tmp_path / "back" / "tokenizer_config.json").read_text())["chat_template"] == said
    heedful.load(tmp_path / "run")


def test_a_folder_without_a_chat_template_gets_none(run: Path, tmp_path: Path) -> None:
    assert heed("export", run, "--out", tmp_path / "back") == 0
    assert not list(tmp_path.glob("back/chat_template*"))
    assert "chat_template" not in json.loads((tmp_path / "back" / "tokenizer_config.json").read_text())


def test_a_translator_that_comes_back_knows_its_languages(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    begun = heedful.load(run_of("transformer"), Translator)
    about = {"task": "translate", "source": "en", "target": "fr"}
    save_run(tmp_path / "run", begun.model, begun.source, begun.target, about)
    assert heed("export", tmp_path / "run", "--out", tmp_path / "hub") == 0
    assert heed("import", tmp_path / "hub", "--out", tmp_path / "again") == 0
    back = json.loads((tmp_path / "again/task.json").read_text())
    assert (back["source"], back["target"]) == ("en", "fr")
