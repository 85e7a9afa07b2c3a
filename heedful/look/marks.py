"""Draws over a picture what was found in it: boxes with their labels, or classes as colours."""

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

# Easy to tell apart on any background (Okabe and Ito 2008); used in order, and cyclically.
COLOURS = [(230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167)]
OPAQUE = 0.5  # the share of a class's colour over the picture
FULL = 480  # pixels of the longer edge, to which small pictures are about enlarged, so that names are legible


def colour(number: int) -> tuple[int, int, int]:
    """The RGB colour of a class; class 0, which is often the background, is black."""
    return COLOURS[(number - 1) % len(COLOURS)] if number else (0, 0, 0)


def draw_boxes(
    picture: Image.Image, boxes: Sequence[tuple[str, tuple[float, float, float, float], int]]
) -> Image.Image:
    """The picture with boxes: each a name, the edges (left, upper, right, lower, in pixels) and the number of its class
    for the colour. A small picture is enlarged by a whole number."""
    scale = max(1, FULL // max(picture.size))
    drawn = picture.convert("RGB").resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    draw, font = ImageDraw.Draw(drawn), ImageFont.load_default(max(12, max(drawn.size) // 50))
    for _, edges, number in boxes:
        left, upper, right, lower = (edge * scale for edge in edges)
        draw.rectangle((left, upper, max(left, right - 1), max(upper, lower - 1)), outline=colour(number + 1), width=2)
    for name, edges, number in boxes:
        left, upper = edges[0] * scale, edges[1] * scale
        size = draw.textbbox((0, 0), name, font=font)
        place = max(0, min(left, drawn.width - size[2] - 4)), max(0, upper - size[3] - 2)
        draw.rectangle((*place, place[0] + size[2] + 3, place[1] + size[3] + 2), fill=colour(number + 1))
        draw.text((place[0] + 2, place[1]), name, fill="black", font=font)
    return drawn


def mask_image(numbers: NDArray[numpy.uint8]) -> Image.Image:
    """Class numbers as a picture with a palette: programs read the numbers, viewers show their colours."""
    made = Image.frombytes("P", (numbers.shape[1], numbers.shape[0]), numpy.ascontiguousarray(numbers).tobytes())
    made.putpalette([shade for number in range(256) for shade in colour(number)])
    return made


def overlay(picture: Image.Image, classes: NDArray[numpy.uint8]) -> Image.Image:
    """The picture, each pixel mixed with the colour of its class; those of class 0 stay as they are."""
    colours = numpy.array([colour(number) for number in range(256)], dtype=numpy.float32)[classes]
    pixels = numpy.asarray(picture.convert("RGB"), dtype=numpy.float32)
    share = OPAQUE * (classes > 0)[..., None]
    return Image.fromarray((pixels * (1 - share) + colours * share).round().astype(numpy.uint8))
