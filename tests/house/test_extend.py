"""The diffs of docs/extend.md apply to this tree, and what they add works: each in a copy, in one process."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TRAINED = [
    "--set",
    "train.steps=2",
    "--set",
    "model.d_model=16",
    "--set",
    "model.n_heads=2",
    "--set",
    "train.eval_every=2",
]
TRANSLATOR = [
    *TRAINED,
    *["--set", "model.d_ff=16", "--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1"],
]
WRITER = [*TRAINED, *["--set", "model.n_layers=2", "--set", "model.context_length=32", "--set", "data.tokenizer=chars"]]
PLAIN = "It rained, so we stayed in.\nWhere is Ada? She went to Rome.\n" * 20
MESSAGE = "<message><source>{}</source><translation{}>{}</translation></message>"
MESSAGES = [
    MESSAGE.format("Open a file", "", "Ouvrir un fichier"),
    MESSAGE.format("Close", ' type="unfinished"', "Fermez"),
    *(MESSAGE.format(f"{n} files", "", f"{n} fichiers") for n in range(12)),
]

# What each adds is used through the command line; `check` holds it to the laws: cached decoding is full decoding ...
OUT = punctuated, messages, kerple, gptj = "punctuated", "messages", "kerple", "gptj"
SHOWN = {
    "A task": [
        ["train", "punctuate", "--data", "plain.txt", "--out", punctuated, *TRANSLATOR, "--set", "data.vocab_size=300"],
        ["punctuate", punctuated, "where is ada"],
        ["check", punctuated],
        ["draw", punctuated, "--out", "punctuated.svg"],
        ["trace", punctuated, "It"],
        ["info", punctuated],
    ],
    "A data format": [
        ["train", "translate", "--data", "messages.ts", "--out", messages, *TRANSLATOR, "--set", "data.vocab_size=300"],
        ["translate", messages, "Open a file"],
    ],
    "A position scheme": [
        ["train", "generate", "--data", "plain.txt", "--out", kerple, *WRITER, "--set", "model.position=kerple"],
        ["generate", kerple, "It", "--tokens", "3"],
        ["check", kerple],
        ["draw", kerple, "--out", "kerple.svg"],
        ["trace", kerple, "It"],
    ],
    "A family of models": [
        ["train", "generate", "--data", "plain.txt", "--out", gptj, "--preset", "gptj-nano", *WRITER],
        ["generate", gptj, "It", "--tokens", "3"],
        ["check", gptj],
        ["draw", gptj, "--out", "gptj.svg"],
        ["trace", gptj, "It"],
    ],
}
PROGRAM = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from heedful.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["heed", *words]
    try:
        main()
    except SystemExit as left:
        if left.code:
            sys.exit(f"heed {words[0]} ended with {left.code}")
sys.path.insert(0, "tests/house")
import test_imports as house
house.test_imports_go_down(Path())
house.test_nothing_but_its_folder_and_the_table_names_a_task(Path())
house.test_no_room_is_crowded(Path())
for task in house.TASKS:
    house.test_all_that_a_row_names_is_there(task)
"""


def diffs(root: Path) -> dict[str, str]:
    """By the heading above it."""
    parts = (root / "docs" / "extend.md").read_text(encoding="utf-8").split("\n## ")[1:]
    found = {part.split("\n")[0]: re.search(r"```diff\n(.*?)```", part, re.DOTALL) for part in parts}
    return {name: match[1] for name, match in found.items() if match}


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for part in ("heedful", "docs", "tests/house"):
        shutil.copytree(root / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tree)
    return tree


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=tree, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )


def test_each_heading_has_a_diff(root: Path) -> None:
    assert list(diffs(root)) == list(SHOWN)


def test_a_task_is_one_folder_and_one_line(root: Path) -> None:
    changed = re.findall(r"^diff --git a/(\S+)", diffs(root)["A task"], re.MULTILINE)
    assert {Path(path).parent.as_posix() for path in changed[1:]} == {"heedful/tasks/punctuate"}
    table = diffs(root)["A task"].split("diff --git ")[1]
    lines = [line for line in table.split("\n") if re.match(r"[+-](?![+-])", line)]
    assert lines == ['+    Lazy("heedful.tasks.punctuate:PUNCTUATE"),']


@pytest.mark.parametrize("name", SHOWN)
def test_a_diff_applies_by_itself(name: str, root: Path, copy: Path) -> None:
    apply(name, root, copy)
    for check in (["check"], ["format", "--check"]):
        linted = run(copy, "-m", "ruff", *check, "heedful")
        assert linted.returncode == 0, linted.stdout


def test_what_they_add_works(root: Path, copy: Path) -> None:
    """All in one copy, which is compiled and started once."""
    for name in SHOWN:
        apply(name, root, copy)
    (copy / "plain.txt").write_text(PLAIN, encoding="utf-8")
    context = f'<TS version="2.1" language="fr"><context>{"".join(MESSAGES)}</context></TS>'
    (copy / "messages.ts").write_text(f'<?xml version="1.0"?><!DOCTYPE TS>{context}', encoding="utf-8")
    shown = run(copy, "-c", PROGRAM, json.dumps([words for commands in SHOWN.values() for words in commands]))
    assert shown.returncode == 0, shown.stdout[-2000:] + shown.stderr[-2000:]
    for out in OUT:
        assert (copy / out / "model.safetensors").is_file()


def apply(name: str, root: Path, copy: Path) -> None:
    patch = copy / "change.diff"
    patch.write_text(diffs(root)[name], encoding="utf-8")
    applied = subprocess.run(["git", "apply", str(patch)], cwd=copy, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, f"docs/extend.md: the diff of {name!r} no longer applies: {applied.stderr}"
