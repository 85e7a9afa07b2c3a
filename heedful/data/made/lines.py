"""Generated lines of printed text, in Pillow's own font: words of random letters and numbers, of several sizes, in
several positions and shades, with noise.

A line depends only on its part and number, and on the version of Pillow, which draws the letters. No word of a test is
in the training lines.
"""

import random
from functools import cache
from hashlib import blake2b
from math import ceil
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

ROWS, COLUMNS = 24, 144  # pixels
SIZES = (12, 17)  # of the font, in pixels, at least and at most
MARGIN = 12  # pixels before the first letter, at most
MOST_WORDS = 3
HELD = 5  # of so many words, one is kept for each of validation and test
NOISE = 12.0  # standard deviation, of 255 shades


class Line(NamedTuple):
    pixels: NDArray[numpy.uint8]  # (ROWS, COLUMNS)
    text: str


def line(part: str, number: int) -> Line:
    """Draws as many of up to MOST_WORDS words as fit."""
    draw = random.Random(f"line {part} {number}")
    font = _font(draw.randint(*SIZES))
    text = _word(part, draw)
    for _ in range(draw.randrange(MOST_WORDS)):
        longer = f"{text} {_word(part, draw)}"
        text = longer if font.getlength(longer) <= COLUMNS - 4 else text
    left, top, right, bottom = font.getbbox(text)
    widest = min(MARGIN, COLUMNS - 1 - ceil(right - left))
    place = (draw.randint(1, widest), draw.randint(1, ROWS - 1 - ceil(bottom - top)))
    paper, ink = draw.uniform(150, 250), draw.uniform(0, 90)
    shade = Image.new("L", (COLUMNS, ROWS))
    ImageDraw.Draw(shade).text((place[0] - left, place[1] - top), text, fill=255, font=font)
    pixels = paper + (ink - paper) * numpy.asarray(shade) / 255
    grain = numpy.random.default_rng([*part.encode(), number])
    pixels += NOISE * grain.standard_normal(size=pixels.shape, dtype=numpy.float32)
    return Line(pixels.clip(0, 255).round().astype(numpy.uint8), text)


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _word(part: str, draw: random.Random) -> str:
    """A word that belongs to the part."""
    while True:
        letters = digits if draw.random() < 0.15 else ascii_lowercase
        word = "".join(draw.choices(letters, k=draw.randint(2, 7)))
        if word_part(word) == part:
            return word.capitalize() if draw.random() < 0.3 else word


def word_part(word: str) -> str:
    """The part that a word belongs to, by its hash, in small letters."""
    return {0: "valid", 1: "test"}.get(blake2b(word.encode(), digest_size=8).digest()[0] % HELD, "train")
