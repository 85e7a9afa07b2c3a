"""Long sound in windows: what is heard is in exactly one of them, and no cut goes through a word where there are
pauses."""

from itertools import pairwise

import numpy
import pytest
import torch

from heedful.data.sound.files import RATE
from heedful.data.sound.windows import windows_of
from sounds import tones


def quiet(seconds: float) -> numpy.ndarray:
    return numpy.zeros(int(seconds * RATE), numpy.float32)


def joined(*parts: numpy.ndarray) -> torch.Tensor:
    return torch.from_numpy(numpy.concatenate(parts))


def test_a_sound_that_fits_is_one_window_with_the_times_of_what_is_heard() -> None:
    sound = joined(quiet(0.5), tones("abc", gap=0), quiet(0.7))
    (window,) = windows_of(sound, 2 * RATE)
    assert (window.first, window.last) == (0, len(sound))
    assert window.begin == pytest.approx(0.5, abs=0.03)
    assert window.end == pytest.approx(0.8, abs=0.03)


def test_a_longer_one_is_cut_at_its_pauses() -> None:
    spoken = [tones("abcd", gap=0), tones("dd", gap=0), tones("feed", gap=0)]
    sound = joined(quiet(1), spoken[0], quiet(0.8), spoken[1], quiet(2), spoken[2], quiet(0.2))
    found = windows_of(sound, RATE)
    expected = [(1.0, 1.4), (2.2, 2.4), (4.4, 4.8)]
    assert [(window.begin, window.end) for window in found] == [pytest.approx(times, abs=0.05) for times in expected]
    for window, (begin, end) in zip(found, expected, strict=True):
        assert window.first <= begin * RATE + 1000
        assert window.last >= end * RATE - 1000
        assert window.last - window.first <= RATE


@pytest.mark.parametrize("seconds", [1, 2, 5])
def test_what_has_no_pause_is_cut_where_it_is_quietest(seconds: int) -> None:
    noise = torch.randn(12 * RATE, generator=torch.Generator().manual_seed(0)) / 10
    found = windows_of(noise, seconds * RATE)
    assert all(0 < window.last - window.first <= seconds * RATE for window in found)
    assert found[0].begin == 0
    assert found[-1].end == 12
    assert all(one.end == other.begin for one, other in pairwise(found))


def test_silence_is_no_window() -> None:
    assert windows_of(torch.zeros(10 * RATE), RATE) == []
    assert windows_of(torch.zeros(100), RATE) == []
    assert windows_of(torch.zeros(0), RATE) == []
    assert windows_of(torch.full((10 * RATE,), 1e-6), RATE) == []
