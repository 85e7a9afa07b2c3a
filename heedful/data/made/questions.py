"""Questions about generated scenes, with their answers: how many, which colour, which shape, whether there is one; and
what there is, in all and at one place, which is for training alone."""

import random
from collections import Counter

from heedful.data.made.shapes import COLOURS, KINDS, Scene, Shape

PLACES = 8  # along an edge


def question(scene: Scene, part: str, number: int) -> tuple[str, str]:
    """Returns a question about the scene of this part and number, and the answer, the same on every machine. Half of
    the shapes that are asked for are there."""
    draw = random.Random(f"question {part} {number}")
    kinds, colours = Counter(shape.kind for shape in scene.shapes), Counter(shape.colour for shape in scene.shapes)
    asked = [_how_many, _whether]
    if 1 in kinds.values():
        kind = draw.choice([name for name in KINDS if kinds[name] == 1])
        colour = next(shape.colour for shape in scene.shapes if shape.kind == kind)
        asked.append(lambda *_: (f"what colour is the {kind}?", colour))
    if 1 in colours.values():
        colour_of = draw.choice([name for name in COLOURS if colours[name] == 1])
        kind_of = next(shape.kind for shape in scene.shapes if shape.colour == colour_of)
        asked.append(lambda *_: (f"what is {colour_of}?", f"a {kind_of}"))
    return draw.choice(asked)(scene, draw)


def everything(scene: Scene) -> tuple[str, str]:
    """Returns what asks for all shapes of a scene, and the answer: by their left edges, from left to right. It teaches
    a model to see, and is not for tests: it may be a matter of a pixel which of two shapes comes first."""
    return "what is there?", ", ".join(map(str, sorted(scene.shapes, key=lambda shape: shape.box[0])))


def what_is_at(scene: Scene, part: str, number: int) -> tuple[str, str]:
    """Returns what asks for the shape at one of the 8 x 8 places of a scene, named as those of a chessboard from the
    upper left, and the answer. It teaches a model that a shape's kind and colour belong together; half of the places
    are in a shape."""
    draw, edge = random.Random(f"place {part} {number}"), len(scene.mask) / PLACES
    places = [
        (column, row, _shape_at(scene, (column + 0.5) * edge, (row + 0.5) * edge))
        for row in range(PLACES)
        for column in range(PLACES)
    ]
    taken = [place for place in places if place[2] is not None]
    column, row, shape = draw.choice(taken if taken and draw.random() < 0.5 else places)
    return f"what is at {chr(ord('a') + column)}{row + 1}?", "nothing" if shape is None else f"a {shape}"


def _shape_at(scene: Scene, x: float, y: float) -> Shape | None:
    if not scene.mask[int(y), int(x)]:
        return None
    boxes = ((shape, shape.box) for shape in scene.shapes)
    return next(shape for shape, (left, upper, right, lower) in boxes if left <= x < right and upper <= y < lower)


def _how_many(scene: Scene, draw: random.Random) -> tuple[str, str]:
    kind, colour = _sought(scene, draw)
    same_kind, same_colour = (
        [shape for shape in scene.shapes if name in (shape.kind, shape.colour)] for name in (kind, colour)
    )
    name, counted = draw.choice(
        [
            (f"{kind}s", same_kind),
            (f"{colour} shapes", same_colour),
            (f"{colour} {kind}s", [shape for shape in same_kind if shape.colour == colour]),
        ]
    )
    return f"how many {name}?", str(len(counted))


def _whether(scene: Scene, draw: random.Random) -> tuple[str, str]:
    kind, colour = _sought(scene, draw)
    there = any((shape.kind, shape.colour) == (kind, colour) for shape in scene.shapes)
    return f"is there a {colour} {kind}?", "yes" if there else "no"


def _sought(scene: Scene, draw: random.Random) -> tuple[str, str]:
    """A kind and a colour: as often as not those of one of the shapes."""
    shape = draw.choice(scene.shapes)
    return (shape.kind, shape.colour) if draw.random() < 0.5 else (draw.choice(KINDS), draw.choice([*COLOURS]))
