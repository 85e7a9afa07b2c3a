"""Draws attention maps over a picture: as figures, and as one self-contained page.

L layers, H heads, T tokens, of which the last P are the picture's patches, R rows and C columns of them; N channels and
h x w pixels.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import matplotlib
import numpy
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from heedful.look.labels import token_label
from heedful.look.page import packed, policy_hash
from heedful.look.sheet import data_url

HEAT, STRENGTH = "inferno", 0.65  # colour map, and the opacity of the largest weight
ACROSS = 6  # pictures beside each other
EDGE = 160  # pixels that a small picture is enlarged to


@dataclass(frozen=True)
class Maps:
    """Attention maps of `picture`: of each head of each layer, and of all together (attention rollout)."""

    picture: UInt8[Tensor, "N h w"]
    layers: Mapping[str, Float[Tensor, "H R C"]]
    together: Float[Tensor, "R C"]
    first: int = 0  # the number of the first head


class MapView(TypedDict):
    """A map as the page draws it: R x C weights, row by row, as base64 of little-endian float16; `box` is the box that
    it belongs to (left, top, right, bottom, in pixels)."""

    group: str
    name: str
    rows: int
    columns: int
    weights: str
    box: NotRequired[list[float]]


class PictureView(TypedDict):
    """What the page shows of a picture: the picture as a data URL, its maps, and the model's answers with their
    probabilities. `patches`: whether a patch can be chosen to see what it attended to."""

    title: str
    picture: str
    height: int
    width: int
    maps: list[MapView]
    said: list[tuple[str, float]]
    patches: bool


def map_view(group: str, name: str, weights: Float[Tensor, "R C"], box: Sequence[float] | None = None) -> MapView:
    rows, columns = weights.shape
    made = MapView(group=group, name=name, rows=rows, columns=columns, weights=packed(weights))
    return made if box is None else made | {"box": [float(edge) for edge in box]}


def picture_view(
    picture: UInt8[Tensor, "N h w"],
    maps: Sequence[MapView],
    *,
    title: str,
    said: Sequence[tuple[str, float]],
    patches: bool = False,
) -> PictureView:
    _, height, width = picture.shape
    shown = [(token_label(name, limit=80), chance) for name, chance in said]
    return PictureView(
        title=token_label(title, limit=200),
        picture=_image(picture.expand(3, -1, -1)),
        height=height,
        width=width,
        maps=[*maps],
        said=shown,
        patches=patches,
    )


def maps_view(maps: Maps, *, title: str, said: Sequence[tuple[str, float]]) -> PictureView:
    """All maps: the rollout first; then for each layer the mean over heads, and each head."""
    listed = [map_view("", "rollout over all layers", maps.together)]
    for name, heads in maps.layers.items():
        listed.append(map_view(name, "mean over heads", heads.mean(0)))
        listed += [map_view(name, f"head {maps.first + number}", head) for number, head in enumerate(heads)]
    return picture_view(maps.picture, listed, title=title, said=said, patches=True)


def rollout(weights: Sequence[Float[Tensor, "_ T T"]]) -> Float[Tensor, "T T"]:
    """Attention rollout (Abnar and Zuidema 2020, section 3): the share of each input token (columns) in each output
    token (rows), if a layer's residual keeps half of a token, and attention, as the mean over heads, mixes the rest."""
    T = weights[0].shape[-1]
    whole = torch.eye(T)
    for layer in weights:
        whole = (0.5 * layer.float().mean(0) + 0.5 * torch.eye(T)) @ whole
    return whole


def enlarged(picture: UInt8[Tensor, "N h w"]) -> int:
    """The whole number by which a picture is enlarged."""
    return max(1, EDGE // max(picture.shape[1:]))


def heat_overlay(picture: UInt8[Tensor, "N h w"], weights: Float[Tensor, "R C"]) -> UInt8[Tensor, "3 a b"]:
    """The map over the picture in grey, coloured from 0 to its largest weight; small pictures are enlarged."""
    times = enlarged(picture)
    grey = picture.float().mean(0) / 255
    grey = grey.repeat_interleave(times, 0).repeat_interleave(times, 1)
    size = (grey.shape[0], grey.shape[1])
    heat = F.interpolate(weights.float()[None, None], size=size, mode="bilinear")[0, 0]
    heat = heat / heat.max().clamp(min=1e-12)
    colours = torch.from_numpy(matplotlib.colormaps[HEAT](heat.numpy())[..., :3]).float().permute(2, 0, 1)
    share = STRENGTH * heat.sqrt()
    return (255 * torch.lerp(grey.expand(3, -1, -1), colours, share)).round().byte()


def raised(picture: UInt8[Tensor, "N h w"], map_: Float[Tensor, "R C"]) -> UInt8[Tensor, "3 a b"]:
    """`heat_overlay` of the map less its minimum: its colours range from its smallest to its largest weight."""
    return heat_overlay(picture, map_ - map_.min())


def sheet(maps: Maps, *, title: str) -> Figure:
    """A figure: the picture and the rollout on top; then a row for each layer: the mean over heads, and each head."""
    H = max(len(layer) for layer in maps.layers.values())
    with matplotlib.rc_context({"font.size": 8}):
        figure = Figure(figsize=(1.2 + 1.3 * (H + 1), 0.6 + 1.5 * (len(maps.layers) + 1)), layout="constrained")
        grid = figure.subplots(len(maps.layers) + 1, H + 1, squeeze=False)
        for axes in grid.flat:
            axes.set(xticks=[], yticks=[])
            axes.axis("off")
        _show(grid[0, 0], maps.picture.expand(3, -1, -1), "picture")
        _show(grid[0, 1], heat_overlay(maps.picture, maps.together), "rollout")
        for row, (name, heads) in zip(grid[1:], maps.layers.items(), strict=True):
            _show(row[0], heat_overlay(maps.picture, heads.mean(0)), f"{name}\nmean")
            for number, head in enumerate(heads):
                _show(row[number + 1], heat_overlay(maps.picture, head), f"\nhead {maps.first + number}")
        figure.suptitle(title, parse_math=False, x=0.01, ha="left")
    return figure


def over_each(picture: UInt8[Tensor, "N h w"], maps: Mapping[str, Float[Tensor, "R C"]], *, title: str) -> Figure:
    """A figure of the picture, and of each map over it, coloured from its smallest to its largest weight."""
    across = min(ACROSS, len(maps) + 1)
    down = -(-(len(maps) + 1) // across)
    height = 0.4 + 1.8 * min(1.0, picture.shape[1] / picture.shape[2])  # of a row, with its titles
    with matplotlib.rc_context({"font.size": 8}):
        figure = Figure(figsize=(0.4 + 1.8 * across, 0.4 + height * down), layout="constrained")
        grid = [*figure.subplots(down, across, squeeze=False).flat]
        for axes in grid:
            axes.axis("off")
        for axes in grid[len(maps) + 1 :]:
            axes.remove()
        drawn = {name: raised(picture, weights) for name, weights in maps.items()}
        for axes, (name, pixels) in zip(grid, [("picture", picture.expand(3, -1, -1)), *drawn.items()], strict=False):
            _show(axes, pixels, name)
        figure.suptitle(title, parse_math=False, x=0.01, ha="left")
    return figure


def _show(axes: matplotlib.axes.Axes, pixels: Tensor, title: str) -> None:
    axes.imshow(pixels.permute(1, 2, 0).numpy(), interpolation="nearest")
    axes.set_title(title, fontsize=7, loc="left", parse_math=False)


STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; overflow-wrap: anywhere; }
figure { display: inline-block; margin: 0 .5rem .5rem 0; font-size: 12px; }
img { display: block; width: 112px; height: auto; image-rendering: pixelated; }
img:hover { width: 336px; }
.large img, .large img:hover { width: 260px; }
h2 { font-size: 1rem; margin: 1rem 0 .3rem; }
"""


def picture_page(maps: Maps, *, title: str, said: Sequence[tuple[str, float]]) -> str:
    """All maps as one html file, without scripts or requests; `said` are labels with their probabilities."""
    together = heat_overlay(maps.picture, maps.together)
    whole = [("picture", maps.picture.expand(3, -1, -1)), ("attention rollout", together)]
    parts = [f'<div class="large">{"".join(_figure(pixels, name) for name, pixels in whole)}</div>']
    for name, heads in maps.layers.items():
        parts.append(f"<h2>{html.escape(name)}</h2>")
        parts.append(_figure(heat_overlay(maps.picture, heads.mean(0)), "mean over heads"))
        parts += [
            _figure(heat_overlay(maps.picture, head), f"head {maps.first + number}")
            for number, head in enumerate(heads)
        ]
    return _page(title, ", ".join(f"{token_label(label)} {chance:.3f}" for label, chance in said), parts)


def each_page(
    picture: UInt8[Tensor, "N h w"], maps: Mapping[str, UInt8[Tensor, "3 a b"]], *, title: str, told: str
) -> str:
    """The picture, and the drawn maps (`heat_overlay`) with their names, as such an html file."""
    whole = {"picture": picture.expand(3, -1, -1)} | {token_label(name): drawn for name, drawn in maps.items()}
    figures = "".join(_figure(own, name) for name, own in whole.items())
    return _page(title, told, [f'<div class="large">{figures}</div>'])


def _page(title: str, told: str, parts: Sequence[str]) -> str:
    policy = f"default-src 'none'; img-src data:; style-src '{policy_hash(STYLE)}'"
    name = html.escape(token_label(title, limit=200))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style></head>'
        f"<body><h1>{name}</h1><p>{html.escape(told)}</p>{''.join(parts)}</body></html>\n"
    )


def _figure(pixels: UInt8[Tensor, "3 a b"], caption: str) -> str:
    text = html.escape(caption)
    return f'<figure><img src="{_image(pixels)}" alt="{text}"><figcaption>{text}</figcaption></figure>'


def _image(pixels: UInt8[Tensor, "3 a b"]) -> str:
    return data_url(Image.fromarray(numpy.ascontiguousarray(pixels.permute(1, 2, 0).numpy())))
