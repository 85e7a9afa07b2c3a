"""A detector learns where the one rectangle of a picture is."""

import torch

from heedful.data.images.boxes import BoxedImages, BoxedPart, Thing
from heedful.metrics.boxes import ScoredBox, average_precision
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

SIZE = 24


def rectangles(count: int, seed: int) -> BoxedPart:
    draw = torch.Generator().manual_seed(seed)
    images, things = torch.randint(0, 60, (count, 1, SIZE, SIZE), generator=draw, dtype=torch.uint8), []
    for i in range(count):
        width, height = torch.randint(6, 13, (2,), generator=draw).tolist()
        left = int(torch.randint(0, SIZE - width + 1, (1,), generator=draw))
        upper = int(torch.randint(0, SIZE - height + 1, (1,), generator=draw))
        images[i, 0, upper : upper + height, left : left + width] += 150
        things.append((Thing("it", (float(left), float(upper), float(left + width), float(upper + height))),))
    return BoxedPart(images, things, [str(i) for i in range(count)])


def test_rectangles(tmp_path):
    """Beside the box of middling size in the middle of every picture."""
    data = BoxedImages(rectangles(1000, 0), rectangles(100, 1), {}, "made", channels=1, size=(SIZE, SIZE))
    guess = average_precision([[ScoredBox("it", 1.0, (7.0, 7.0, 17.0, 17.0))]] * 100, data.valid.things)
    recipe = build(
        {
            "task": "detect",
            "model": {
                "d_model": 32,
                "n_heads": 2,
                "d_ff": 64,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "n_queries": 2,
                "backbone": {"widths": [32], "depths": [1], "kind": "basic", "stem": 16, "norm": "group"},
            },
            "images": {"batch": 32, "augment": "none"},
            "train": {"steps": 120, "lr": 4e-3, "warmup": 20, "eval_every": 120, "average": 0.95, "precision": "fp32"},
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=data))
    assert guess["map50"] < 0.1
    assert done.scores["valid"]["map50"] >= 0.7
