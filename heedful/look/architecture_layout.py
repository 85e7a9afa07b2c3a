"""The layout of an `Architecture`: columns side by side, each from the bottom up, residual connections as loops beside
their branch, repeated layers in a frame.

Internally, y grows upwards from 0; the last step flips it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from heedful.look.architecture import Add, Architecture, Beside, Box, Column, DrawnResidual, Part, Repeat, parameters_of
from heedful.look.canvas import Circle, Line, Rectangle, Shape, TextLine, png, svg, width_of

WIDTH = 226.0  # of a box
LABEL, NOTE = 15.0, 12.5  # font sizes
GAP = 16.0  # between boxes
LOOP = 15.0  # from a residual's loop to its boxes
FRAME = 24.0  # from a box to the frame of repeated layers
BETWEEN = 34.0  # between columns
EDGE = 14.0
PLUS = 9.0  # radius of a sum


@dataclass
class _Drawn:
    """A column while it is drawn: its shapes, its height, and the positions of named parts (x of the left and the right
    edge, y of the middle)."""

    centre: float
    loops: int  # side of the residuals' loops: -1: left of the boxes; 1: right
    shapes: list[Shape] = field(default_factory=list)
    height: float = 0.0
    named: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def rise(self, by: float = GAP, *, arrow: bool = True) -> None:
        below, self.height = self.height, self.height + by
        self.shapes.append(Line(points=((self.centre, below), (self.centre, self.height)), arrow=arrow))


def picture(drawn: Architecture, kind: Literal["svg", "png"], *, dark: bool = False) -> bytes:
    """The drawing as the content of an SVG or PNG file."""
    shapes, width, height = lay_out(drawn)
    if kind == "svg":
        return svg(shapes, width, height, title=drawn.title, dark=dark)
    return png(shapes, width, height, dark=dark)


def lay_out(drawn: Architecture) -> tuple[list[Shape], float, float]:
    """All shapes, and the width and height of the drawing."""
    half = WIDTH / 2 + FRAME
    links = BETWEEN + 10.0 * len(drawn.links)
    centres = [EDGE + half + number * (2 * half + links) for number in range(len(drawn.columns))]
    columns = [
        _column(column, centre, 1 if number and drawn.links else -1)
        for number, (column, centre) in enumerate(zip(drawn.columns, centres, strict=True))
    ]
    shapes = [shape for column in columns for shape in column.shapes]
    top, width = max(column.height for column in columns), centres[-1] + half + EDGE
    if drawn.joined is not None:
        above, height = _joined(drawn, [(column.centre, column.height) for column in columns], top, width)
        shapes, top = shapes + above, height
    shapes += _links(drawn, columns)
    notes = [line for note in drawn.notes for line in _wrapped(note, NOTE, width - 2 * EDGE)]
    head, foot = 3 * LABEL + EDGE, EDGE + (NOTE + 6) * len(notes)
    height = head + top + foot
    made = [_turned(shape, top + head) for shape in shapes]
    made.append(TextLine(text=drawn.title, x=EDGE, y=EDGE + LABEL / 2, size=LABEL + 2, anchor="start", bold=True))
    told = f"{drawn.parameters:,} parameters"
    made.append(TextLine(text=told, x=EDGE, y=EDGE + 2 * LABEL, size=NOTE + 0.5, anchor="start", color="soft"))
    for number, line in enumerate(notes):
        y = head + top + EDGE / 2 + (NOTE + 6) * (number + 0.5)
        made.append(TextLine(text=line, x=EDGE, y=y, size=NOTE, anchor="start", color="soft"))
    return made, width, height


def _column(column: Column, centre: float, loops: int) -> _Drawn:
    drawn = _Drawn(centre, loops, height=GAP)
    if column.reads:
        drawn.shapes.append(TextLine(text=column.reads, x=centre, y=drawn.height - 4, size=NOTE, color="soft"))
        drawn.height += NOTE / 2
    for number, part in enumerate(column.parts):
        if isinstance(part, Repeat):
            _repeat(drawn, part)
        else:
            _part(drawn, part, joined=bool(number or column.reads))
    drawn.rise(arrow=bool(column.gives))
    drawn.named[column.title] = (centre, centre, drawn.height)
    if column.gives:
        for line in reversed(_wrapped(column.gives, NOTE, WIDTH + 2 * FRAME)):
            drawn.height += NOTE
            drawn.shapes.append(TextLine(text=line, x=centre, y=drawn.height - 4, size=NOTE, color="soft"))
            drawn.height += 3
    drawn.height += LABEL
    drawn.shapes.append(TextLine(text=column.title, x=centre, y=drawn.height, size=LABEL, bold=True))
    drawn.height += LABEL / 2
    return drawn


def _part(drawn: _Drawn, part: Part, *, joined: bool = True) -> None:
    match part:
        case Box():
            _box(drawn, part, joined=joined)
        case Add():
            _add(drawn, part)
        case DrawnResidual():
            _residual(drawn, part)
        case Beside():
            _beside(drawn, part.boxes)


def _add(drawn: _Drawn, part: Add) -> None:
    """Draws a sum with its label and notes to the right."""
    lines = (part.label, *part.notes)
    above = max(0.0, len(lines) * (NOTE + 2) / 2 - PLUS - GAP / 2)  # where the text is higher than the sum
    drawn.rise(above, arrow=False)
    _plus(drawn)
    x, middle = drawn.centre + PLUS + 6, drawn.height - PLUS
    for number, line in enumerate(lines):
        y = middle + ((len(lines) - 1) / 2 - number) * (NOTE + 2)
        color = "soft" if number else "ink"
        drawn.shapes.append(TextLine(text=line, x=x, y=y, size=NOTE, anchor="start", color=color))
    drawn.rise(above, arrow=False)


def _plus(drawn: _Drawn) -> None:
    drawn.rise()
    y = drawn.height + PLUS
    drawn.shapes.append(Circle(x=drawn.centre, y=y, radius=PLUS))
    for dx, dy in ((PLUS - 4, 0.0), (0.0, PLUS - 4)):
        drawn.shapes.append(Line(points=((drawn.centre - dx, y - dy), (drawn.centre + dx, y + dy))))
    drawn.height += 2 * PLUS


def _box(drawn: _Drawn, box: Box, *, joined: bool = True) -> None:
    if joined:
        drawn.rise()
    height = _filled(drawn.shapes, box, drawn.centre, drawn.height, WIDTH)
    if box.name:
        left, right = drawn.centre - WIDTH / 2, drawn.centre + WIDTH / 2
        drawn.named[box.name] = (left, right, drawn.height + height / 2)
    drawn.height += height


def _filled(shapes: list[Shape], box: Box, centre: float, bottom: float, width: float) -> float:
    """Draws a box with its text, and returns its height."""
    lines = _lines(box, width)
    height = _height(box, width)
    x = centre - width / 2
    shapes.append(Rectangle(x=x, y=bottom, width=width, height=height, fill=box.kind))
    at = bottom + height - 4
    for line, size, color in lines:
        at -= size / 2 + 2
        shapes.append(TextLine(text=line, x=centre, y=at, size=size, color=color))
        at -= size / 2 + 2
    return height


def _lines(box: Box, width: float) -> list[tuple[str, float, str]]:
    """The lines of a box's text, with their font sizes and colours."""
    labels = _wrapped(box.label, LABEL, width - 12)
    notes = [line for note in box.notes for line in _wrapped(note, NOTE, width - 8)]
    return [(line, LABEL, "ink") for line in labels] + [(line, NOTE, "soft") for line in notes]


def _height(box: Box, width: float) -> float:
    return 9 + sum(size + 4 for _, size, _ in _lines(box, width))


def _residual(drawn: _Drawn, part: DrawnResidual) -> None:
    drawn.rise(GAP / 2, arrow=False)
    split = drawn.height
    for box in part.branch:
        _box(drawn, box)
    side = drawn.centre + drawn.loops * (WIDTH / 2 + LOOP)
    if part.norm is None:
        _plus(drawn)
        enters, y = drawn.centre + drawn.loops * PLUS, drawn.height - PLUS
    else:
        below = drawn.height + GAP
        _box(drawn, part.norm)
        enters, y = drawn.centre + drawn.loops * WIDTH / 2, (below + drawn.height) / 2
    drawn.shapes.append(Line(points=((drawn.centre, split), (side, split), (side, y), (enters, y)), arrow=True))


def _beside(drawn: _Drawn, boxes: Sequence[Box]) -> None:
    """Draws narrow boxes side by side; the line splits below them, and joins above them."""
    drawn.rise(GAP / 2, arrow=False)
    split, room = drawn.height, WIDTH + 2 * FRAME
    width = (room - 8 * (len(boxes) - 1)) / len(boxes)
    top = split + GAP + max(_height(box, width) for box in boxes)
    for number, box in enumerate(boxes):
        centre = drawn.centre - room / 2 + width / 2 + number * (width + 8)
        drawn.shapes.append(Line(points=((drawn.centre, split), (centre, split), (centre, split + GAP)), arrow=True))
        height = _filled(drawn.shapes, box, centre, split + GAP, width)
        above = ((centre, split + GAP + height), (centre, top + GAP / 2), (drawn.centre, top + GAP / 2))
        drawn.shapes.append(Line(points=above))
    drawn.height = top + GAP / 2


def _repeat(drawn: _Drawn, part: Repeat) -> None:
    at, bottom = len(drawn.shapes), drawn.height + GAP / 2
    drawn.rise(GAP / 2, arrow=False)
    for inner in part.parts:
        _part(drawn, inner)
    each = sum(parameters_of(inner) for inner in part.parts)
    told = [f"{each:,} each", *_wrapped(part.note, NOTE, WIDTH / 2)] if part.note else [f"{each:,} each"]
    drawn.rise(max(LABEL + 20, 12 + (NOTE + 2) * len(told)), arrow=False)
    left, width = drawn.centre - WIDTH / 2 - FRAME + 3, WIDTH + 2 * FRAME - 6
    height = drawn.height - bottom
    frame = Rectangle(x=left, y=bottom, width=width, height=height, fill="frame", line="frame_line", radius=9.0)
    drawn.shapes.insert(at, frame)
    x, y = left + 10, drawn.height - 16
    drawn.shapes.append(TextLine(text=f"{part.times} x", x=x, y=y, size=LABEL + 2, anchor="start", bold=True))
    for number, line in enumerate(told):
        x, y = left + width - 8, drawn.height - 14 - number * (NOTE + 2)
        drawn.shapes.append(TextLine(text=line, x=x, y=y, size=NOTE, anchor="end", color="soft"))
    if part.name:
        drawn.named[part.name] = (left, left + width, (bottom + drawn.height) / 2)


def _joined(
    drawn: Architecture, tops: Sequence[tuple[float, float]], top: float, width: float
) -> tuple[list[Shape], float]:
    assert drawn.joined is not None
    shapes: list[Shape] = [
        Line(points=((centre, height + 2), (centre, top + GAP + 4)), arrow=True) for centre, height in tops
    ]
    height = top + GAP + 4 + _filled(shapes, drawn.joined, width / 2, top + GAP + 4, width - 2 * EDGE - 2 * FRAME)
    shapes.append(Line(points=((width / 2, height), (width / 2, height + GAP)), arrow=True))
    shapes.append(TextLine(text=drawn.gives, x=width / 2, y=height + GAP + NOTE, size=NOTE, color="soft"))
    return shapes, height + GAP + 2 * NOTE


def _links(drawn: Architecture, columns: Sequence[_Drawn]) -> list[Shape]:
    """Lines from the right edge of each source, up or down between the columns, to the left edge of the target."""
    shapes: list[Shape] = []
    for number, link in enumerate(drawn.links):
        source = next(column for column in columns if link.source in column.named)
        target = next(column for column in columns if link.target in column.named)
        (_, right, y), (left, _, end) = source.named[link.source], target.named[link.target]
        x = source.centre + WIDTH / 2 + FRAME + 8 + (BETWEEN - 16) / 2 + 10.0 * number
        shapes.append(Line(points=((right, y), (x, y), (x, end), (left, end)), arrow=True))
    return shapes


def _wrapped(text: str, size: float, room: float) -> list[str]:
    """Breaks the text into lines that fit into `room`; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _turned(shape: Shape, height: float) -> Shape:
    """Flips y: from upwards above the bottom to downwards below the top."""
    match shape:
        case Rectangle():
            return replace(shape, y=height - shape.y - shape.height)
        case Line():
            return replace(shape, points=tuple((x, height - y) for x, y in shape.points))
        case _:
            return replace(shape, y=height - shape.y)
