"""Commands that the documents name: each is one that the command line takes, and those of the README are run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import heed
from heedful import cli
from heedful.cli.training import with_two_files
from made import made_corpus

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
RECIPES = [f"recipes/{path.name}" for path in sorted((ROOT / "recipes").glob("*.py"))]
COMMANDS: dict[str, Any] = cli.heed.commands  # type: ignore[attr-defined]
# Commands that a page adds itself, and `./heed test`, which is the script's own.
OTHERS = {"punctuate", "test"}
# For what a training of the README is to learn from here, and how little of it is enough.
SMALL = {
    "translate": ["--preset", "transformer-tiny", "--set", "train.steps=3", "--set", "data.vocab_size=300"],
    "generate": ["--set", "train.steps=2", "--set", "data.vocab_size=300", "--set", "model.n_layers=1"],
    "classify": ["--set", "train.steps=2"],
    "detect": ["--set", "train.steps=1", "--minutes", "0.1"],
}


def commands_in(text: str) -> Iterator[str]:
    """What stands after `heed` at the beginnings of lines, joined where a line ends in a backslash; no comments."""
    joined = re.sub(r"\\+\n\s*", " ", text)
    for line in joined.splitlines():
        if found := re.match(r"\s*(?:\./)?heed ((?!test\b)[a-z].*)", line):
            yield " ".join(found[1].split("  #")[0].split(" # ")[0].split())


def written() -> list[tuple[str, str]]:
    """Each command, and where it is written."""
    found = [(name, one) for name in (*PAGES, *RECIPES) for one in commands_in((ROOT / name).read_text("utf-8"))]
    for name, command in COMMANDS.items():
        told = " ".join((command.help or "").split())
        found += [(f"heed {name} --help", one) for one in re.findall(r"Example: heed (.+?)(?: \f|$)", told)]
    return [(where, one) for where, one in found if shlex.split(one)[0] not in OTHERS]


WRITTEN = written()


def test_there_are_commands_to_try() -> None:
    assert len(WRITTEN) > 60
    assert {f"heed {name} --help" for name in COMMANDS} <= {where for where, _ in WRITTEN}


@pytest.mark.parametrize(("where", "command"), WRITTEN, ids=lambda value: value[:60])
def test_it_is_taken(where: str, command: str) -> None:
    """Names, options and values exist: nothing is run."""
    name, *words = with_two_files(shlex.split(command)) if command.startswith("train ") else shlex.split(command)
    context = COMMANDS[name].make_context(name, words, resilient_parsing=False)
    assert context.params


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files that the README's commands name."""
    made, corpus = tmp_path_factory.mktemp("documented"), made_corpus(120)
    pairs = [f"{source}\t{target}" for source, target in zip(corpus.train.source, corpus.train.target, strict=True)]
    texts = {
        "pairs.tsv": pairs,
        "test.en": corpus.train.source[:4],
        "test.fr": corpus.train.target[:4],
        "book.txt": [*corpus.train.source] * 4,
        "reviews.tsv": [f"{text}\t{'good' if len(text) % 2 else 'bad'}" for text in corpus.train.source],
        "more.tsv": [f"{text}\t{'good' if len(text) % 2 else 'bad'}" for text in corpus.train.source[:9]],
        "lines.txt": corpus.train.source[:9],
        "page.html": [f"<p>{corpus.train.source[0]}</p>"],
        "terms.tsv": ["ba\tBA"],
    }
    for name, lines in texts.items():
        (made / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


# But for what takes minutes, what does not end, and a teacher that after three steps says nothing.
NOT_RUN = ("demo", "serve runs", "distil")
README = [one for where, one in WRITTEN if where == "README.md" and not one.startswith(NOT_RUN)]


def test_the_readme_is_run_in_its_order(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(folder)
    verbs = set()
    for command in README:
        name, *words = shlex.split(command)
        if name == "train":
            words += SMALL[words[0]]
        elif name == "restore":
            model = folder / words[0] / "model.safetensors"
            model.write_bytes(model.read_bytes()[:1000])
        assert heed(name, *words) == 0, f"{command}: {capsys.readouterr().err}"
        verbs.add(name)
    assert verbs >= {"train", "eval", "translate", "look", "check", "restore", "generate", "classify", "embed", "serve"}
    assert (folder / "look.html").stat().st_size > 10_000
