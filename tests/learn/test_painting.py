"""A painter learns what pictures of stripes have in common: which colours there are tells nothing of it."""

import math

import torch
from PIL import Image

import heedful
from heedful.data.images.labelled import LabelledImages, Part
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

SIZE = 8


def stripes(n: int, seed: int) -> Part:
    """Pictures whose columns have one of four greys each."""
    draw = torch.Generator().manual_seed(seed)
    columns = 85 * torch.randint(0, 4, (n, 1, 1, SIZE), generator=draw)
    return Part(columns.expand(n, 1, SIZE, SIZE).to(torch.uint8).contiguous(), [""] * n)


def test_stripes(tmp_path):
    """Without their places, pixels have log 4 = 1.39 nats each; with them the first row alone tells anything, and that
    is an eighth of a picture: 0.17. Guessing completes a quarter of the pixels."""
    data = LabelledImages(stripes(600, 0), stripes(40, 1), {}, "made", channels=1, size=(SIZE, SIZE))
    recipe = build(
        {
            "task": "paint",
            "model": {"n_layers": 2, "d_model": 32, "n_heads": 2},
            "images": {"size": SIZE, "colours": 4, "batch": 32},
            "train": {
                "steps": 120,
                "lr": 1e-2,
                "muon_lr": 0.05,
                "warmup": 10,
                "eval_every": 120,
                "average": 0.9,
                "precision": "fp32",
            },
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=data))
    assert done.scores["valid"]["loss"] <= 0.25 * math.log(4)
    files = [tmp_path / f"{i}.png" for i in range(10)]
    for i, file in enumerate(files):
        Image.fromarray(data.valid.images[i, 0].numpy()).save(file)
    painter = heedful.load(tmp_path / "run")
    made = painter.paint(painter.begin(files, keep=0.5), temperature=0.0)[:, 0]
    right = (made == data.valid.images[:10])[:, :, SIZE // 2 :].float().mean()
    assert right >= 0.9
