"""Sounds for tests: words whose letters are tones."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy
import soundfile

from heedful.data.sound.files import RATE

LETTERS = "abcdef"
LENGTH = RATE // 10  # samples of a letter


def tones(text: str, *, shift: float = 1.0, gap: float = 0.02) -> numpy.ndarray:
    """A tone for each letter, of a frequency of its own times `shift`; a space is silence."""
    parts = [numpy.zeros(int(gap * RATE))]
    time = numpy.arange(LENGTH) / RATE
    shape = numpy.sin(numpy.pi * numpy.arange(LENGTH) / LENGTH)
    for letter in text:
        pitch = 300 * 1.4 ** LETTERS.find(letter) * shift
        parts.append(numpy.zeros(LENGTH) if letter == " " else 0.3 * shape * numpy.sin(2 * numpy.pi * pitch * time))
    return numpy.concatenate([*parts, numpy.zeros(int(gap * RATE))]).astype(numpy.float32)


def texts(count: int, *, seed: int = 0, words: Sequence[int] = (1, 2)) -> list[str]:
    draw = random.Random(seed)
    made = set[str]()
    while len(made) < count:
        lengths = [draw.randint(2, 3) for _ in range(draw.choice(words))]
        made.add(" ".join("".join(draw.choices(LETTERS, k=length)) for length in lengths))
    return sorted(made)


def utterances(folder: Path, said: Sequence[str], *, name: str = "train.csv") -> Path:
    """A table of these texts, and a file of sound beside it for each."""
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    lines = ["audio,text"]
    for number, text in enumerate(said):
        file = f"{Path(name).stem}{number}.wav"
        soundfile.write(folder / "sounds" / file, tones(text, shift=1 + 0.01 * (number % 5)), RATE)
        lines.append(f"{file},{text}")
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder
