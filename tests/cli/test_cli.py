"""The command line as a person and a program use it: results on standard output, words for people on standard error."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import heedful
from commands import heed, standard_input
from heedful import cli

WORDS = ["ba", "de", "gi", "ko", "lu"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    lines = [f"{a} {b} {c}\t{c.upper()} {b.upper()} {a.upper()}\n" for a in WORDS for b in WORDS for c in WORDS]
    (folder / "pairs.tsv").write_text("".join(lines))
    sides = [line.strip().split("\t") for line in lines[:10]]
    (folder / "test.en").write_text("".join(source + "\n" for source, _ in sides))
    (folder / "test.fr").write_text("".join(target + "\n" for _, target in sides))
    return folder


SMALL = [f"--set=model.{key}={value}" for key, value in {"d_model": 16, "n_heads": 2, "d_ff": 32}.items()]
SMALL += ["--set=model.encoder_layers=1", "--set=model.decoder_layers=1", "--set=data.vocab_size=300"]
SMALL += ["--set=train.steps=2", "--set=train.eval_every=2", "--set=decode.beam=2"]


@pytest.fixture(scope="module")
def run(data):
    code = heed("train", "translate", "--data", data / "pairs.tsv", "--out", data / "run", *SMALL)
    assert code == 0
    return data / "run"


def lines(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("order", [["translate", "--data", "x.ab", "y.cd"], ["--data", "x.ab", "y.cd", "translate"]])
def test_data_may_be_two_files_and_it_is_told_what_was_taken(data, tmp_path, capsys, order):
    sides = [line.split("\t") for line in (data / "pairs.tsv").read_text().splitlines()]
    for name, texts in zip(("x.ab", "y.cd"), zip(*sides, strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(texts))
    words = [str(tmp_path / word) if word[-3:] in (".ab", ".cd") else word for word in order]
    assert heed("train", *words, "--out", tmp_path / "run", *SMALL, "--verbose") == 0
    told = capsys.readouterr().err
    assert f"{tmp_path / 'x.ab'} + {tmp_path / 'y.cd'}: line by line" in told
    assert "125 pairs" in told
    assert "only 121 pairs to train on" in told
    recipe = (tmp_path / "run" / "recipe.yaml").read_text()
    assert f"path:\n  - {tmp_path / 'x.ab'}\n  - {tmp_path / 'y.cd'}" in recipe
    again = tmp_path / "again.yaml"
    again.write_text(recipe)
    assert heed("train", again, "--out", tmp_path / "again", *SMALL) == 0


def test_train_ends_with_one_line_of_json(data, tmp_path, capsys):
    words = ["train", "translate", "--data", data / "pairs.tsv", "--out", tmp_path / "run", *SMALL, "--json"]
    assert heed(*words) == 0
    (line,) = lines(capsys)
    assert json.loads(line)["steps"] == 2
    manifest = json.loads((tmp_path / "run" / "checkpoints" / "step-2" / "manifest.json").read_text())
    assert manifest["step"] == 2
    assert heed("train", "--resume", "--out", tmp_path / "run", "--set", "train.steps=3", "--json") == 0
    assert json.loads(lines(capsys)[-1])["steps"] == 3


@pytest.mark.parametrize("name", ["1e4", "\U0001f600.tsv"])
def test_data_of_any_name_is_found_again(data, tmp_path, monkeypatch, name):
    """A number that is none, and what JSON writes as two halves."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(data / "pairs.tsv", name)
    for steps in (1, 2):
        assert heed("train", "translate", "--data", name, "--out", "run", *SMALL, "--set", f"train.steps={steps}") == 0


def test_resume_continues_what_is_asked_for(run, data, tmp_path, capsys):
    """And not whatever is there."""
    out = tmp_path / "run"
    shutil.copytree(run, out)
    assert heed("train", "tag", "--resume", "--out", out) == 2
    assert "this run was begun with task = 'translate', not 'tag'" in capsys.readouterr().err
    file = tmp_path / "mine.yaml"
    said = yaml.safe_load((out / "recipe.yaml").read_text())
    said["train"]["steps"] += 1
    del said["data"]["path"]
    file.write_text(yaml.safe_dump(said))
    assert heed("train", file, "--resume", "--out", out, "--json") == 0
    assert json.loads(lines(capsys)[-1])["steps"] == said["train"]["steps"]
    for key, value in (("lr", 0.5), ("eval_sentences", 3)):  # the best model was chosen by as many as before
        other = {**said, "train": {**said["train"], key: value}}
        file.write_text(yaml.safe_dump(other))
        assert heed("train", file, "--resume", "--out", out) == 2
        assert f"this run was begun with train.{key} = " in capsys.readouterr().err


def test_a_key_of_another_task_is_refused_before_anything_is_read(tmp_path, capsys):
    assert heed("train", "tag", "--data", "none.tsv", "--out", tmp_path / "run", "--set", "data.objective=infill") == 2
    told = capsys.readouterr().err
    assert told == "error: --set.data: unknown key 'objective'\nfix: known: path, tokenizer, vocab_size\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "option"), [("tag", ["--source", "en"]), ("tag", ["--mix", "a.tsv:0.2"]), ("denoise", ["--method", "ppo"])]
)
def test_an_option_of_another_task_is_refused_before_anything_is_read(tmp_path, capsys, task, option):
    assert heed("train", task, "--data", "none.tsv", "--out", tmp_path / "run", *option) == 2
    told = capsys.readouterr().err
    assert told == f"error: heed train: {option[0]} is not used by {task}\nfix: leave it out\n"
    assert not (tmp_path / "run").exists()


def test_translate_prints_an_object_a_line(run, data, capsys):
    texts = [line.split("\t")[0] for line in (data / "pairs.tsv").read_text().splitlines()[:2]]
    assert heed("translate", run, *texts, "--beam", 3, "--n-best", 2, "--json") == 0
    records = [json.loads(line) for line in lines(capsys)]
    assert [record["source"] for record in records] == texts
    for record in records:
        assert set(record) == {"source", "text", "score", "hypotheses", "confidence", "words", "calibrated"}
        assert len(record["hypotheses"]) == 2
        assert record["hypotheses"][0].items() <= record.items()


def test_translate_reads_standard_input(run, capsys):
    with standard_input("ba de\n\nko lu\r\nlu \u00e9"):
        assert heed("translate", run, "--beam", 1, "--longest", 4) == 0
    said = capsys.readouterr().out.split("\n")
    assert len(said) == 5
    assert said[1] == ""


def test_eval_of_files_and_of_data(run, data, capsys):
    files = ["--source", data / "test.en", "--target", data / "test.fr"]
    assert heed("eval", run, *files, "--beam", 2, "--json") == 0
    found = json.loads(lines(capsys)[-1])
    assert {"bleu", "chrf", "signature"} <= set(found)
    assert heed("eval", run, "--data", data / "pairs.tsv", "--bootstrap", 10, "--json") == 0
    assert "bleu_margin" in json.loads(lines(capsys)[-1])


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.html"])
def test_look_draws(run, tmp_path, name):
    assert heed("look", run, "ba de gi", "--out", tmp_path / name) == 0
    assert (tmp_path / name).stat().st_size > 2000


def test_check_says_what_each_law_is_for_and_ends_with_a_verdict(run, capsys, monkeypatch):
    assert heed("check", run) == 0
    *shown, verdict = lines(capsys)
    held = [line for line in shown if line.startswith("ok ")]
    assert verdict == f"all {len(held)} laws hold"
    assert sum(line.startswith("        otherwise ") for line in shown) == len(held)
    monkeypatch.setattr("heedful.verbs.check._saved_and_loaded", lambda *words: 1.0)
    assert heed("check", run) == 1
    assert lines(capsys)[-1] == f"1 of {len(held)} laws broken: save then load"


def test_one_checkpoint_is_told_as_one(run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "run")
    for step in sorted((tmp_path / "run" / "checkpoints").iterdir())[1:]:
        shutil.rmtree(step)
    assert heed("check", tmp_path / "run") == 0
    assert "1 checkpoint verifies (damaged files)" in capsys.readouterr().out


def test_check_and_info(run, capsys):
    assert heed("check", run, "--json") == 0
    assert json.loads(lines(capsys)[-1])["broken"] == 0
    for words in ([run], ["transformer-base"], []):
        assert heed("info", *words, "--json") == 0
        assert json.loads(lines(capsys)[-1])


@pytest.mark.parametrize(
    ("words", "code", "error", "fix"),
    [
        (["translate", "nowhere", "hello"], 3, "error: nowhere: no such folder", "fix: "),
        (["train", "translate", "--out", "never"], 2, "error: no data was given", "fix: --data PATH"),
        (["train", "translate", "--data", "{bad}", "--out", "never"], 2, "bad.tsv:3: 1 column", "fix: "),
        (["train", "tranlate"], 2, "unknown task 'tranlate'", "fix: did you mean 'translate'?"),
        (["train", "{run}"], 2, "a run, and no task", "fix: to continue it: heed train --resume --out {run}"),
        (["translate", "{run}x", "hello"], 3, "no such folder", "fix: did you mean {run}?"),
        (["info", "{run}x"], 3, "no such folder", "fix: did you mean {run}?"),
        (["draw", "{run}x", "--out", "x.svg"], 3, "no such folder", "fix: did you mean {run}?"),
        (["train", "translate", "--set", "train.stepz=1"], 2, "unknown key 'stepz'", "fix: did you mean 'steps'?"),
        (["eval", "{run}"], 2, "error: nothing to score", "fix: give --source"),
        (["eval", "{run}", "--source", "{data}/test.en", "--target", "nowhere"], 3, "nowhere", "fix: "),
        (["look", "{run}", "ba", "--out", "x.gif"], 2, "x.gif: .gif is not a picture", "fix: --out x.png"),
        (["look", "{run}", "ba", "--layer", "encoder.9"], 2, "no attention layer matches 'encoder.9'", "fix: "),
        (["look", "{run}", "ba", "--head", "7", "--out", "x.png"], 2, "has 2 heads, no head 7", "fix: "),
        (["info", "transformer-bse"], 2, "unknown key 'transformer-bse'", "fix: did you mean 'transformer-base'?"),
        (["translate", "{run}", "ba", "--samples", "2", "--top-p", "0"], 2, "top-p 0.0 is not in", "fix: "),
        (["train", "--data", "{bad}", "--out", "never", "--device", "gpu"], 2, "no device 'gpu'", "fix: choose auto"),
        (["look", "{run}", "ba", "--device", "cuda:99"], 2, "is here", "fix: take --device"),
        (["check", "{run}", "--device", "gpu"], 2, "no device 'gpu'", "fix: choose auto"),
        (["export", "{run}", "--out", "never", "--device", "cuda"], 2, "heed export is for a CPU", "fix: leave it out"),
        (["translate", "a long sentence " * 30], 4, "File name too long", "fix: check the path"),
        (["info", "a long sentence " * 30], 4, "File name too long", "fix: check the path"),
        (["translate", ".", "ba"], 3, ".: no model has been saved here yet", "fix: train it first"),
        (["data", "check", "none.tsv", "--picture", "none/x.png"], 3, "none: no such folder", "fix: make it first"),
        (["data", "check", "none.tsv", "--out", "none/x.tsv"], 3, "none: no such folder", "fix: make it first"),
        (["data", "check", "none.tsv", "--out", "x.csv"], 2, "x.csv: the cleaned data is a .tsv file", "fix: --out"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(run, data, tmp_path, monkeypatch, capsys, words, code, error, fix):
    bad = tmp_path / "bad.tsv"
    bad.write_text("ba\tBA\nde\tDE\ngi\n")
    monkeypatch.chdir(tmp_path)
    words = [word.format(run=run, data=data, bad=bad) for word in words]
    assert heed(*words) == code
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error: ", "fix: "))]
    assert len(said) == 2
    assert error in said[0]
    assert said[1].startswith(fix.format(run=run))
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("sign", ["\x1b[31m", "\x07", "\r", "\x9b2J", "\x7f"])
def test_control_characters_of_a_name_do_not_reach_the_terminal(run, data, tmp_path, capsys, sign):
    """Of a folder, a file, a key or an option: they are escaped."""
    name, escaped = f"re{sign}d", f"re{sign.encode('unicode_escape').decode()}d"
    copy = shutil.copytree(run, tmp_path / name)
    pairs = shutil.copy(data / "pairs.tsv", tmp_path / f"{name}.tsv")
    for words in (
        ("info", tmp_path / f"{name} gone"),
        ("translate", tmp_path / f"{name} gone", "ba"),
        ("train", "translate", "--data", tmp_path / f"{name} gone.tsv"),
        ("train", name),
        ("train", "--set", f"train.{name}=1"),
        ("train", "translate", "--data", pairs, "--out", tmp_path / f"{name} out", *SMALL),
        ("data", "check", pairs),
        ("info", copy),
        ("eval", copy, "--data", pairs),
        ("serve", copy, "--check"),
    ):
        heed(*words)
        told = "".join(capsys.readouterr())
        assert (sign in told, escaped in told) == (False, words != ("info", copy)), words


def test_a_decoder_alone_by_the_same_commands(data, tmp_path, capsys):
    """And with documents for sources: they are cut, and whoever asks is told."""
    out = tmp_path / "run"
    settings = ["n_layers=1", "d_model=16", "n_heads=2", "d_ff=32"]
    words = ["--preset", "decoder-tiny", "--data", data / "pairs.tsv", "--out", out]
    words += [f"--set=model.{setting}" for setting in settings]
    words += ["--set=data.vocab_size=300", "--set=data.longest=10", "--set=data.cut=true", "--set=decode.longest=4"]
    assert heed("train", "translate", *words, "--set=train.steps=2", "--json") == 0
    assert heed("train", "--resume", "--out", out, "--set", "train.steps=3", "--json") == 0
    assert json.loads(lines(capsys)[-1])["steps"] == 3
    assert heed("translate", out, "ba de gi " * 9, "ko", "--json") == 0
    said = capsys.readouterr()
    what = r"a sentence longer than all that the model was trained on is translated in (\d+) parts"
    told = re.match(f"warning: text 1: {what}", said.err)
    assert told is not None
    long, short = (len(json.loads(line)["text"].split()) for line in said.out.splitlines())
    assert (long <= 4 * int(told[1]), short <= 4) == (True, True)
    (tmp_path / "long.en").write_text("ba de gi " * 9 + "\nko\n")
    (tmp_path / "long.fr").write_text("GI\nKO\n")
    assert heed("eval", out, "--source", tmp_path / "long.en", "--target", tmp_path / "long.fr") == 0
    assert "sources longer than all that was learnt from, translated in parts: 1" in capsys.readouterr().err
    assert heed("look", out, "ba de", "--out", tmp_path / "look.html") == 0
    assert heed("check", out, "--json") == 0
    assert json.loads(lines(capsys)[-1])["broken"] == 0
    assert heed("info", out, "--json") == 0
    assert json.loads(lines(capsys)[-1])["model"] == "DecoderOnlyTranslator"


@pytest.fixture(scope="module")
def text(data):
    (data / "book.txt").write_text("".join(f"{a} {b} {c}.\n" for a in WORDS for b in WORDS for c in WORDS))
    small = [
        "--set=model.d_model=16",
        "--set=model.n_layers=1",
        "--set=model.context_length=32",
        "--set=data.tokenizer=chars",
    ]
    words = ["train", "generate", "--data", data / "book.txt", "--out", data / "text", *small, "--set=train.steps=2"]
    assert heed(*words) == 0
    return data / "text"


@pytest.mark.parametrize(
    "options", [[], ["--temperature", 0, "--stop", "o"], ["--weights", "int8", "--seed", 4], ["--draft", "int8"]]
)
def test_a_text_is_shown_as_it_is_made(text, capsys, options):
    """The same text, whichever way it is printed."""
    words = ["generate", text, "ba de", "--tokens", 9, *options]
    shown = {}
    for how in ("--stream", "--no-stream"):
        assert heed(*words, how) == 0
        shown[how] = capsys.readouterr().out
    assert shown["--stream"] == shown["--no-stream"]
    assert shown["--stream"].startswith("ba de")
    for several in (["--json"], ["ko"], ["--samples", 2]):
        assert heed(*words, *several, "--stream") == 2
        assert "cannot be shown as they are made" in capsys.readouterr().err
    assert heed("generate", text, "ba", "--weights", "int2") == 2
    assert "no weights 'int2'" in capsys.readouterr().err


def test_a_language_model_for_machines(text, data, capsys):
    assert heed("generate", text, "ba de", "--tokens", 7, "--temperature", 0, "--json") == 0
    (line,) = lines(capsys)
    made = json.loads(line)
    assert made.keys() == {"prompt", "text", "tokens", "logprobs"}
    assert made["prompt"] == "ba de"
    assert not made["text"].startswith("ba de")
    assert len(made["tokens"]) == len(made["logprobs"]) <= 7
    assert heed("score", text, "ba de", "ko", "--json") == 0
    rows = [json.loads(line) for line in lines(capsys)]
    assert [row["text"] for row in rows] == ["ba de", "ko"]
    assert rows[0].keys() == {"text", "logprob", "tokens"}
    assert heed("eval", text, "--data", data / "book.txt", "--json") == 0
    assert {"loss", "perplexity", "bits_per_byte"} <= json.loads(lines(capsys)[-1]).keys()
    assert heed("check", text, "--json") == 0
    assert json.loads(lines(capsys)[-1])["broken"] == 0
    for words in ([text], ["gpt2"]):
        assert heed("info", *words, "--json") == 0
        assert json.loads(lines(capsys)[-1])
    assert heed("train", "--resume", "--out", text, "--set", "train.steps=3", "--json") == 0
    assert json.loads(lines(capsys)[-1])["steps"] == 3
    assert heed("translate", text, "ba") == 2
    assert "not for translation" in capsys.readouterr().err


def test_a_denoiser_for_machines(text, data, tmp_path, capsys):
    book, start = data / "book.txt", tmp_path / "noise"
    words = ["train", "denoise", "--data", book, "--out", start, *SMALL, "--set", "data.objective=infill", "--json"]
    assert heed(*words) == 0
    assert json.loads(lines(capsys)[-1])["scores"]["valid"].keys() == {"loss", "perplexity"}
    assert heed("eval", start, "--data", book, "--json") == 0
    assert json.loads(lines(capsys)[-1]).keys() == {"loss", "perplexity", "tokens"}
    assert heed("eval", start) == 2
    assert "or --data PATH" in capsys.readouterr().err
    assert heed("eval", start, "--data", book, "--shots", 2) == 2
    assert "--shots is not used by this model" in capsys.readouterr().err
    assert heed("translate", start, "ba <mask> gi.", "--json") == 0
    assert json.loads(lines(capsys)[-1])["source"] == "ba <mask> gi."
    for verb in ("check", "info"):
        assert heed(verb, start, "--json") == 0
    words = ["train", "translate", "--data", data / "pairs.tsv", "--from", start, "--out", tmp_path / "tuned"]
    assert heed(*words, "--set=train.steps=1", "--set=model.dropout=0.25", "--json") == 0
    assert json.loads(lines(capsys)[-1])["steps"] == 1
    assert json.loads((tmp_path / "tuned/config.json").read_text())["model"]["decoder"]["block"]["dropout"] == 0.25
    assert heed(*words[:-1], tmp_path / "never", "--set", "model.d_model=8") == 2
    assert "model.d_model cannot be chosen: the model is that of" in capsys.readouterr().err
    assert heed("train", "denoise", "--data", book, "--out", tmp_path / "never", "--set", "data.objective=span") == 2
    assert "data.objective = 'span'" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


@pytest.fixture(scope="module")
def filler(data):
    rows = [json.dumps({"text": f"{a} {b} {c} ."}) + "\n" for a in WORDS for b in WORDS for c in WORDS]
    (data / "rows.jsonl").write_text("".join(rows))
    size = {
        "model.d_model": 16,
        "model.n_heads": 2,
        "model.n_layers": 1,
        "model.context_length": 32,
        "data.vocab_size": 300,
    }
    small = [f"--set={key}={value}" for key, value in size.items()]
    words = ["train", "fill", "--data", data / "rows.jsonl", "--out", data / "fill", *small, "--set=train.steps=2"]
    assert heed(*words) == 0
    return data / "fill"


def test_filling_masks_for_machines(filler, data, capsys):
    assert heed("fill", filler, "ba <mask> gi .", "<mask> de <mask> .", "--top", 3, "--json") == 0
    rows = [json.loads(line) for line in lines(capsys)]
    assert [(row["text"], row["mask"]) for row in rows] == [
        ("ba <mask> gi .", 0),
        ("<mask> de <mask> .", 0),
        ("<mask> de <mask> .", 1),
    ]
    for row in rows:
        assert row.keys() == {"text", "mask", "candidates"}
        assert len(row["candidates"]) == 3
        assert all(each.keys() == {"token", "score"} and 0 < each["score"] < 1 for each in row["candidates"])
    assert heed("fill", filler, "ba <mask> gi .") == 0
    (line,) = lines(capsys)
    assert line.startswith("ba <mask> gi .\t")
    assert heed("eval", filler, "--data", data / "rows.jsonl", "--json") == 0
    assert json.loads(lines(capsys)[-1]).keys() == {"loss", "perplexity", "accuracy", "tokens"}
    assert heed("check", filler, "--json") == 0
    assert json.loads(lines(capsys)[-1])["broken"] == 0
    for words in ([filler], ["bert-base"], []):
        assert heed("info", *words, "--json") == 0
        assert json.loads(lines(capsys)[-1])
    assert heed("train", "--resume", "--out", filler, "--set", "train.steps=3", "--json") == 0
    assert json.loads(lines(capsys)[-1])["scores"]["valid"].keys() == {"loss", "perplexity", "accuracy"}
    for words, error in (
        (["fill", filler, "ba"], "no <mask> in 'ba'"),
        (["generate", filler, "ba"], "a model for 'fill'"),
        (["eval", filler], "nothing to score"),
    ):
        assert heed(*words) == 2
        assert error in capsys.readouterr().err


def test_a_blank_that_was_looked_at_has_a_name(filler, tmp_path, capsys):
    assert heed("look", filler, "ba 7 8 9", "--out", tmp_path / "look.html") == 0
    assert "␣ 0." in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["train", "eval", "translate", "look", "info", "check", "generate", "score", "fill"])
def test_the_example_of_every_help_runs(run, text, filler, data, tmp_path, monkeypatch, capsys, verb):
    assert heed(verb, "--help") == 0
    example = re.search(r"Example: heed (.+?)\n\n", capsys.readouterr().out, re.DOTALL)
    assert example is not None
    words = shlex.split(" ".join(example[1].split()))
    places = {"runs/demo": run, "runs/text": text, "runs/fill": filler} | {
        name: data / name for name in ("pairs.tsv", "test.en", "test.fr")
    }
    words = [str(places.get(word, word)) for word in words if not word.startswith("train.minutes")]
    if verb == "train":
        words = [*words[:-1], *SMALL]  # --set without its minutes
    monkeypatch.chdir(tmp_path)
    assert heed(*words) == 0


def test_a_device_can_be_chosen_wherever_something_is_computed():
    without = [name for name, each in cli.heed.commands.items() if "device" not in {own.name for own in each.params}]
    assert without == ["vectors", "data", "plan", "restore", "draw", "info", "lecture", "import"]


def test_a_cpu_can_be_chosen(run, data, tmp_path, monkeypatch):
    """Where it is not the best device."""
    monkeypatch.setattr("heedful.run.device.best_device", lambda: pytest.fail("the best device was not asked for"))
    words = ["train", "translate", "--data", data / "pairs.tsv", "--out", tmp_path / "run", *SMALL]
    for verb in (
        words,
        ["look", run, "ba", "--out", tmp_path / "x.svg"],
        ["check", run],
        ["eval", run, "--data", data / "pairs.tsv"],
    ):
        assert heed(*verb, "--device", "cpu") == 0


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["info"], ["info", "--json"]], ids=" ".join)
def test_what_only_tells_does_not_wait_for_torch(words):
    code = """
import sys
from heedful.cli import main
try:
    main()
except SystemExit as left:
    assert not left.code
sys.exit("torch" in sys.modules or "matplotlib" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "translate" in found.stdout


UNUSED = "matplotlib scipy pycocotools ctranslate2 sacrebleu babel num2words torch._dynamo torch._inductor transformers"


def test_a_verb_loads_only_what_it_uses(run):
    """Each of these takes from a tenth of a second to a second to load."""
    code = f"""
import sys
from heedful.cli import main
for words in (["info", {str(run)!r}], ["translate", {str(run)!r}, "ba de"]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as left:
        assert left.code == 0
    loaded = [name for name in {UNUSED.split()} if name in sys.modules]
    if loaded:
        sys.exit(f"{{words[0]}} loaded {{loaded}}")
"""
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_an_interrupt_before_a_command_begins_is_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(heedful.__file__).parent.parent}"}
    words = [sys.executable, "-m", "heedful", "info"]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")
