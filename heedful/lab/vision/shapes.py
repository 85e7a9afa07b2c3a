"""Pictures of coloured shapes, one each, and small models that learn to tell them."""

from functools import cache
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.data.made.shapes import COLOURS, KINDS, scene
from heedful.lab.learning import learn
from heedful.lab.whole_words import Words
from heedful.models.clip import CLIP
from heedful.models.vision_presets import ClipSize, ViTSize, clip_config, vit_config
from heedful.models.vit import ViT
from heedful.training.loss import contrastive

SIDE, PATCH, MANY, LEAST = 48, 8, 3000, 13
CLASSES = [f"{colour} {kind}" for colour in COLOURS for kind in KINDS]
NEW = ("red triangle", "blue circle", "yellow square")  # of which no picture is shown with its text


class Pictures(NamedTuple):
    """`pixels` (B, 3, S, S) from -1 to 1, what is on them (B), and where the shape is (B, S, S)."""

    pixels: Tensor
    labels: Tensor
    masks: Tensor

    def of(self, rows: Tensor) -> "Pictures":
        return Pictures(self.pixels[rows], self.labels[rows], self.masks[rows])


@cache
def pictures(part: str, count: int = MANY) -> Pictures:
    """Those whose shape is large enough to be told, on an even grey ground: a few hundred steps are to be enough."""
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


@cache
def texts() -> Words:
    return Words([f"a {name}" for name in CLASSES])


def tokens(names: list[str]) -> Tensor:
    return texts().rows([f"a {name}" for name in names], begin=True, end=True)[0]


@cache
def clip(steps: int) -> CLIP:
    """Pictures and their texts, all but the new combinations."""
    torch.manual_seed(0)
    size = ClipSize(
        d_common=32, image_width=48, image_layers=2, image_heads=4, patch=PATCH, size=SIDE,
        text_width=32, text_layers=1, text_heads=2, context_length=8,
    )  # fmt: skip
    model = CLIP(clip_config(size, vocab_size=len(texts()), end=2))
    every = pictures("train")
    known = torch.tensor([CLASSES[label] not in NEW for label in every.labels.tolist()])
    train = every.of(known.nonzero()[:, 0])
    generator = torch.Generator().manual_seed(0)

    def loss(step: int) -> Tensor:
        rows = torch.randint(len(train.labels), (32,), generator=generator)
        labels = train.labels[rows]
        similarity = model(train.pixels[rows], tokens([CLASSES[label] for label in labels.tolist()]))
        found = contrastive(similarity, labels[:, None] == labels)
        return found.total / found.count

    learn(model, loss, steps=steps, lr=3e-3)
    return model
