"""Rectangles, lines, circles and text on a background, as SVG or PNG: for drawings with a layout of their own.

A shape names its colours ("ink", "attention"), which `PALETTES` defines for a light and a dark background. Coordinates
are in pixels, y grows downwards.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from xml.sax.saxutils import escape

from matplotlib.font_manager import FontProperties, findfont
from PIL import Image, ImageDraw, ImageFont

FAMILY = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"
HEAD = 6  # pixels of an arrow's head
PNG_SCALE = 2  # its pixels for each pixel of the layout

# Hues as in figure 1 of Vaswani et al. 2017, light enough for dark text; on a dark background the reverse. Colour alone
# never tells boxes apart: every box has a label.
PALETTES: Mapping[bool, Mapping[str, str]] = {
    False: {
        "ground": "#ffffff",
        "ink": "#1a1a1a",
        "soft": "#575c66",
        "line": "#4a4f58",
        "frame": "#f2f3f5",
        "frame_line": "#9aa0aa",
        "embed": "#fbdcdc",
        "attention": "#fddcb0",
        "mlp": "#c3e3f5",
        "norm": "#f4f3b8",
        "linear": "#d9d9f2",
        "recurrent": "#fddcb0",
        "convolution": "#cfe8cf",
        "softmax": "#c9ead8",
    },
    True: {
        "ground": "#16181d",
        "ink": "#f0f0f0",
        "soft": "#b4bac4",
        "line": "#b4bac4",
        "frame": "#22252c",
        "frame_line": "#6d7480",
        "embed": "#5c2f35",
        "attention": "#6a4416",
        "mlp": "#1d4b66",
        "norm": "#54521c",
        "linear": "#3c3c70",
        "recurrent": "#6a4416",
        "convolution": "#2a5230",
        "softmax": "#1f5541",
    },
}


@dataclass(frozen=True, kw_only=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    fill: str
    line: str = "line"
    radius: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Circle:
    x: float
    y: float
    radius: float
    fill: str = "ground"
    line: str = "line"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line through these points; `arrow`: with a head at the last."""

    points: tuple[tuple[float, float], ...]
    arrow: bool = False
    color: str = "line"


@dataclass(frozen=True, kw_only=True)
class TextLine:
    """One line of text, vertically centred at y."""

    text: str
    x: float
    y: float
    size: float
    anchor: Literal["start", "middle", "end"] = "middle"
    color: str = "ink"
    bold: bool = False


Shape = Rectangle | Circle | Line | TextLine


def svg(shapes: Sequence[Shape], width: float, height: float, *, title: str, dark: bool = False) -> bytes:
    """An SVG file: the same shapes give the same bytes, and text stays text."""
    colors = PALETTES[dark]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="{FAMILY}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" fill="{colors["ground"]}"/>',
        *(_svg(shape, colors) for shape in shapes),
        "</svg>",
    ]
    return ("\n".join(parts) + "\n").encode()


def _svg(shape: Shape, colors: Mapping[str, str]) -> str:
    match shape:
        case Rectangle():
            return (
                f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" height="{shape.height:g}" '
                f'rx="{shape.radius:g}" fill="{colors[shape.fill]}" stroke="{colors[shape.line]}"/>'
            )
        case Circle():
            return (
                f'<circle cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}" fill="{colors[shape.fill]}" '
                f'stroke="{colors[shape.line]}"/>'
            )
        case Line():
            points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
            color = colors[shape.color]
            drawn = f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.3"/>'
            if not shape.arrow:
                return drawn
            corners = " ".join(f"{x:g},{y:g}" for x, y in _arrow_head(shape.points))
            return f'{drawn}<polygon points="{corners}" fill="{color}"/>'
        case TextLine():
            weight = ' font-weight="bold"' if shape.bold else ""
            return (
                f'<text x="{shape.x:g}" y="{shape.y + 0.35 * shape.size:g}" font-size="{shape.size:g}" '
                f'text-anchor="{shape.anchor}" fill="{colors[shape.color]}"{weight}>{escape(shape.text)}</text>'
            )


def png(shapes: Sequence[Shape], width: float, height: float, *, dark: bool = False) -> bytes:
    """A PNG file, with `PNG_SCALE` pixels for each pixel of the layout."""
    colors, scale = PALETTES[dark], PNG_SCALE
    image = Image.new("RGB", (round(width * scale), round(height * scale)), colors["ground"])
    draw = ImageDraw.Draw(image)
    for shape in shapes:
        match shape:
            case Rectangle():
                x, y = shape.x * scale, shape.y * scale
                corners = (x, y, x + shape.width * scale, y + shape.height * scale)
                fill, line = colors[shape.fill], colors[shape.line]
                draw.rounded_rectangle(corners, shape.radius * scale, fill=fill, outline=line, width=scale)
            case Circle():
                x, y, r = shape.x * scale, shape.y * scale, shape.radius * scale
                fill, line = colors[shape.fill], colors[shape.line]
                draw.ellipse((x - r, y - r, x + r, y + r), fill=fill, outline=line, width=scale)
            case Line():
                draw.line([(x * scale, y * scale) for x, y in shape.points], fill=colors[shape.color], width=scale)
                if shape.arrow:
                    head = [(x * scale, y * scale) for x, y in _arrow_head(shape.points)]
                    draw.polygon(head, fill=colors[shape.color])
            case TextLine():
                anchor = {"start": "lm", "middle": "mm", "end": "rm"}[shape.anchor]
                font = _font(round(shape.size * scale), shape.bold)
                place = (shape.x * scale, shape.y * scale)
                draw.text(place, shape.text, fill=colors[shape.color], font=font, anchor=anchor)
    data = io.BytesIO()
    image.save(data, "png")
    return data.getvalue()


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a text in pixels, in DejaVu Sans: few fonts are wider."""
    return _font(100, bold).getlength(text) * size / 100


@lru_cache(maxsize=32)
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with Matplotlib."""
    return ImageFont.truetype(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")), size)


def _arrow_head(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of an arrowhead at the last point. The last segment must be horizontal or vertical."""
    (x0, y0), (x, y) = points[-2], points[-1]
    along, across = (0.0 if x == x0 else (x - x0) / abs(x - x0)), (0.0 if y == y0 else (y - y0) / abs(y - y0))
    back_x, back_y, half = x - along * HEAD, y - across * HEAD, HEAD / 2
    return [(x, y), (back_x + across * half, back_y + along * half), (back_x - across * half, back_y - along * half)]
