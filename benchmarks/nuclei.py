"""SegFormer on cell nuclei, beside Otsu's threshold.

    python -m benchmarks.nuclei --data PATH/TO/dsb2018_nuclei --minutes 10

The folder has train/ and val/ with images/ and masks/ each (Data Science Bowl 2018). What is compared is the
intersection over union of nuclei and ground on the validation pictures, of all their pixels together; the threshold
(Otsu 1979) is each picture's own, and the rarer side of it is nuclei.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from heedful.data.images.masks import MaskedPart, read_masked_images
from heedful.run.events import Finished, Measured
from heedful.tasks.recipes import build
from heedful.tasks.segment.use import confusion, overlaps
from heedful.verbs.train import train


def otsu(pixels: Tensor) -> Tensor:
    """Which pixels are nuclei, 1 for true: grey values above the threshold, or below it where those are fewer. The
    threshold leaves the least variance within both sides."""
    grey = pixels.float().mean(0).round().long()
    counts = torch.bincount(grey.flatten(), minlength=256).double()
    below, sums = counts.cumsum(0), (counts * torch.arange(256)).cumsum(0)
    above = below[-1] - below
    between = (sums / below - (sums[-1] - sums) / above).square() * below * above  # between the sides: most
    bright = grey > int(between.nan_to_num(0.0).argmax())
    return (bright if bright.float().mean() <= 0.5 else ~bright).long()


def by_threshold(part: MaskedPart) -> dict[str, float]:
    counts = sum(confusion(otsu(part.images[i]), part.masks[i][0], 2) for i in range(len(part)))
    assert isinstance(counts, Tensor)
    return overlaps(counts, ("ground", "nucleus"))


def curve(data: str, minutes: float, out: Path, preset: str) -> Iterator[tuple[str, dict[str, float]]]:
    plan = {"minutes": minutes, "lr": 1e-3, "warmup": 50, "average": 0.98}
    recipe = build(
        {
            "task": "segment",
            "preset": preset,
            "data": {"path": data},
            "images": {"batch": 8, "augment": "strong"},
            "train": plan,
        },
        where="nuclei",
    )
    for event in train(recipe, out):
        match event:
            case Measured():
                yield f"step {event.step}", event.scores
            case Finished():
                scores = {key: float(value) for key, value in event.scores["valid"].items()}
                yield f"best, {event.minutes:.1f} minutes", scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--preset", default="segformer-micro")
    chosen = parser.parse_args()
    part = read_masked_images(chosen.data).valid
    found = by_threshold(part)
    print("| | nuclei | ground | mean |\n|---|---|---|---|")
    print(f"| Otsu | {found['iou nucleus']:.4f} | {found['iou ground']:.4f} | {found['miou']:.4f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, scores in curve(chosen.data, chosen.minutes, Path(folder) / "run", chosen.preset):
            row = f"{scores['iou thing']:.4f} | {scores['iou ground']:.4f} | {scores['miou']:.4f}"
            print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
