"""DETR on blood cells (BCCD, Pascal VOC's layout), beside guessing.

    python -m benchmarks.cells --data PATH/TO/bccd --minutes 30

mAP at an overlap of 0.5 on the test pictures, and while it trains on the validation pictures. Guessing puts the same
boxes into every picture: of each label a grid of the median size, as sure as the label is common.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import fmean, median

from heedful.data.images.boxes import BoxedPart, read_boxed_images, thing_labels
from heedful.metrics.boxes import ScoredBox, average_precision
from heedful.run.events import Finished, Measured
from heedful.tasks.recipes import build
from heedful.verbs.train import train


def guesses(part: BoxedPart, size: tuple[int, int]) -> list[ScoredBox]:
    """What to say of every picture of this many rows and columns, from what is in those to learn from."""
    made, (H, W) = [], size
    for label in thing_labels(part):
        own = [thing.box for things in part.things for thing in things if thing.label == label]
        width, height = median(box[2] - box[0] for box in own), median(box[3] - box[1] for box in own)
        columns, rows = max(1, int(W / width)), max(1, int(H / height))
        share = fmean(sum(thing.label == label for thing in things) for things in part.things) / (rows * columns)
        for i in range(rows):
            for j in range(columns):
                left, upper = (W - width) * (j + 0.5) / columns, (H - height) * (i + 0.5) / rows
                made.append(ScoredBox(label, min(1.0, share), (left, upper, left + width, upper + height)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--preset", default="detr-nano")
    chosen = parser.parse_args()
    data = read_boxed_images(chosen.data)
    test = data.tests["test"]
    said = guesses(data.train, data.size)
    scores = average_precision([said] * len(test), test.things)
    print("| | mAP@0.5 | mAP |\n|---|---|---|")
    print(f"| guessing, test | {scores['map50']:.4f} | {scores['map']:.4f} |", flush=True)
    recipe = build(
        {
            "task": "detect",
            "preset": chosen.preset,
            "data": {"path": chosen.data},
            "images": {"batch": 16, "augment": "strong", "size": 128},
            "train": {
                "minutes": chosen.minutes,
                "optimizer": "muon",
                "lr": 1e-3,
                "muon_lr": 0.01,
                "warmup": 100,
                "average": 0.99,
            },
        },
        where="cells",
    )
    with tempfile.TemporaryDirectory() as folder:
        for event in train(recipe, Path(folder) / "run"):
            match event:
                case Measured(step, _, found):
                    print(f"| step {step}, valid | {found['map50']:.4f} | {found['map']:.4f} |", flush=True)
                case Finished(_, minutes, tests):
                    best = {key: float(value) for key, value in tests["test"].items()}
                    print(f"| best, {minutes:.1f} minutes, test | {best['map50']:.4f} | {best['map']:.4f} |")


if __name__ == "__main__":
    main()
