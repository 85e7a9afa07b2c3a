"""Speech over HTTP: by our own API, and by OpenAI's own client."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy
import openai as client
import pytest
import soundfile
from fastapi.testclient import TestClient

from cases import SOUNDS
from heedful.data.sound.files import RATE
from heedful.data.sound.subtitles import subtitles
from heedful.run.task import Ask, NoOptions
from heedful.serve.app import make_app
from heedful.serve.bodies import FormFile
from heedful.serve.limits import reading_size
from heedful.serve.own import kept_files
from heedful.serve.refusals import Refused
from serving import hosted, opened, running
from sounds import tones


@pytest.fixture(scope="module")
def run(run_of: Callable[[str], Path]) -> Path:
    return run_of("transcribe")


@pytest.fixture
def app(run: Path, run_of: Callable[[str], Path]):
    return make_app(hosted(run, run_of("tag")))


def long_sound() -> bytes:
    held = io.BytesIO()
    pause = numpy.zeros(2 * RATE, numpy.float32)
    soundfile.write(held, numpy.concatenate([tones("abc"), pause, tones("de")]), RATE, format="FLAC")
    return held.getvalue()


def test_our_own_route_says_what_a_file_says(app, run: Path) -> None:
    with TestClient(app, base_url="http://localhost") as asked:
        files = [("file", (f"{i}.wav", Path(file).read_bytes(), "audio/wav")) for i, file in enumerate(SOUNDS)]
        answers = asked.post("/api/transcribe", files=files).json()["answers"]
        assert [{**each, "input": ""} for each in answers] == [
            {**each, "input": ""} for [each] in opened(run).ask("transcribe", SOUNDS)
        ]
        assert [each["input"] for each in answers] == [f"{i}.wav" for i in range(len(SOUNDS))]
        found = asked.post("/api/transcribe", json={"text": "a"})
        assert (found.status_code, found.json()["error"]["message"]) == (415, "transcribe reads sounds")
        found = asked.post("/api/transcribe", files=[("file", ("x.wav", b"RIFFnothing", "audio/wav"))])
        assert found.status_code == 400
        assert found.json()["error"]["message"].startswith("x.wav: not a file of sound")
        looked = asked.post("/api/view", files=files[:1], data={"json": json.dumps({"model": "transcribe"})})
        assert looked.status_code == 200, looked.text


def test_openais_client_gets_every_format(app, run: Path, tmp_path: Path) -> None:
    (tmp_path / "long.flac").write_bytes(long_sound())
    expected = opened(run).transcribe(tmp_path / "long.flac")
    with running(app) as address, client.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0) as theirs:
        assert "transcribe" in [model.id for model in theirs.models.list()]

        def heard(form: str):
            with (tmp_path / "long.flac").open("rb") as file:
                return theirs.audio.transcriptions.create(model="transcribe", file=file, response_format=form)

        assert heard("json").text == expected.text
        assert heard("text") == f"{expected.text}\n"
        for kind in ("srt", "vtt"):
            assert heard(kind) == subtitles(expected.segments, f".{kind}")
        told = heard("verbose_json")
        assert told.duration == expected.seconds
        assert [(one.start, one.end, one.text) for one in told.segments] == [*expected.segments]


@pytest.mark.parametrize(
    ("fields", "status", "told"),
    [
        ({"model": "nobody"}, 404, "The model `nobody` does not exist"),
        ({"model": "tag"}, 404, "turns no speech into text"),
        ({"model": "transcribe", "language": "fr"}, 400, "this model has one language"),
        ({"model": "transcribe", "prompt": "a word"}, 400, "prompt is not served here"),
        ({"model": "transcribe", "temperature": "0.7"}, 400, "temperature is not served here"),
        ({"model": "transcribe", "stream": "true"}, 400, "stream is not served here"),
        ({"model": "transcribe", "response_format": "xml"}, 400, "response_format"),
        ({"model": "transcribe", "other": "1"}, 400, "other"),
        ({}, 400, "model"),
    ],
)
def test_what_is_not_served_is_refused_in_a_line(app, fields: dict[str, str], status: int, told: str) -> None:
    with TestClient(app, base_url="http://localhost") as asked:
        found = asked.post("/v1/audio/transcriptions", files={"file": ("a.flac", long_sound())}, data=fields)
        assert (found.status_code, told in found.json()["error"]["message"]) == (status, True), found.text
        missing = asked.post(
            "/v1/audio/transcriptions", files={"other": ("a.flac", b"x")}, data={"model": "transcribe"}
        )
        assert "file: the file of sound is missing" in missing.json()["error"]["message"]


def test_the_sounds_of_a_request_are_counted_together(tmp_path: Path) -> None:
    """By their headers, of a small file too: none is read."""
    soundfile.write(tmp_path / "a.flac", numpy.zeros(1000 * RATE, numpy.int16), RATE)
    file = str(tmp_path / "a.flac")
    assert asyncio.run(reading_size(Ask(lambda *_: iter(()), NoOptions, reads="sounds"), [file])) == 32_000

    async def kept(count: int) -> int:
        content = Path(file).read_bytes()
        async with kept_files([FormFile(f"{i}.flac", content) for i in range(count)], "sounds") as names:
            return len(names)

    assert asyncio.run(kept(1)) == 1
    with pytest.raises(Refused, match="2,000 seconds of sound, at most 1,800") as caught:
        asyncio.run(kept(2))
    assert caught.value.status == 413
