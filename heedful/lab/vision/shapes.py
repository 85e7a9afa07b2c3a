"""Pictures of one coloured shape each, and a small ViT that learns to name them."""

from functools import cache
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.data.made.shapes import COLOURS, KINDS, scene
from heedful.lab.learning import learn
from heedful.models.vision_presets import ViTSize, vit_config
from heedful.models.vit import ViT

SIDE, PATCH, MANY, LEAST = 48, 8, 3000, 13
CLASSES = [f"{colour} {kind}" for colour in COLOURS for kind in KINDS]


class Pictures(NamedTuple):
    """`pixels` (B, 3, S, S) from -1 to 1, the indices of their CLASSES (B), and the masks of the shapes (B, S, S)."""

    pixels: Tensor
    labels: Tensor
    masks: Tensor


@cache
def pictures(part: str, count: int = MANY) -> Pictures:
    """Pictures whose shape is large enough, on a uniform grey background, so that a few hundred steps are enough."""
    drawn = (scene(part, number, size=SIDE, most=1) for number in range(10 * count))
    kept = [*islice((one for one in drawn if one.shapes[0].box[2] - one.shapes[0].box[0] >= LEAST), count)]
    pixels = torch.stack([torch.from_numpy(one.pixels).permute(2, 0, 1) for one in kept]).float() / 127.5 - 1
    masks = torch.stack([torch.from_numpy(one.mask) > 0 for one in kept])
    return Pictures(pixels * masks[:, None], torch.tensor([CLASSES.index(str(one.shapes[0])) for one in kept]), masks)


@cache
def vit(steps: int) -> ViT:
    torch.manual_seed(0)
    size = ViTSize(d_model=48, n_layers=2, n_heads=4, patch=PATCH, size=SIDE, n_classes=len(CLASSES))
    model, train = ViT(vit_config(size)), pictures("train")
    order = torch.randint(len(train.labels), (steps, 32), generator=torch.Generator().manual_seed(0))
    learn(
        model,
        lambda step: cross_entropy(model(train.pixels[order[step]]), train.labels[order[step]]),
        steps=steps,
        lr=2e-3,
    )
    return model
