"""Inspects an image classifier: its attention to the patches of a picture."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F

from heedful.data.images.files import read_image
from heedful.errors import InputError
from heedful.look.draw import to_bytes
from heedful.look.overlay import Maps, maps_view, picture_page, rollout, sheet
from heedful.look.record import record
from heedful.models.vit import ViT
from heedful.models.windows import WindowBlock
from heedful.run.task import Looked, NamedWeights
from heedful.tasks.classify_images.use import ImageClassifier
from heedful.tasks.shared.options import PatchOptions


@dataclass(frozen=True)
class PictureLook:
    """A picture, its labels with their probabilities, the best first, and the attention maps."""

    file: str
    labels: list[tuple[str, float]]
    maps: Maps


def look_at_picture(
    classifier: ImageClassifier, file: str | Path, *, layers: str | Sequence[str] = "*", patch: int | None = None
) -> PictureLook:
    """Classifies a picture and records the attention. `layers` selects by name, such as "stack.blocks.3.*". The maps
    are those of the head's input: the first token, or, in a model without one, the mean over all patches; or those of
    one `patch`, in a model with windows zero outside of its own, and in a later stage of the one that it is merged
    into. The rollout is over all layers, whichever are selected. Raises InputError for a patch that does not exist."""
    prepared, model = classifier.spec.preparation, classifier.model
    picture = prepared.fitted(read_image(file, channels=prepared.channels), where=str(file))
    assert model.head is not None
    pixels = prepared.normalised(prepared.scaled(picture[None]))
    with torch.inference_mode(), record(model) as recording, record(model, layers) as chosen:
        logits = model(pixels.to(model.head.weight.device))
    rows, columns = model.config.patches.grid_of(picture.shape[1:])
    grids = [(rows >> stage, columns >> stage) for stage in range(1 + len(model.stages))]
    stages = {name: _stage(name) for name in recording.names}
    every = {name: _of_picture(model, name, recording.weights(name), grids[stages[name]]) for name in stages}
    if patch is not None and not 0 <= patch < rows * columns:
        raise InputError(f"{rows} x {columns} patches, no patch {patch}", fix="they are counted from 0, row by row")

    def over(weights: torch.Tensor, stage: int, keys: int) -> torch.Tensor:
        """The weights of what is asked for, at this stage, over the grid of the stage `keys`."""
        (h, w), grid = grids[stage], grids[keys]
        asks = slice(None) if model.cls is None else slice(1)  # what the head reads
        if patch is not None:
            asked = (patch // columns >> stage) * w + (patch % columns >> stage)
            asks = slice(asked - h * w, asked - h * w + 1 or None)  # the last tokens are the patches
        return weights[..., asks, -grid[0] * grid[1] :].mean(-2).unflatten(-1, grid)

    together = rollout([weights for name, weights in every.items() if stages[name] == 0])
    for stage in range(1, len(grids)):
        inside = rollout([weights for name, weights in every.items() if stages[name] == stage])
        together = inside @ _merged(grids[stage - 1]) @ together
    shown = {name: over(every[name], stages[name], stages[name]) for name in chosen.names}
    maps = Maps(picture, shown, over(together, len(model.stages), 0))
    chances = logits.float().softmax(1)[0].tolist()
    labels = sorted(zip(classifier.spec.labels, chances, strict=True), key=lambda item: -item[1])
    return PictureLook(str(file), labels, maps)


def _stage(name: str) -> int:
    """Of which stage a layer is, by its name."""
    part, _, rest = name.partition(".")
    return int(rest.partition(".")[0]) + 1 if part == "stages" else 0


def _merged(grid: tuple[int, int]) -> torch.Tensor:
    """The share (Q, P) of each patch of a grid in each of the merged ones."""
    P = grid[0] * grid[1]
    return F.avg_pool2d(torch.eye(P).view(P, 1, *grid), 2).flatten(1).mT


def _of_picture(model: ViT, name: str, weights: torch.Tensor, grid: tuple[int, int]) -> torch.Tensor:
    """The weights (H, T, T) of one picture, from those that were recorded."""
    block = model.get_submodule(name.rpartition(".")[0])
    return block.over_picture(weights, grid) if isinstance(block, WindowBlock) else weights[0]


def draw_picture(looked: PictureLook, kind: str, *, head: int | None = None) -> bytes:
    """A .png, .svg or .html file, or the JSON that a page draws it from, of one `head` of each layer or of all heads.
    Raises InputError for a head that does not exist."""
    maps = looked.maps
    if head is not None:
        most = min(len(heads) for heads in maps.layers.values())
        if head >= most:
            raise InputError(f"{most} heads, no head {head}", fix="--head counts from 0")
        one = {name: heads[head : head + 1] for name, heads in maps.layers.items()}
        maps = replace(maps, layers=one, first=head)
    if kind == "json":
        return json.dumps(maps_view(maps, title=Path(looked.file).name, said=looked.labels[:5])).encode()
    if kind == "html":
        return picture_page(maps, title=Path(looked.file).name, said=looked.labels[:5]).encode()
    label, chance = looked.labels[0]
    return to_bytes(
        sheet(maps, title=f"{Path(looked.file).name}: {label} {chance:.3f}"), "png" if kind == "png" else "svg"
    )


def look_picture(classifier: ImageClassifier, file: str, kind: str, options: PatchOptions) -> Looked:
    seen = look_at_picture(classifier, file, layers=options.layer or "*", patch=options.patch)
    label, chance = seen.labels[0]
    facts = {"input": file, "label": label, "layers": list(seen.maps.layers)}
    return Looked(draw_picture(seen, kind, head=options.head), f"{file}\n  -> {label} {chance:.3f}", facts)


def attention_on_picture(classifier: ImageClassifier, file: str, options: PatchOptions) -> dict[str, NamedWeights]:
    """The attention that `look_picture` draws."""
    layers = look_at_picture(classifier, file, layers=options.layer or "*", patch=options.patch).maps.layers
    return {name: NamedWeights(weights, ("head", "row", "column"), {}) for name, weights in layers.items()}
