"""What a model hears of sound, and how it is changed in training."""

import pytest
import torch

from heedful.data.sound.features import HOP, Hearing, augmented, log_mel, masked, mel_bands
from heedful.data.sound.files import RATE
from heedful.errors import InputError
from sounds import tones

TONE = torch.from_numpy(tones("abc"))


def test_a_tone_is_loudest_in_its_band() -> None:
    time = torch.arange(RATE) / RATE
    centres = mel_bands(80).argmax(1) * RATE / 400
    for pitch in (500.0, 1500.0, 4000.0):
        heard = log_mel(torch.sin(2 * torch.pi * pitch * time)[None], 80)[0].mean(1)
        assert abs(float(centres[heard.argmax()]) - pitch) < 150


def test_windows_are_filled_up_with_silence() -> None:
    hearing = Hearing(seconds=1, mels=20)
    heard = hearing([TONE, TONE[:1000]])
    assert heard.shape == (2, 20, RATE // HOP)
    torch.testing.assert_close(heard[0], hearing([TONE])[0])
    torch.testing.assert_close(heard[1], hearing([torch.cat([TONE[:1000], torch.zeros(50)])])[0])
    with pytest.raises(InputError, match=r"1\.1 s of sound, and a window has 1"):
        hearing([torch.zeros(RATE + 1600)])
    with pytest.raises(InputError, match="windows of 0 s"):
        Hearing(seconds=0)


def test_what_is_changed_depends_on_its_key_alone() -> None:
    made = [augmented(TONE, 1, number, most=RATE) for number in range(20)]
    assert all(torch.equal(augmented(TONE, 1, number, most=RATE), one) for number, one in enumerate(made))
    assert len({len(one) for one in made}) > 10
    assert all(0 < len(one) <= RATE and float(one.abs().max()) <= 1 for one in made)
    assert all(len(augmented(TONE, 1, number, most=len(TONE))) <= len(TONE) for number in range(20))
    assert 0 < len(augmented(TONE[:1], 0, most=10)) <= 10
    features = log_mel(TONE[None], 20)[0]
    shown = features.clone()
    changed = [masked(features, number) for number in range(20)]
    assert torch.equal(features, shown)
    assert all(torch.equal(masked(features, number), one) for number, one in enumerate(changed))
    assert any(not torch.equal(one, features) for one in changed)
