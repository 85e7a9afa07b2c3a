"""Classes of sounds: they are learnt, from nothing and from a model of speech; files of any length; bad tables."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import soundfile

import heedful
from cases import CASES, SOUNDS, SPOKEN, labelled_sounds, recipe_of
from commands import heed
from heedful.data.sound.files import RATE, read_sound
from heedful.data.sound.utterances import read_labelled_sounds
from heedful.errors import HeedError, InputError, TooMuchError
from heedful.metrics.labels import by_luck
from heedful.run.recipe import override
from heedful.tasks.classify_sounds import use
from heedful.tasks.classify_sounds.train import ClassifySoundsJob
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.train import train
from made import finished, goes_on_alike
from sounds import tones


def made_sounds(folder: Path, count: int, name: str) -> None:
    """Noises, tones that rise, and tones that fall, each of another length, height and loudness."""
    draw, noise = random.Random(name), numpy.random.default_rng(len(name))
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    lines = ["file,label"]
    for number in range(count):
        kind = ("noise", "rising", "falling")[number % 3]
        time = numpy.linspace(0, 1, draw.randint(RATE // 4, RATE))
        way = {"rising": time, "falling": 1 - time}.get(kind, time)
        tone = numpy.sin(2000 * draw.uniform(0.5, 1.5) * (1 + 2 * way) ** 2)
        sound = noise.standard_normal(len(time)) if kind == "noise" else tone
        soundfile.write(folder / "sounds" / f"{name}{number}.wav", draw.uniform(0.02, 0.3) * sound, RATE)
        lines.append(f"{name}{number}.wav,{kind}")
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_made_sounds_are_told_apart(tmp_path: Path) -> None:
    for name, count in (("train", 90), ("valid", 12), ("test", 30)):
        made_sounds(tmp_path / "data", count, name)
    plan = {"steps": 80, "eval_every": 80, "warmup": 10, "average": 0.9, "precision": "fp32"}
    model = {"d_model": 32, "n_heads": 2, "encoder_layers": 1, "mels": 40}
    recipe = build({"task": "classify-sounds", "model": model, "train": plan}, where="test")
    done = finished(train(recipe, tmp_path / "run", corpus=read_labelled_sounds(tmp_path / "data")))
    assert done.scores["test"]["accuracy"] > max(0.7, by_luck(30, 1 / 3))
    assert heedful.load(tmp_path / "run").evaluate(str(tmp_path / "data"))["test"] == pytest.approx(done.scores["test"])


def test_files_alone_and_together(run_of, capsys):
    model = heedful.load(run_of("sounds"))
    together = model.classify(SOUNDS)
    assert [model.classify(file) for file in SOUNDS] == [
        [(label, pytest.approx(score, abs=1e-6)) for label, score in own] for own in together
    ]
    assert heed("classify", run_of("sounds"), SOUNDS[0], "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["label"], row["score"]) for row in found["labels"]] == model.classify(SOUNDS[0])
    assert heed("classify", run_of("sounds"), SOUNDS[0], "--pair", "a") == 2
    assert "is not used by a model of sounds" in capsys.readouterr().err


def test_a_long_file_has_the_mean_of_its_windows(run_of, tmp_path):
    model = heedful.load(run_of("sounds"))
    window = model.spec.hearing.samples
    rising, quiet = numpy.sin(numpy.linspace(0, 900, window) ** 1.2) / 4, numpy.zeros(window)
    for name, sound in (("one", rising), ("two", quiet), ("both", numpy.concatenate([rising, quiet]))):
        soundfile.write(tmp_path / f"{name}.wav", sound, RATE)
    one, two, both = (dict(model.classify(tmp_path / f"{name}.wav")) for name in ("one", "two", "both"))
    assert both == {label: pytest.approx((one[label] + two[label]) / 2, abs=1e-5) for label in both}


def test_no_sound_is_read_after_the_budget_is_spent(run_of, monkeypatch):
    class Spent:
        at_once = None

        def spend(self, tokens, at_once):
            raise TooMuchError(f"{tokens} tokens")

    heard = []
    monkeypatch.setattr(use, "read_sound", lambda file: heard.append(file) or read_sound(file))
    model = heedful.load(run_of("sounds")).changed(budget=Spent())
    with pytest.raises(TooMuchError):
        model.classify(SOUNDS[:2])
    assert heard == SOUNDS[:1]


@pytest.mark.parametrize("begun", ["sounds", "transcribe", "ctc"])
def test_it_begins_with_another_model(begun, run_of, tmp_path):
    """A classifier keeps its heads, a model of speech gives its encoder."""
    recipe = override(recipe_of(CASES["sounds"], {}, {"steps": 1}), {"start_from": str(run_of(begun)), "preset": ""})
    job = ClassifySoundsJob(recipe, labelled_sounds())
    assert job.answers.hearing == heedful.load(run_of(begun)).spec.hearing
    assert bool(job.new_heads()) == (begun != "sounds")
    out = finished(train(recipe, tmp_path / "run", corpus=labelled_sounds()))
    assert out.scores["test"].keys() >= {"loss", "accuracy"}
    assert [law.name for law in check(tmp_path / "run") if not law.holds] == []


def test_it_goes_on_as_if_it_had_not_stopped(tmp_path):
    recipe = recipe_of(CASES["sounds"], CASES["sounds"].model, {"steps": 5, "eval_every": 2, "save_every": 2})
    goes_on_alike(override(recipe, ["train.precision=fp32"]), labelled_sounds(), tmp_path, after=3)


def test_what_is_wrong_is_said(tmp_path):
    soundfile.write(tmp_path / "a.wav", tones("abc"), RATE)
    for lines, told in (
        ("audio,text\na.wav,abc\n", "expected audio .* and label"),
        ("audio,label\na.wav,\n", "no label"),
        ("audio,label\nb.wav,x\n", "there is no sound 'b.wav'"),
    ):
        (tmp_path / "train.csv").write_text(lines)
        with pytest.raises(HeedError, match=told):
            read_labelled_sounds(tmp_path / "train.csv")
    recipe = recipe_of(CASES["sounds"], CASES["sounds"].model, {"steps": 1})
    with pytest.raises(InputError, match="one label alone: 'abc'"):
        ClassifySoundsJob(recipe, replace(SPOKEN, train=[row._replace(text="abc") for row in SPOKEN.train]))
