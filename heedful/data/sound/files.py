"""Reads files of sound, by the library soundfile, an extra: WAV, FLAC, MP3, Ogg and more.

N samples.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.lines import open_file, unreadable
from heedful.errors import InputError, MissingError, pip_install

RATE = 16_000  # samples a second of what models hear
RATES = (4_000, 400_000)  # samples a second that are read
MOST_SECONDS = 2 * 3600
COMMON = 2 * 96_000  # numbers a second: channels times samples
BLOCK = 1 << 20  # numbers that are read at a time
MOST_KEPT = 1 << 29  # samples of all files that are kept in memory


def sound_library(where: str) -> ModuleType:
    """Raises MissingError where soundfile is not installed."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        fix = pip_install("'heedful[sound]'")
        raise MissingError(f"reading sound needs the package soundfile ({error})", where=where, fix=fix) from None
    return soundfile


def sound_seconds(file: Path | str) -> float:
    """How long a file of sound is, as its header says: more than that is not read. One of more than COMMON numbers a
    second counts as longer, as it takes longer to read. Raises errors as `read_sound`."""
    with _opened(file) as sound:
        return float(max(sound.frames / sound.samplerate, sound.frames * sound.channels / COMMON))


def read_sound(file: Path | str) -> Float[Tensor, "N"]:
    """The mean of the channels, at RATE samples a second, from -1 to 1.

    Raises MissingError, or InputError for a file that is not sound, is damaged, has no samples or some that are not
    finite, is of an unusual rate, or is longer than MOST_SECONDS: whatever its header says, no more is read.
    """
    where = str(file)
    with _opened(file) as sound:
        blocks = [*at_rate(_blocks(sound, where), sound.samplerate)]
    samples = numpy.concatenate(blocks) if blocks else numpy.zeros(0, numpy.float32)
    if not len(samples):
        raise InputError("no samples", where=where, fix="record it again, or take it out")
    if not numpy.isfinite(samples).all():
        raise InputError("samples that are not finite", where=where, fix="save it again, or take it out")
    return torch.from_numpy(samples).clamp_(-1, 1)


@contextmanager
def _opened(file: Path | str) -> Iterator[Any]:
    path, where = Path(file), str(file)
    library = sound_library(where)
    try:
        with open_file(path) as stream, library.SoundFile(stream) as sound:
            rate = sound.samplerate
            if not RATES[0] <= rate <= RATES[1]:
                what = f"{rate:,} samples a second, and {RATES[0]:,} to {RATES[1]:,} are read"
                raise InputError(what, where=where, fix=f"save it with {RATE:,}")
            yield sound
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    except (library.LibsndfileError, RuntimeError, TypeError) as error:
        what = f"not a file of sound, or damaged ({' '.join(str(error).split())[:100]})"
        raise InputError(what, where=where, fix="give WAV, FLAC, MP3 or Ogg") from None


def _blocks(sound: Any, where: str) -> Iterator[numpy.ndarray]:
    """The mean of the channels, in blocks. Raises InputError for more than MOST_SECONDS."""
    length = 0
    while len(block := sound.read(max(1, BLOCK // sound.channels), dtype="float32", always_2d=True)):
        length += len(block)
        if length > MOST_SECONDS * sound.samplerate:
            raise InputError(f"more than {MOST_SECONDS:,} seconds", where=where, fix="cut it in pieces")
        yield block.mean(axis=1)


def at_rate(blocks: Iterable[numpy.ndarray], rate: int) -> Iterator[numpy.ndarray]:
    """The same sound at RATE samples a second, without what is too high for it: block by block, of which each is heard
    with what is around it, as if all were one."""
    if rate == RATE:
        yield from blocks
        return
    from scipy.signal import resample_poly

    shared = math.gcd(rate, RATE)
    up, down = RATE // shared, rate // shared
    around = down * -(-(1 + 10 * max(up, down) // up) // down)  # what the filter reaches, in whole steps of both rates
    waiting, part, skip = numpy.zeros(around, numpy.float32), down * -(-BLOCK // down), around // down * up
    for block in blocks:
        waiting = numpy.concatenate([waiting, block])
        while len(waiting) >= part + 2 * around:
            resampled = resample_poly(waiting[: part + 2 * around], up, down)
            yield resampled[skip : skip + part // down * up].astype(numpy.float32)
            waiting = waiting[part:]
    rest = -(-(len(waiting) - around) * up // down)
    resampled = resample_poly(numpy.concatenate([waiting, numpy.zeros(around, numpy.float32)]), up, down)
    yield resampled[skip : skip + rest].astype(numpy.float32)


class Sounds:
    """Files of sound as samples; those read first stay in memory, with 16 bits, up to MOST_KEPT."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files, self.kept, self.room = files, dict[int, Tensor](), MOST_KEPT

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Tensor]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Tensor:
        if index not in self.kept:
            samples = (read_sound(self.files[index]) * 32767).round().to(torch.int16)
            if len(samples) > self.room:
                return samples.float() / 32767
            self.room -= len(samples)
            self.kept[index] = samples
        return self.kept[index].float() / 32767
