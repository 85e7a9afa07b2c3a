"""Speech to text from its sounds to what it writes, with times; long sounds in windows; two kinds of model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import soundfile
import torch

import heedful
from cases import CASES, SOUNDS, SPOKEN, recipe_of
from commands import heed
from heedful.data.sound.files import RATE
from heedful.data.sound.subtitles import Segment, subtitles
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError, TooMuchError
from heedful.metrics.speech import as_heard, error_rates
from heedful.models import CTC, make_model
from heedful.models.speech_presets import SPEECH, speech_config
from heedful.run.recipe import override
from heedful.tasks.transcribe.losses import speech_loss
from heedful.tasks.transcribe.train import TranscribeJob
from heedful.tasks.transcribe.use import said_by_positions
from heedful.verbs.train import train
from made import goes_on_alike
from sounds import tones

KINDS = ("transcribe", "ctc")


@pytest.mark.parametrize("name", KINDS)
def test_a_run_hears_files_alone_and_together(run_of, name, tmp_path, capsys):
    run = run_of(name)
    model = heedful.load(run)
    together = model.transcribe(SOUNDS)
    assert [model.transcribe(file) for file in SOUNDS] == together
    record = {"input": SOUNDS[0], "text": together[0].text, "seconds": together[0].seconds}
    record["segments"] = [segment._asdict() for segment in together[0].segments]
    assert model.ask("transcribe", SOUNDS[0]) == [record]
    assert heed("transcribe", run, *SOUNDS, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == record
    scores, heard = model.measure(SPOKEN.tests["test"])
    assert heard == [one.text for one in together]
    expected = json.loads((run.parent / f"{name}.json").read_text())[1]["test"]
    assert scores == pytest.approx(expected, abs=1e-5)
    assert model.evaluate(str(Path(SOUNDS[0]).parents[1]))["test"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_a_long_sound_is_its_parts_with_their_times(run_of, name, tmp_path, capsys):
    model = heedful.load(run_of(name))
    parts = [tones(text) for text in ("abc", "ff", "deed")]
    pause = numpy.zeros(2 * RATE, numpy.float32)
    soundfile.write(tmp_path / "long.wav", numpy.concatenate([x for part in parts for x in (pause, part)]), RATE)
    found = model.transcribe(tmp_path / "long.wav")
    assert [segment.start for segment in found.segments] == pytest.approx([2.02, 4.36, 6.6], abs=0.05)
    assert [segment.end for segment in found.segments] == pytest.approx([2.32, 4.56, 7.0], abs=0.05)
    assert found.text == " ".join(one.text for one in found.segments if one.text)
    for kind in ("srt", "vtt"):
        out = tmp_path / f"long.{kind}"
        assert heed("transcribe", run_of(name), tmp_path / "long.wav", "--out", out) == 0
        assert out.read_text() == subtitles(found.segments, f".{kind}")
    capsys.readouterr()
    assert heed("transcribe", run_of(name), tmp_path / "long.wav", "--times") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0][:9] for line in lines] == ["00:00:02.", "00:00:04.", "00:00:06."]


def test_silence_says_nothing_and_costs_nothing(run_of, tmp_path):
    model = heedful.load(run_of("transcribe"))

    class Poor:
        at_once = None

        def spend(self, tokens: int, at_once: int) -> None:
            if tokens > 1000:
                raise TooMuchError("too much")

    model = model.changed(budget=Poor())
    soundfile.write(tmp_path / "quiet.flac", numpy.zeros(600 * RATE, numpy.int16), RATE)
    assert model.transcribe(tmp_path / "quiet.flac").segments == ()
    loud = numpy.random.default_rng(0).uniform(-0.1, 0.1, 300 * RATE)
    soundfile.write(tmp_path / "loud.flac", loud, RATE)
    with pytest.raises(TooMuchError):
        model.transcribe(tmp_path / "loud.flac")


def test_subtitles():
    segments = [Segment(0.5, 1.25, "one"), Segment(2, 3, ""), Segment(3599.9996, 3725.5, "two")]
    assert subtitles(segments, ".srt") == (
        "1\n00:00:00,500 --> 00:00:01,250\none\n\n2\n01:00:00,000 --> 01:02:05,500\ntwo\n"
    )
    assert subtitles(segments[:1], ".vtt") == "WEBVTT\n\n1\n00:00:00.500 --> 00:00:01.250\none\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--out", "x.txt"], "subtitles are one .srt or .vtt file"),
        (["--out", "x.srt", "b.wav"], "of one sound"),
        (["--language", "fr"], "this model has one language"),
    ],
)
def test_what_cannot_be_asked_is_said(run_of, capsys, words, told):
    assert heed("transcribe", run_of("transcribe"), SOUNDS[0], *words) == 2
    assert told in capsys.readouterr().err


def test_files_that_are_no_sound_do_not_end_the_others(run_of, tmp_path, capsys):
    (tmp_path / "bad.wav").write_bytes(b"RIFFxxxx")
    assert heed("transcribe", run_of("transcribe"), SOUNDS[0], tmp_path / "bad.wav", SOUNDS[1], "--json") == 2
    said = capsys.readouterr()
    records = [json.loads(line) for line in said.out.splitlines()]
    assert ["error" in record for record in records] == [False, True, False]
    assert "1 of 3 sounds have no answer" in said.err


@pytest.mark.parametrize("name", KINDS)
def test_it_goes_on_as_if_it_had_not_stopped(name, tmp_path):
    recipe = recipe_of(
        CASES[name], CASES[name].model | {"dropout": 0.1}, {"steps": 5, "eval_every": 2, "save_every": 2}
    )
    goes_on_alike(override(recipe, ["train.precision=fp32"]), SPOKEN, tmp_path, after=3)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_looked_at_are_moments(run_of, name):
    model = heedful.load(run_of(name))
    moments = -(-len(soundfile.read(SOUNDS[0])[0]) // 320)
    for layer, weights in model.attention(SOUNDS[0]).items():
        assert weights.weights.shape[2] == moments, layer
        assert weights.labels["key"][:3] == ["0.00s", "0.02s", "0.04s"]
        if name == "transcribe":
            assert layer == "decoder.blocks.0.cross_attention"
    assert model.look(SOUNDS[0], kind="png").facts["input"] == SOUNDS[0]


@pytest.mark.parametrize("blank", [0, 7])
def test_a_path_says_each_token_once_between_blanks(blank):
    path = [0, 5, 5, 0, 5, 7, 7, 0, 0, 9]

    class Said(CTC):
        def forward(self, sound, lengths=None):
            return torch.nn.functional.one_hot(torch.tensor([path]), 12).float()

    row = replace(SPEECH["ctc-nano"], d_model=8, n_heads=2, encoder_layers=1, mels=4)
    model = Said(replace(speech_config(row, vocab_size=12, positions=10), blank=blank))
    assert said_by_positions(model, torch.zeros(1, 4, 20)) == [[5, 5, 7, 9] if blank == 0 else [0, 5, 0, 5, 0, 9]]


def test_the_loss_of_ctc_is_that_of_all_its_paths():
    tokenizer = train_tokenizer(["ab"], kind="chars", size=300)
    row = replace(SPEECH["ctc-nano"], d_model=8, n_heads=2, encoder_layers=1, mels=4, dropout=0.0)
    model = make_model(speech_config(row, vocab_size=tokenizer.size, positions=3))
    sound, ids = torch.randn(1, 4, 6), [4, 5]
    chances = model(sound)[0].softmax(-1)
    paths = [(a, b, c) for a in (0, 4, 5) for b in (0, 4, 5) for c in (0, 4, 5)]

    def said(path):
        kept = [token for token, before in zip(path, (None, *path), strict=False) if token != before]
        return [token for token in kept if token != 0]

    whole = sum(chances[0, a] * chances[1, b] * chances[2, c] for a, b, c in paths if said((a, b, c)) == ids)
    loss = speech_loss(model, sound, [ids], tokenizer)
    torch.testing.assert_close(loss.total, -whole.log())
    assert loss.count == 3


def test_words_are_counted_in_lower_case_without_punctuation():
    assert as_heard("Don't — stop, NOW!") == "don't stop now"
    assert error_rates(["One two three.", "four"], ["one too three", "four five"]) == {
        "wer": pytest.approx(2 / 4),
        "cer": pytest.approx(6 / 17),
    }
    assert error_rates(["..."], ["a"]) == {"wer": 0.0, "cer": 0.0}


def test_a_model_is_tuned_on_other_sounds(run_of, tmp_path):
    begun = run_of("transcribe")
    recipe = override(recipe_of(CASES["transcribe"], {}, {"steps": 1}), {"start_from": str(begun), "preset": ""})
    job = TranscribeJob(recipe, SPOKEN)
    assert job.config == heedful.load(begun).model.config
    assert job.answers.hearing == heedful.load(begun).spec.hearing
    *_, done = train(recipe, tmp_path / "run", corpus=SPOKEN)
    assert done.scores["test"].keys() == {"loss", "wer", "cer"}
    with pytest.raises(InputError, match=r"sound\.seconds is that of the model"):
        TranscribeJob(override(recipe, ["sound.seconds=3"]), SPOKEN)
    with pytest.raises(InputError, match=r"sound\.language is 'en'"):
        TranscribeJob(override(recipe, ["sound.language=en"]), SPOKEN)


def test_what_does_not_fit_a_window_is_left_out_and_said(tmp_path):
    recipe = override(recipe_of(CASES["transcribe"], CASES["transcribe"].model, {"steps": 1}), ["sound.seconds=1"])
    row = SPOKEN.train[0]
    soundfile.write(tmp_path / "long.wav", numpy.tile(tones(row.text), 9), RATE)
    corpus = replace(SPOKEN, train=[*SPOKEN.train, row._replace(file=tmp_path / "long.wav")])
    job = TranscribeJob(recipe, corpus)
    assert len(job.targets) == len(SPOKEN.train)
    assert any("1 utterance of more than 1 s or 23 tokens is left out" in note for note in job.notes)
    with pytest.raises(InputError, match="no sound is as short as a window of 1 s"):
        TranscribeJob(recipe, replace(SPOKEN, train=corpus.train[-1:] * 2))
