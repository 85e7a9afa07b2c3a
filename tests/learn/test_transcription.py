"""Speech to text learns to write down words: of tones, and, where espeak-ng is installed, of voices."""

import random
from pathlib import Path
from shutil import which

import pytest

import heedful
from benchmarks.spoken import main as speak
from heedful.data.sound.utterances import read_utterances
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished
from sounds import LETTERS, texts, utterances


def learnt(folder: Path, out: Path, preset: str, **more: object):
    recipe = build(
        {
            "task": "transcribe",
            "preset": preset,
            "sound": {"batch": 32},
            "train": {"warmup": 20, "average": 0.95, "precision": "fp32", **more},
        },
        where="test",
    )
    return finished(train(recipe, out, corpus=read_utterances(folder))).scores


def test_tones_are_written_down(tmp_path: Path) -> None:
    """A letter for each tone: all wrong by luck."""
    said = texts(200, words=(1,))
    random.Random(1).shuffle(said)
    for name, part in (("train", said[:160]), ("valid", said[160:180]), ("test", said[180:])):
        utterances(tmp_path / "data", part, name=f"{name}.csv")
    scores = learnt(tmp_path / "data", tmp_path / "run", "ctc-nano", steps=150, eval_every=150)
    assert scores["test"]["cer"] <= 0.25 < 1 - 1 / len(LETTERS)


@pytest.mark.full
@pytest.mark.skipif(which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_voices_are_understood(tmp_path: Path) -> None:
    speak(tmp_path / "data", {"train": 1500, "valid": 50, "test": 100, "test_voices": 100})
    scores = learnt(tmp_path / "data", tmp_path / "run", "ctc-nano", steps=800, eval_every=400)
    assert scores["test"]["wer"] <= 0.15
    assert heedful.load(tmp_path / "run").transcribe(tmp_path / "data" / "test" / "0.wav").text
