"""A model of pictures and texts learns colours and shapes apart: it names pairs of them that it has never seen."""

import itertools
import random

import torch

import heedful
from heedful.data.captions import Captioned, CaptionedImages
from heedful.data.images import to_image
from heedful.tasks.recipe import build
from heedful.tasks.run import train

COLOURS = {
    "red": (230, 30, 30),
    "green": (30, 200, 30),
    "blue": (50, 50, 240),
    "yellow": (230, 220, 30),
    "pink": (240, 80, 220),
    "white": (230, 230, 230),
}
SHAPES = {
    "square": lambda x, y: (x.abs() <= 4) & (y.abs() <= 4),
    "bar": lambda x, y: (x.abs() <= 7) & (y.abs() <= 1),
    "cross": lambda x, y: ((x.abs() <= 1) | (y.abs() <= 1)) & (x.abs() <= 5) & (y.abs() <= 5),
    "ring": lambda x, y: (x**2 + y**2 <= 36) & (x**2 + y**2 >= 12),
}
PAIRS = [*itertools.product(COLOURS, SHAPES)]
NEVER = [("red", "square"), ("green", "bar"), ("blue", "cross"), ("yellow", "ring")]


def caption(pair):
    return f"a {pair[0]} {pair[1]}"


def pictures(pairs, count, seed):
    draw, rows = random.Random(seed), torch.arange(24)
    images = torch.full((count, 3, 24, 24), 20, dtype=torch.uint8)
    captions = []
    for image in images:
        pair = draw.choice(pairs)
        x, y = (rows - draw.randint(8, 15))[None, :], (rows - draw.randint(8, 15))[:, None]
        inside = SHAPES[pair[1]](x, y)
        shade = [channel + draw.randint(-25, 15) for channel in COLOURS[pair[0]]]
        image[:, inside] = torch.tensor(shade, dtype=torch.uint8)[:, None]
        captions.append([caption(pair), pair[0], f"a {pair[1]}"])
    return Captioned(images, captions)


def test_pairs_that_were_never_seen(tmp_path):
    """Who knows the colours alone, or the shapes alone, is right in one of four."""
    seen = [pair for pair in PAIRS if pair not in NEVER]
    corpus = CaptionedImages(pictures(seen, 1000, 0), pictures(seen, 60, 1), {}, "made", 3, (24, 24))
    recipe = build(
        {
            "task": "match",
            "model": {"image_width": 48, "image_layers": 2, "text_width": 48, "text_layers": 1, "patch": 4},
            "data": {"vocab_size": 300},
            "images": {"batch": 64, "augment": "none"},
            "train": {"steps": 120, "warmup": 10, "eval_every": 120, "precision": "fp32", "average": 0.9},
        },
        where="test",
    )
    for _ in train(recipe, tmp_path / "run", corpus=corpus):
        pass
    unseen = pictures(NEVER, 60, 2)
    files = []
    for i in range(len(unseen)):
        to_image(unseen.images[i]).save(tmp_path / f"{i}.png")
        files.append(tmp_path / f"{i}.png")
    found = heedful.load(tmp_path / "run").match(files, [caption(pair) for pair in PAIRS])
    right = sum(own[0][0] == captions[0] for own, captions in zip(found, unseen.captions, strict=True))
    print(right / len(files))
    assert right / len(files) >= 0.7
