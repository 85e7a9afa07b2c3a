"""What a model hears of sound: windows of one length, as logarithms of mel bands; or the samples themselves.

B windows, N samples, M bands, F frames, K frequencies. Of samples M = 1, and a frame is one.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.seeds import random_stream
from heedful.data.sound.files import RATE
from heedful.errors import InputError

WINDOW, HOP = 400, 160  # samples of a spectrum, and between two
FRAMES_A_POSITION = 2
HIGHEST = 8000.0  # Hz
LOUDEST_LESS = 8.0  # powers of ten below the loudest of a window, under which all is alike
LINEAR, STEP = 1000.0, 200.0 / 3  # the mel scale of Slaney 1998: a mel is 200/3 Hz up to 1000 Hz, then logarithmic
LOG_STEP = math.log(6.4) / 27


@dataclass(frozen=True, kw_only=True)
class Hearing:
    """How sound becomes a model's input: in windows of so many whole seconds, shorter ones filled up with silence
    (Radford et al. 2023, section 2.2); or, without `mels`, as samples, up to so many seconds of them."""

    seconds: int
    mels: int = 80
    step: int = FRAMES_A_POSITION * HOP  # samples of a position of the encoder
    scaled: bool = False  # samples: to a mean of 0 and a variance of 1 in each sound

    def __post_init__(self) -> None:
        if self.seconds < 1 or self.step < 1:
            raise InputError(f"windows of {self.seconds} s, a position of {self.step} samples", fix="give 1 or more")

    @property
    def samples(self) -> int:
        return self.seconds * RATE

    @property
    def positions(self) -> int:
        """Those of an encoder."""
        return self.samples // self.step

    def lengths(self, sounds: Sequence[Float[Tensor, "_"]]) -> Int[Tensor, "B"] | None:
        """The samples of each sound, where a model hears these; None where it hears whole windows."""
        return None if self.mels else torch.tensor([len(sound) for sound in sounds])

    def inputs(
        self, sounds: Sequence[Float[Tensor, "_"]], device: torch.device
    ) -> tuple[Float[Tensor, "B M F"], Int[Tensor, "B"] | None]:
        """Those of a model on this device: what is heard, and the lengths."""
        lengths = self.lengths(sounds)
        return self(sounds).to(device), None if lengths is None else lengths.to(device)

    @property
    def in_words(self) -> str:
        return f"windows of {self.seconds} s, {f'{self.mels} mel bands' if self.mels else 'samples'}"

    def __call__(self, sounds: Sequence[Float[Tensor, "_"]]) -> Float[Tensor, "B M F"]:
        """Raises InputError for a sound that is longer than a window."""
        windows = torch.zeros(len(sounds), self.samples if self.mels else max(map(len, sounds)))
        for window, sound in zip(windows, sounds, strict=True):
            if len(sound) > self.samples:
                what = f"{len(sound) / RATE:.1f} s of sound, and a window has {self.seconds}"
                raise InputError(what, fix="cut it, or train with a longer sound.seconds")
            window[: len(sound)] = scaled(sound) if self.scaled else sound
        return log_mel(windows, self.mels) if self.mels else windows[:, None]


def scaled(sound: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """The same with a mean of 0 and a variance of 1; silence stays silence."""
    return (sound - sound.mean()) / (sound.var(correction=0) + 1e-7).sqrt()


def varied(
    hearing: Hearing, sounds: Sequence[Float[Tensor, "_"]], keys: Sequence[tuple[object, ...]]
) -> tuple[Float[Tensor, "B M F"], Int[Tensor, "B"] | None]:
    """What a model that learns hears, and the lengths: each sound is changed (`augmented`, `masked`) by what its key
    draws; without keys none is."""
    if keys:
        sounds = [augmented(sound, *key, most=hearing.samples) for sound, key in zip(sounds, keys, strict=True)]
    features = hearing(sounds)
    if keys and hearing.mels:
        features = torch.stack([masked(window, *key) for window, key in zip(features, keys, strict=True)])
    return features, hearing.lengths(sounds)


def log_mel(sound: Float[Tensor, "B N"], mels: int) -> Float[Tensor, "B M F"]:
    """log10 of the power in each mel band, at most 8 below the loudest of the window, plus 4 and divided by 4 (Radford
    et al. 2023; their code)."""
    window = torch.hann_window(WINDOW, device=sound.device)
    spectrum = torch.stft(sound, WINDOW, HOP, window=window, return_complex=True)[..., :-1]
    power = mel_bands(mels).to(sound.device) @ spectrum.abs().square()
    logarithm = power.clamp(min=1e-10).log10()
    return (logarithm.maximum(logarithm.amax((1, 2), keepdim=True) - LOUDEST_LESS) + 4) / 4


@functools.cache
@torch.inference_mode(mode=False)
def mel_bands(mels: int) -> Float[Tensor, "M K"]:
    """What each band takes of each frequency: triangles of equal area, which overlap by half (Slaney 1998)."""
    edges = torch.linspace(0, float(_mel(torch.tensor(HIGHEST).double())), mels + 2, dtype=torch.float64)
    log = LINEAR * ((edges - LINEAR / STEP) * LOG_STEP).exp()
    hertz = torch.where(edges < LINEAR / STEP, edges * STEP, log)
    frequencies = torch.linspace(0, RATE / 2, WINDOW // 2 + 1, dtype=torch.float64)
    distance = hertz[:, None] - frequencies
    width = hertz.diff()[:, None]
    rising, falling = -distance[:-2] / width[:-1], distance[2:] / width[1:]
    area = 2 / (hertz[2:] - hertz[:-2])[:, None]
    return (rising.minimum(falling).clamp(min=0) * area).float()


def _mel(hertz: Tensor) -> Tensor:
    return torch.where(hertz < LINEAR, hertz / STEP, LINEAR / STEP + (hertz / LINEAR).log() / LOG_STEP)


def augmented(sound: Float[Tensor, "_"], *key: object, most: int, speeds: float = 0.12) -> Float[Tensor, "_"]:
    """The same faster or slower, and so higher or lower, by up to a share of `speeds` (Ko et al. 2015), louder or
    quieter, and a little later, where `most` samples leave room; drawn from this key alone."""
    draw = random_stream("sound", *key)
    length = min(most, round(len(sound) * (1 + draw.uniform(-speeds, speeds))))
    points = torch.arange(length) * ((len(sound) - 1) / max(1, length - 1))
    left = points.long().clamp(max=max(0, len(sound) - 2))
    share = points - left
    right = (left + 1).clamp(max=len(sound) - 1)
    moved = (sound[left] * (1 - share) + sound[right] * share) * 10 ** draw.uniform(-0.5, 0.3)
    later = draw.randrange(1 + min(most - length, RATE // 4))
    return torch.cat([torch.zeros(later), moved]).clamp(-1, 1)


def masked(features: Float[Tensor, "M F"], *key: object) -> Float[Tensor, "M F"]:
    """Two stripes of bands and two of frames replaced by the mean (Park et al. 2019, SpecAugment), drawn from this key
    alone."""
    draw, features = random_stream("masks", *key), features.clone()
    mean = features.mean()
    for axis, widest in ((0, features.shape[0] // 8), (1, features.shape[1] // 12)):
        for _ in range(2):
            width = draw.randint(0, widest)
            features.narrow(axis, draw.randint(0, features.shape[axis] - width), width).fill_(mean)
    return features
