"""A model of pictures and texts learns colours, shapes and places apart: it names what it has never seen together."""

import itertools
import random

import torch

import heedful
from heedful.data.images.captions import Captioned, CaptionedImages
from heedful.data.images.files import to_image
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

COLOURS = {"red": (230, 30, 30), "green": (30, 200, 30), "blue": (50, 50, 240), "yellow": (230, 220, 30)}
SHAPES = {
    "square": lambda x, y: (x.abs() <= 3) & (y.abs() <= 3),
    "bar": lambda x, y: (x.abs() <= 3) & (y.abs() <= 0),
    "cross": lambda x, y: ((x.abs() <= 0) | (y.abs() <= 0)) & (x.abs() <= 3) & (y.abs() <= 3),
}
PLACES = {"left": 4, "right": 12}
ALL = [*itertools.product(COLOURS, SHAPES, PLACES)]
NEVER = [("red", "square", "left"), ("green", "bar", "right"), ("blue", "cross", "left"), ("yellow", "square", "right")]


def caption(colour, shape, place):
    return f"a {colour} {shape} on the {place}"


def pictures(kinds, count, seed):
    draw, pixels = random.Random(seed), torch.arange(16)
    images = torch.full((count, 3, 16, 16), 20, dtype=torch.uint8)
    captions = []
    for image in images:
        colour, shape, place = draw.choice(kinds)
        x, y = pixels[None, :] - PLACES[place] - draw.choice((-1, 0)), pixels[:, None] - draw.randint(4, 11)
        shade = [channel + draw.randint(-25, 15) for channel in COLOURS[colour]]
        image[:, SHAPES[shape](x, y)] = torch.tensor(shade, dtype=torch.uint8)[:, None]
        captions.append([caption(colour, shape, place)])
    return Captioned(images, captions)


def test_what_was_never_seen_together(tmp_path):
    """Who knows two of the three is right in one of two at most."""
    seen = [kind for kind in ALL if kind not in NEVER]
    corpus = CaptionedImages(pictures(seen, 1000, 0), pictures(seen, 60, 1), {}, "made", channels=3, size=(16, 16))
    recipe = build(
        {
            "task": "match",
            "model": {"image_width": 48, "image_layers": 2, "text_width": 48, "text_layers": 1, "patch": 4},
            "data": {"vocab_size": 300},
            "images": {"batch": 64, "augment": "none"},
            "train": {"steps": 100, "warmup": 10, "eval_every": 100, "precision": "fp32", "average": 0.9},
        },
        where="test",
    )
    finished(train(recipe, tmp_path / "run", corpus=corpus))
    unseen = pictures(NEVER, 60, 2)
    files = []
    for i in range(len(unseen)):
        to_image(unseen.images[i]).save(tmp_path / f"{i}.png")
        files.append(tmp_path / f"{i}.png")
    found = heedful.load(tmp_path / "run").match(files, [caption(*kind) for kind in ALL])
    right = sum(own[0][0] == captions[0] for own, captions in zip(found, unseen.captions, strict=True))
    assert right / len(files) >= 0.7
