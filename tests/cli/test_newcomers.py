"""What people bring from other programs, or point at in place of a run, is told from what it is not."""

import json
import shlex

import pytest

from commands import heed

OPENNMT = """
save_data: run/example
src_vocab: run/example.vocab.src
data:
  corpus_1: {path_src: train.en, path_tgt: train.de}
"""
JOEY = """
name: small
data: {train: data/train, src: {lang: en}, trg: {lang: de}}
training: {batch_size: 4096}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, run_of):
    (tmp_path / "onmt.yaml").write_text(OPENNMT)
    (tmp_path / "joey.yaml").write_text(JOEY)
    (tmp_path / "model_step_1000.pt").write_bytes(b"PK")
    (tmp_path / "data-bin").mkdir()
    for name in ("dict.de.txt", "dict.en.txt", "train.en-de.en.bin", "train.en-de.en.idx"):
        (tmp_path / "data-bin" / name).write_text("the 12\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(run_of("fill"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "error", "fix"),
    [
        (["train", "onmt.yaml"], 2, "onmt.yaml: a configuration of OpenNMT-py, and no recipe", "docs/migration.md"),
        (["train", "joey.yaml"], 2, "joey.yaml: a configuration of Joey NMT, and no recipe", "docs/migration.md"),
        (["train", "--data", "data-bin", "--out", "x"], 2, "data-bin: made by fairseq-preprocess", "the texts"),
        (["translate", "model_step_1000.pt", "a"], 3, "model_step_1000.pt: a pickle, and no run", "docs/migration.md"),
        (["import", "model_step_1000.pt", "--out", "x"], 3, "model_step_1000.pt: a pickle, and", "docs/migration.md"),
        (["train", "--data", "onmt.yaml", "--out", "x"], 2, "onmt.yaml: YAML, which holds no", "docs/migration.md"),
        (["translate", "onmt.yaml", "a"], 3, "onmt.yaml: a file, and no folder", "check the path"),
        (["translate", "runs", "a"], 3, "runs: a folder of runs, and none itself", "name one: runs/mine"),
        (["serve", "runs", "--port", "0"], 3, "runs: a folder of runs, and none itself", "name one: runs/mine"),
    ],
)
def test_what_is_no_run_and_no_recipe_is_told_by_what_it_is(folder, capsys, words, code, error, fix):
    assert heed(*words) == code
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error: ", "fix: "))]
    assert said[0].startswith(f"error: {error}")
    assert fix in said[1]


def test_pairs_that_moses_has_tokenised_are_told(tmp_path, capsys):
    rows = [f"the dog , number {n} .\tder Hund , Nummer {n} .\n" for n in range(300)]
    (tmp_path / "p.tsv").write_text("".join(rows + rows))
    assert heed("data", "check", str(tmp_path / "p.tsv")) == 0
    told = capsys.readouterr()
    assert "600 of 600 training pairs (100 %) have blanks before their punctuation" in told.out + told.err
    (tmp_path / "cut.tsv").write_text("".join(f"the d@@ og {n}\tder Hu@@ nd {n}\n" for n in range(300)))
    assert heed("data", "check", str(tmp_path / "cut.tsv")) == 0
    told = capsys.readouterr()
    assert "pieces: 300 (100 %)" in told.out + told.err


SMALL = [
    "model.d_model=16",
    "model.n_heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "data.vocab_size=300",
]


def test_a_first_training_says_little_before_it_begins_and_then_what_comes_next(tmp_path, capsys):
    """At most six lines, without the details, which log.txt and --verbose have; at the end a verdict, and commands of
    which the first trains on."""
    data, run = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    for part, (first, last) in {"train": (0, 200), "valid": (200, 220), "test": (220, 240)}.items():
        rows = [f"the {n} dogs see {n % 7} cats\tles {n} chiens voient {n % 7} chats\n" for n in range(first, last)]
        (data / f"{part}.tsv").write_text("".join(rows))
    settings = [word for one in [*SMALL, "train.steps=2", "train.eval_every=2"] for word in ("--set", one)]
    words = ["train", "translate", "--data", data, *settings]

    def told(*more):
        assert heed(*words, *more) == 0
        lines = capsys.readouterr().err.splitlines()
        return lines, next(i for i, line in enumerate(lines) if line.startswith("step 1 "))

    lines, first = told("--out", run)
    log = (run / "log.txt").read_text().splitlines()
    assert 3 <= first <= 6
    for detail in ("separated by TAB", "training in ", "parameters", "200 pairs"):
        assert any(detail in line for line in log)
    assert not any(
        detail in line for detail in ("separated by TAB", "training in ", "parameters") for line in lines[:first]
    )
    assert [line for line in lines[: first - 1] if line not in log] == []
    at = lines.index("next:")
    assert lines[at - 1].startswith("trained too little")
    assert lines[at - 1] == log[-1]
    assert len(lines[at:]) >= 4
    assert all(str(run) in line for line in lines[at + 1 :])
    assert heed(*shlex.split(lines[at + 1])[1:]) == 0
    assert "continuing from step 2" in capsys.readouterr().err
    loud, begin = told("--out", tmp_path / "loud", "--verbose")
    assert loud[:begin] == log[: log.index(lines[at - 1])]


def test_scores_are_the_output_of_eval(run_of, tmp_path, capsys):
    (tmp_path / "own.tsv").write_text("ba de\tDE BA\nko gi\tGI KO\n")
    words = ["eval", run_of("transformer"), "--data", tmp_path / "own.tsv"]
    assert heed(*words) == 0
    plain = capsys.readouterr()
    line, *_ = plain.out.splitlines()
    assert line.startswith("own.tsv: ")
    assert "BLEU" in line
    assert line not in plain.err
    assert heed(*words, "--json") == 0
    as_json = capsys.readouterr()
    assert "bleu" in json.loads(as_json.out)
    assert line in as_json.err.splitlines()
