"""Cuts long sound at its pauses into windows that a model can hear.

N samples.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.sound.files import RATE

STEP = RATE // 50  # samples whose loudness is one number
QUIET, SILENT = 0.03, 1e-4  # share of what is loud; and a loudness below which nothing is heard at all
PAUSE = 25  # steps of quiet that end a window
MARGIN = 8  # steps kept around what is heard


class Window(NamedTuple):
    """The samples from `first` to `last`, in which `begin` and `end` (seconds) are where something is heard."""

    first: int
    last: int
    begin: float
    end: float


def windows_of(sound: Float[Tensor, "N"], most: int) -> list[Window]:
    """Windows of at most `most` samples: a sound that fits is one, a longer one is cut at its pauses, and where there
    is none in time, at the quietest place. In order; what is quiet all through is left out."""
    loudness = _loudness(sound)
    threshold = max(SILENT, QUIET * float(loudness.quantile(0.99)) if len(loudness) else 0.0)
    heard = (loudness > threshold).nonzero().flatten().tolist()
    if not heard:
        return []
    if len(sound) <= most:
        return [Window(0, len(sound), heard[0] * STEP / RATE, min(len(sound), (heard[-1] + 1) * STEP) / RATE)]
    windows = []
    for first, last in _runs(heard):
        for begin, end in _short_enough(loudness, first, last, most // STEP - 2 * MARGIN):
            samples = max(0, (begin - MARGIN) * STEP), min(len(sound), (end + MARGIN) * STEP)
            windows.append(Window(*samples, begin * STEP / RATE, min(len(sound), end * STEP) / RATE))
    return windows


def _loudness(sound: Tensor) -> Float[Tensor, "steps"]:
    whole = len(sound) // STEP * STEP
    parts = [sound[:whole].view(-1, STEP), sound[whole:].view(1, -1)] if len(sound) % STEP else [sound.view(-1, STEP)]
    return torch.cat([part.square().mean(1).sqrt() for part in parts])


def _runs(heard: list[int]) -> list[tuple[int, int]]:
    """The steps from the first that is heard to behind the last, between pauses."""
    runs = [(heard[0], heard[0] + 1)]
    for step in heard[1:]:
        begin, end = runs[-1]
        if step - end < PAUSE:
            runs[-1] = begin, step + 1
        else:
            runs.append((step, step + 1))
    return runs


def _short_enough(loudness: Tensor, first: int, last: int, most: int) -> list[tuple[int, int]]:
    """The same steps in parts of at most `most`, cut in the later half of what fits."""
    parts = []
    while last - first > most:
        half = first + most // 2
        cut = half + int(loudness[half : first + most].argmin())
        parts.append((first, cut))
        first = cut
    return [*parts, (first, last)]
