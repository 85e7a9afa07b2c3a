"""Generated scenes of coloured shapes, with boxes, masks and captions.

A scene depends only on its part and number, on every machine. S x S pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from heedful.errors import InputError

KINDS = ("circle", "square", "triangle")
COLOURS = {"red": (214, 40, 40), "green": (46, 160, 67), "blue": (36, 92, 214), "yellow": (236, 202, 36)}
MANY = 3000  # training pictures by default
VALID, TEST = 200, 500
SIZE, MOST = 64, 4  # pixels of an edge, and the most shapes in a scene
SMALLEST, LARGEST = 0.14, 0.4  # shares of the edge
NOISE = 10.0  # standard deviation, of 255 shades


@dataclass(frozen=True)
class Shape:
    kind: str
    colour: str
    box: tuple[float, float, float, float]  # left, upper, right and lower edge, in pixels

    def __str__(self) -> str:
        return f"{self.colour} {self.kind}"


@dataclass(frozen=True)
class Scene:
    pixels: NDArray[numpy.uint8]  # (S, S, 3)
    mask: NDArray[numpy.uint8]  # (S, S): 0 is background, then KINDS from 1
    shapes: tuple[Shape, ...]

    @property
    def caption(self) -> str:
        return self.told(str)

    def told(self, name: Callable[[Shape], str]) -> str:
        """Describes the scene, each shape by its position relative to the one before it: "a red circle above a blue
        square"."""
        words = [f"a {name(self.shapes[0])}"]
        for one, other in zip(self.shapes, self.shapes[1:], strict=False):
            words.append(f"{_where(one, other)} a {name(other)}")
        return " ".join(words)


def asked(path: str, name: str = "shapes") -> int | None:
    """Returns the number of training pictures that "shapes" or "shapes:N", or another such `name`, asks for; None where
    the path is no such name. Raises InputError."""
    kind, colon, number = path.partition(":")
    if kind != name:
        return None
    if colon and not (number.isdecimal() and 0 < int(number) <= 1_000_000):
        raise InputError(f"{number!r} is no number of pictures", where=path, fix=f"for example {name}:2000")
    return int(number) if colon else MANY


def parts(count: int) -> dict[str, list[Scene]]:
    """Returns `count` training scenes, and fixed validation and test scenes."""
    return {name: scenes(name, n) for name, n in {"train": count, "valid": VALID, "test": TEST}.items()}


def scenes(part: str, count: int) -> list[Scene]:
    return [scene(part, number) for number in range(count)]


def scene(part: str, number: int, *, size: int = SIZE, most: int = MOST) -> Scene:
    """Draws one to `most` shapes that do not touch, of random colours and sizes, on a noisy background."""
    draw = numpy.random.default_rng([*part.encode(), number])
    rows, columns = numpy.arange(size)[:, None] + 0.5, numpy.arange(size) + 0.5
    ground = draw.uniform(60, 200, size=3) + draw.uniform(-40, 40) * (columns / size)[:, None]
    pixels, mask = numpy.broadcast_to(ground, (size, size, 3)).copy(), numpy.zeros((size, size), numpy.uint8)
    taken, shapes = numpy.zeros((size, size), bool), list[Shape]()
    wanted = int(draw.integers(1, most + 1))
    for _ in range(4 * wanted):
        if len(shapes) == wanted:
            break
        kind, colour = int(draw.integers(len(KINDS))), str(draw.choice([*COLOURS]))
        half = size * draw.uniform(SMALLEST, LARGEST) / 2
        x, y = draw.uniform(half, size - half, size=2)
        inside = _inside(KINDS[kind], columns - x, rows - y, half)
        left, upper, right, lower = _around(inside)
        if taken[max(0, upper - 1) : lower + 1, max(0, left - 1) : right + 1].any():
            continue
        taken[upper:lower, left:right] = True
        pixels[inside], mask[inside] = numpy.array(COLOURS[colour]) + draw.uniform(-20, 20, size=3), kind + 1
        shapes.append(Shape(KINDS[kind], colour, (float(left), float(upper), float(right), float(lower))))
    pixels += NOISE * draw.standard_normal(size=pixels.shape, dtype=numpy.float32)
    return Scene(pixels.clip(0, 255).round().astype(numpy.uint8), mask, tuple(shapes))


def _inside(kind: str, x: NDArray[Any], y: NDArray[Any], half: float) -> NDArray[Any]:
    """Returns the pixels that belong to a shape; x and y are relative to its centre."""
    match kind:
        case "circle":
            return x**2 + y**2 <= half**2
        case "square":
            return numpy.maximum(abs(x), abs(y)) <= half
        case _:
            return (abs(y) <= half) & (abs(x) <= (y + half) / 2)


def _around(inside: NDArray[Any]) -> tuple[int, int, int, int]:
    columns, rows = (numpy.flatnonzero(inside.any(axis)) for axis in (0, 1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _where(one: Shape, other: Shape) -> str:
    """Returns the relation along the axis with the larger distance between centres."""
    right, down = (_middle(other.box, axis) - _middle(one.box, axis) for axis in (0, 1))
    if abs(right) > abs(down):
        return "left of" if right > 0 else "right of"
    return "above" if down > 0 else "below"


def _middle(box: Sequence[float], axis: int) -> float:
    return (box[axis] + box[axis + 2]) / 2
