"""A classifier of pictures learns where something is, which no count of pixels tells."""

import torch

from heedful.data.images.labelled import LabelledImages, Part
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

LABELS = ["upper left", "upper right", "lower left", "lower right"]


def pictures(n: int, seed: int) -> Part:
    """A bright dot in one quarter, and a dim one anywhere."""
    draw = torch.Generator().manual_seed(seed)
    images = torch.zeros(n, 1, 16, 16, dtype=torch.uint8)
    for i in range(n):
        row, column, other_row, other_column = torch.randint(0, 7, (4,), generator=draw).tolist()
        images[i, 0, other_row * 2 : other_row * 2 + 2, other_column * 2 : other_column * 2 + 2] = 120
        row, column = row + 8 * (i % 4 // 2), column + 8 * (i % 2)
        images[i, 0, row : row + 2, column : column + 2] = 255
    return Part(images, [LABELS[i % 4] for i in range(n)])


def test_pictures(tmp_path):
    """Chance is 1/4."""
    data = LabelledImages(pictures(2000, 0), pictures(200, 1), {}, "made", channels=1, size=(16, 16))
    recipe = build(
        {
            "task": "classify-images",
            "model": {"n_layers": 1, "d_model": 32, "n_heads": 2, "patch": 4},
            "images": {"batch": 64, "augment": "none"},
            "train": {"steps": 120, "warmup": 10, "eval_every": 120, "precision": "fp32", "average": 0.9},
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=data))
    assert done.scores["valid"]["accuracy"] >= 0.9
