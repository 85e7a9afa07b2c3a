"""A segmenter learns which shape a pixel belongs to: colours do not tell."""

import torch

from heedful.data.images.masks import SHAPES, MaskedImages, MaskedPart
from heedful.data.made import shapes
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished


def scenes(part: str, count: int) -> MaskedPart:
    made = [shapes.scene(part, number, size=32, most=2) for number in range(count)]
    pixels = torch.stack([torch.from_numpy(one.pixels).permute(2, 0, 1) for one in made])
    return MaskedPart(pixels, torch.stack([torch.from_numpy(one.mask)[None] for one in made]), [""] * count)


def test_shapes(tmp_path):
    """All ground has a mean of less than 0.25, and perfect outlines that are all called circles about 0.33."""
    data = MaskedImages(
        scenes("train", 600), scenes("valid", 60), {}, "made", channels=3, size=(32, 32), classes=SHAPES
    )
    recipe = build(
        {
            "task": "segment",
            "preset": "segformer-nano",
            "model": {"widths": [16, 32, 48], "depths": [1, 1, 1], "heads": [1, 2, 3], "d_head": 32},
            "images": {"batch": 16},
            "train": {"steps": 260, "lr": 4e-3, "warmup": 20, "eval_every": 260, "average": 0.95, "precision": "fp32"},
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=data))
    assert done.scores["valid"]["miou"] >= 0.38
