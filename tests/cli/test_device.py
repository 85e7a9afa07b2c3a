"""`--device`: which verbs have it, what it refuses, and what a full device says."""

import json
import sys

import pytest
import torch

from commands import heed
from heedful import cli
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.translate.use import Translator


@pytest.fixture
def gpu(monkeypatch):
    """A machine that says it has CUDA."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of `load`, which then finds that the device is full."""
    found = []

    def load(cls, run, *, device="cpu", weights="float32", draft="none"):
        found.append(device)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    for served in (LanguageModel, Translator):
        monkeypatch.setattr(served, "load", classmethod(load))
    return found


def test_every_verb_that_uses_a_model_has_it():
    commands = cli.heed.commands
    options = {name: {option.name for option in command.params} for name, command in commands.items()}
    without = {name for name, own in options.items() if "run" in own and "device" not in own}
    assert without == {"restore", "vectors"}  # which read and write files, and look words up
    assert sum("device" in own for own in options.values()) > 15


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("words", "device"),
    [
        (["generate"], "cuda"),
        (["generate", "--draft", "none"], "cuda"),
        (["generate", "--device", "cuda:0"], "cuda:0"),
        (["generate", "--device", "cpu"], "cpu"),
        (["generate", "--weights", "int8"], "cpu"),
        (["generate", "--draft", "int4"], "cpu"),
        (["score"], "cuda"),
        (["translate"], "cuda"),
        (["summarise", "--device", "cpu"], "cpu"),
        (["translate", "--processes", "1"], "cuda"),
        (["translate", "--processes", "2"], "cpu"),
    ],
)
def test_where_a_model_goes(asked, capsys, words, device):
    verb, *options = words
    assert heed(verb, "runs/x", "a", *options) == 1
    assert asked == [device]
    assert capsys.readouterr().err.splitlines() == [
        "error: the device has too little memory",
        "fix: take --device cpu, or a smaller --batch",
    ]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["generate", "--weights", "int4"], "--weights int4"),
        (["generate", "--draft", "int8"], "--draft int8"),
        (["translate", "--processes", "2"], "--processes 2"),
        (["translate", "--engine", "ctranslate2"], "--engine ctranslate2"),
        (["eval", "--engine", "ctranslate2"], "--engine ctranslate2"),
    ],
)
def test_what_a_cpu_alone_can_do_is_refused(capsys, words, says):
    verb, *options = words
    assert heed(verb, "runs/x", *options, "--device", "cuda") == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {says} is for a CPU",
        "fix: leave it out, or take --device cpu",
    ]


def test_a_device_that_is_not_here_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert heed("generate", "runs/x", "--device", "cuda") == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: --device: no CUDA device is here",
        "fix: take --device cpu",
    ]


def test_debug_shows_where_memory_ended(asked):
    sys.argv = ["heed", "generate", "runs/x", "--device", "cpu", "--debug"]
    with pytest.raises(torch.OutOfMemoryError):
        cli.main()


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_a_machine_without_memory_is_one_line(monkeypatch, capsys, error):
    def load(cls, run, **options):
        raise error

    monkeypatch.setattr(LanguageModel, "load", classmethod(load))
    assert heed("generate", "runs/x", "a", "--device", "cpu") == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: the machine has too little memory",
        "fix: take shorter inputs, or a smaller --batch",
    ]


def test_training_names_its_own_batches(monkeypatch, capsys, tmp_path):
    def train(*words, **options):
        raise torch.OutOfMemoryError

    monkeypatch.setattr("heedful.verbs.train.train", train)
    assert heed("train", "generate", "--data", json.dumps("x"), "--out", tmp_path) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "fix: take a smaller train.tokens or images.batch"
