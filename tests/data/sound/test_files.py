"""Files of sound: what is read of good ones, and how bad ones are refused."""

import struct
from pathlib import Path

import numpy
import pytest
import soundfile
import torch

from heedful.data.sound import files
from heedful.data.sound.files import RATE, Sounds, read_sound, sound_seconds
from heedful.errors import InputError, MissingError
from sounds import tones

TONE = tones("abc")


@pytest.mark.parametrize(
    ("name", "more"), [("a.wav", {}), ("a.wav", {"subtype": "FLOAT"}), ("a.flac", {}), ("a.ogg", {}), ("a.mp3", {})]
)
def test_sound_is_read_whatever_its_format(tmp_path: Path, name: str, more: dict[str, str]) -> None:
    soundfile.write(tmp_path / name, TONE, RATE, **more)
    sound = read_sound(tmp_path / name)
    lossy = name.endswith(("mp3", "ogg"))
    if not lossy:
        torch.testing.assert_close(sound, torch.from_numpy(TONE), rtol=0, atol=1e-4)
    assert abs(len(sound) - len(TONE)) < (0.1 * RATE if lossy else 1)


def test_channels_become_one(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", numpy.stack([TONE, 0 * TONE], 1), RATE, subtype="FLOAT")
    torch.testing.assert_close(read_sound(tmp_path / "a.wav"), torch.from_numpy(TONE) / 2)


@pytest.mark.parametrize("rate", [8_000, 11_025, 44_100, 48_000])
def test_other_rates_are_the_same_sound(tmp_path: Path, rate: int) -> None:
    time = numpy.arange(rate) / rate
    soundfile.write(tmp_path / "a.wav", 0.5 * numpy.sin(2 * numpy.pi * 440 * time), rate, subtype="FLOAT")
    sound = read_sound(tmp_path / "a.wav")
    expected = 0.5 * torch.sin(2 * torch.pi * 440 * torch.arange(RATE) / RATE)
    assert len(sound) == RATE
    torch.testing.assert_close(sound[500:-500], expected[500:-500], rtol=0, atol=5e-3)


@pytest.mark.parametrize("rate", [8_000, 44_100, 22_051])
def test_blocks_are_resampled_as_if_all_were_one(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = numpy.random.default_rng(0).normal(size=100_003).astype(numpy.float32)
    (whole,) = files.at_rate([sound], rate)
    monkeypatch.setattr(files, "BLOCK", 3000)
    parts = numpy.concatenate([*files.at_rate(numpy.array_split(sound, 7), rate)])
    numpy.testing.assert_allclose(parts, whole, atol=1e-5)
    assert len(parts) == -(-len(sound) * RATE // rate)


def header(data: bytes, *, size: int, rate: int = RATE) -> bytes:
    """A WAV file whose header says that `size` bytes follow."""
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    body = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not a file of sound"),
        (b"hello there, this is text\n" * 50, "not a file of sound"),
        (b"RIFF\xff\xff\xff\xffWAVE", "not a file of sound"),
        (b"fLaC" + bytes(200), "not a file of sound"),
        (header(b"", size=0), "no samples"),
        (header(bytes(2000), size=2000, rate=1), "1 samples a second, and 4,000 to 400,000 are read"),
        (header(bytes(2000), size=2000, rate=2**31 - 1), "samples a second"),
    ],
)
def test_what_is_no_sound_is_refused_in_a_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(InputError, match=told) as found:
        read_sound(tmp_path / "a.wav")
    assert str(tmp_path / "a.wav") in str(found.value)
    assert "\n" not in str(found.value)
    assert found.value.fix


def test_a_header_that_promises_more_than_there_is_makes_no_sound_longer(tmp_path: Path) -> None:
    data = (TONE * 32767).astype("<i2").tobytes()
    (tmp_path / "a.wav").write_bytes(header(data, size=2**32 - 100))
    assert len(read_sound(tmp_path / "a.wav")) == len(TONE)


def test_hours_in_a_small_file_are_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_SECONDS", 100)
    soundfile.write(tmp_path / "a.flac", numpy.zeros(101 * RATE, numpy.int16), RATE)
    assert (tmp_path / "a.flac").stat().st_size < 20_000
    with pytest.raises(InputError, match="more than 100 seconds"):
        read_sound(tmp_path / "a.flac")


@pytest.mark.parametrize(("rate", "channels", "seconds"), [(RATE, 1, 100), (48_000, 2, 100), (96_000, 8, 400)])
def test_how_long_a_file_is_stands_in_its_header(tmp_path: Path, rate: int, channels: int, seconds: float) -> None:
    """Which is read to no more than that."""
    soundfile.write(tmp_path / "a.flac", numpy.zeros((100 * rate, channels), numpy.int16), rate)
    assert sound_seconds(tmp_path / "a.flac") == seconds
    data = bytearray((tmp_path / "a.flac").read_bytes())
    data[22:26] = rate.to_bytes(4, "big")  # one second, of a hundred
    data[21] &= 0xF0
    (tmp_path / "a.flac").write_bytes(data)
    assert sound_seconds(tmp_path / "a.flac") == seconds / 100
    assert len(read_sound(tmp_path / "a.flac")) == RATE


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf])
def test_samples_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    wrong = TONE.copy()
    wrong[700] = value
    soundfile.write(tmp_path / "a.wav", wrong, RATE, subtype="FLOAT")
    with pytest.raises(InputError, match="samples that are not finite"):
        read_sound(tmp_path / "a.wav")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such file"):
        read_sound(tmp_path / "a.wav")
    with pytest.raises(InputError):
        read_sound(tmp_path)


def test_files_that_are_kept_are_those_that_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", TONE, RATE)
    monkeypatch.setattr(files, "MOST_KEPT", len(TONE) + 10)
    sounds = Sounds([tmp_path / "a.wav", tmp_path / "b.wav"])
    first = [sounds[0], sounds[1]]
    (tmp_path / "a.wav").unlink()
    assert all(torch.equal(sounds[i], first[i]) for i in (0, 1))
    (tmp_path / "b.wav").unlink()
    with pytest.raises(MissingError):
        sounds[1]
