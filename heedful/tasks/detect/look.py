"""Inspects a detector: the attention of the query of each detected object (Carion et al. 2020, figure 6)."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from matplotlib.patches import Rectangle
from torch import Tensor

from heedful.data.images.files import read_image
from heedful.look.draw import to_bytes
from heedful.look.overlay import each_page, enlarged, map_view, over_each, picture_view, raised
from heedful.look.record import record
from heedful.metrics.boxes import ScoredBox
from heedful.run.task import Looked, NamedWeights, NoOptions
from heedful.tasks.detect.use import Detector

MOST = 8  # queries, the most probable first


@dataclass(frozen=True)
class ThingsLook:
    """A picture as the model reads it, h x w pixels of N channels, and the rows and columns of its file; the detected
    objects, with boxes in the pixels that the model reads; and for each its query's attention in the last layer, as the
    mean over heads, in R rows and C columns of features."""

    file: str
    picture: UInt8[Tensor, "N h w"]
    size: tuple[int, int]
    found: list[ScoredBox]
    maps: list[Float[Tensor, "R C"]]


def look_at_things(detector: Detector, file: str | Path, *, threshold: float = 0.5) -> ThingsLook:
    """Detects objects with at least this probability, or the most probable one where there is none. Raises InputError
    or MissingError."""
    prepared, model = detector.spec.preparation, detector.model
    whole = read_image(file, channels=prepared.channels)
    picture, size = prepared.fitted(whole, where=str(file)), (whole.shape[1], whole.shape[2])
    pixels = prepared.normalised(prepared.scaled(picture[None])).to(model.class_head.weight)
    name = f"decoder.blocks.{len(model.decoder.blocks) - 1}.cross_attention"
    with torch.inference_mode(), record(model, name) as recording:
        logits, boxes = (part.float().cpu() for part in model(pixels))
        rows, columns = model.backbone(pixels).shape[-2:]
    weights = recording.weights(name)[0].mean(0).unflatten(-1, (rows, columns))
    listed = detector.found(logits[-1, 0], boxes[-1, 0], (picture.shape[1], picture.shape[2]))
    order = sorted(range(len(listed)), key=lambda query: -listed[query].score)
    sure = [query for query in order if listed[query].score >= threshold][:MOST] or order[:1]
    return ThingsLook(str(file), picture, size, [listed[query] for query in sure], [weights[query] for query in sure])


def draw_things(looked: ThingsLook, kind: str) -> bytes:
    """The picture, and for each object its map and box over it, as a .png, .svg or .html file, or the JSON that a page
    draws it from."""
    if kind == "json":
        pairs = enumerate(zip(looked.found, looked.maps, strict=True), 1)
        views = [map_view("what its query looked at", f"{i}: {one.label}", own, one.box) for i, (one, own) in pairs]
        said = [(one.label, one.score) for one in looked.found]
        return json.dumps(picture_view(looked.picture, views, title=Path(looked.file).name, said=said)).encode()
    names = [f"{i}: {one.label} {one.score:.2f}" for i, one in enumerate(looked.found, 1)]
    named, times = dict(zip(names, looked.maps, strict=True)), enlarged(looked.picture)
    boxes = [[times * edge for edge in one.box] for one in looked.found]
    if kind == "html":
        drawn = {name: raised(looked.picture, weights) for name, weights in named.items()}
        for pixels, (left, top, right, bottom) in zip(drawn.values(), boxes, strict=True):
            _frame(pixels, round(left), round(top), round(right) - 1, round(bottom) - 1)
        return each_page(
            looked.picture, drawn, title=Path(looked.file).name, told="where the query of each thing looked"
        ).encode()
    figure = over_each(looked.picture, named, title=Path(looked.file).name)
    for axes, (left, top, right, bottom) in zip(figure.axes[1:], boxes, strict=True):
        corner, size = (left - 0.5, top - 0.5), (right - left, bottom - top)
        axes.add_patch(Rectangle(corner, *size, fill=False, color="cyan", linewidth=1))
    return to_bytes(figure, "png" if kind == "png" else "svg")


def _frame(pixels: UInt8[Tensor, "3 a b"], left: int, top: int, right: int, bottom: int) -> None:
    """Draws the edges of a box, clipped to the picture."""
    cyan = torch.tensor([0, 255, 255], dtype=torch.uint8)[:, None]
    rows, columns = (slice(max(0, first), last + 1) for first, last in ((top, bottom), (left, right)))
    for row in {top, bottom} & {*range(pixels.shape[1])}:
        pixels[:, row, columns] = cyan
    for column in {left, right} & {*range(pixels.shape[2])}:
        pixels[:, rows, column] = cyan


def look_things(detector: Detector, file: str, kind: str, options: NoOptions) -> Looked:
    looked = look_at_things(detector, file)
    told = [f"  {one.label} {one.score:.3f}" for one in looked.found]
    down, across = (own / seen for own, seen in zip(looked.size, looked.picture.shape[1:], strict=True))
    scale = (across, down, across, down)  # scales boxes to the file's own pixels, like `Detector.detect`
    boxes = [
        {**one._asdict(), "box": [times * edge for times, edge in zip(scale, one.box, strict=True)]}
        for one in looked.found
    ]
    return Looked(draw_things(looked, kind), "\n".join([file, *told]), {"input": file, "boxes": boxes})


def attention_on_things(detector: Detector, file: str, options: NoOptions) -> dict[str, NamedWeights]:
    """The attention that `look_things` draws: the mean over the heads of the decoder's last layer."""
    looked = look_at_things(detector, file)
    labels = {"query": [one.label for one in looked.found]}
    return {"cross_attention": NamedWeights(torch.stack(looked.maps), ("query", "row", "column"), labels)}
