"""Accuracy on labelled pictures: of the nearest neighbours, a perceptron and two convolutions, and ours.

    python -m benchmarks.images --data PATH/TO/fashion_mnist --out runs/fashion --minutes 10
    python -m benchmarks.images --data PATH/TO/fashion_mnist --out runs/fashion-long --minutes 80 --others 8 \\
        --set train.average=0.999
    python -m benchmarks.images --data PATH/TO/fashion_mnist --out runs/fashion-more --minutes 20 --others 0 \\
        --recipe recipes/fashion_mnist_more.py --set start_from=runs/fashion-long
    python -m benchmarks.images --data PATH/TO/cifar10_subset --recipe classify-images --out runs/cifar --minutes 5

Each but the first trains for so many minutes, the others perhaps for fewer, with the threads that torch has, on the
same pictures, prepared and changed in the same way; measuring is left out. The perceptron is 256-128-100 wide, and the
convolutions have 32 and 64 channels of 5 x 5, after the table that Xiao et al. 2017 keep beside their data (0.883, and
0.922 for a smaller net of two convolutions, on the test pictures). Ours is chosen by the validation pictures: its
figure on those is a little too good.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.data.images.labelled import Part
from heedful.errors import HeedError
from heedful.run.events import Measured, Note
from heedful.run.recipe import Recipe, override
from heedful.tasks.classify_images.recipe import ClassifyImagesRecipe
from heedful.tasks.classify_images.train import ClassifyImagesJob, ClassifyImagesTask
from heedful.tasks.classify_images.use import ImageClassifier, targets_of
from heedful.tasks.recipes import read_recipe
from heedful.verbs.train import train

RECIPE = Path(__file__).parent.parent / "recipes" / "fashion_mnist.py"
NEIGHBOURS = 5
CHUNK = 250  # pictures at a time


def prepared(job: ClassifyImagesJob, part: Part) -> Iterator[tuple[Tensor, Tensor]]:
    """(pixels, labels) of the pictures as they are for use, some at a time."""
    targets = targets_of(part.labels, job.answers.labels)
    for first in range(0, len(part), CHUNK):
        chosen = range(first, min(first + CHUNK, len(part)))
        yield job.answers.preparation([part.images[i] for i in chosen]), targets[first : first + CHUNK]


@torch.inference_mode()
def accuracy(model: nn.Module, job: ClassifyImagesJob, part: Part) -> float:
    """Where the recipe looks at mirror images too, so does each that it is compared with."""
    right, mirrored = 0, job.answers.mirrored
    for pixels, label in prepared(job, part):
        chances = [model(seen).softmax(1) for seen in ([pixels, pixels.flip(-1)] if mirrored else [pixels])]
        right += int((torch.stack(chances).mean(0).argmax(1) == label).sum())
    return right / len(part)


class Neighbours(nn.Module):
    """The label that most of the nearest training pictures have, each counting by how near it is."""

    def __init__(self, job: ClassifyImagesJob) -> None:
        super().__init__()
        pixels, labels = zip(*prepared(job, job.corpus.train), strict=True)
        self.pixels, self.labels = torch.cat(pixels).flatten(1), F.one_hot(torch.cat(labels)).float()

    def forward(self, pixels: Tensor) -> Tensor:
        near = torch.cdist(pixels.flatten(1), self.pixels).topk(NEIGHBOURS, largest=False)
        return (self.labels[near.indices] / (near.values[:, :, None] + 1e-6)).sum(1)


def perceptron(channels: int, edge: int, labels: int) -> nn.Module:
    widths = [channels * edge * edge, 256, 128, 100]
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], labels))


def convolutions(channels: int, edge: int, labels: int) -> nn.Module:
    def layer(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]

    map_ = [*layer(channels, 32), *layer(32, 64), nn.Flatten()]
    return nn.Sequential(
        *map_, nn.Linear(64 * (edge // 4) ** 2, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, labels)
    )


def trained(model: nn.Module, job: ClassifyImagesJob, minutes: float) -> nn.Module:
    """By Adam, its rate falling to zero over the minutes."""
    task = ClassifyImagesTask(job.corpus.train, job.answers, job.augment, job.recipe)
    epoch, spent = 0, 0.0
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    while spent < 60 * minutes:
        for batch in task.batches(epoch, None):
            begin = time.perf_counter()
            adam.param_groups[0]["lr"] = 1e-3 * max(0.0, 1 - spent / (60 * minutes))
            adam.zero_grad()
            F.cross_entropy(model(task.pixels(batch.pictures, epoch)), task.targets[batch.pictures]).backward()
            adam.step()
            spent += time.perf_counter() - begin
            if spent >= 60 * minutes:
                break
        epoch += 1
    return model.eval()


def ours(recipe: Recipe, job: ClassifyImagesJob, out: Path) -> ImageClassifier:
    for event in train(recipe, out, corpus=job.corpus):
        if isinstance(event, Note):
            print(event.text, flush=True)
        elif isinstance(event, Measured):
            print(f"step {event.step}: {event.scores['accuracy']:.4f} on the validation pictures", flush=True)
    return ImageClassifier.load(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True, type=Path, help="the folder that our run fills")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--recipe", default=str(RECIPE), help="a recipe, or classify-images for its defaults")
    parser.add_argument(
        "--others", type=float, help="minutes for the perceptron and the convolutions, if not as many (0: without them)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a change of our recipe")
    chosen = parser.parse_args()
    others = chosen.minutes if chosen.others is None else chosen.others
    settings = [
        *chosen.set,
        f"data.path={chosen.data!r}",
        f"train.minutes={chosen.minutes}",
        "train.steps=null",
        "train.epochs=null",
    ]
    recipe = override(read_recipe(chosen.recipe), settings)
    assert isinstance(recipe, ClassifyImagesRecipe)
    job = ClassifyImagesJob(recipe)
    corpus, (edge, _), labels = job.corpus, job.answers.preparation.size, len(job.answers.labels)
    print(f"{job.describe()}, {torch.get_num_threads()} threads", flush=True)
    sets = {"valid": corpus.valid, **corpus.tests}
    rows: dict[str, nn.Module] = {f"{NEIGHBOURS} nearest neighbours": Neighbours(job)}
    torch.manual_seed(1)
    for name, make in (("perceptron", perceptron), ("2 convolutions", convolutions)) if others else ():
        rows[f"{name}, {others:g} minutes"] = trained(make(corpus.channels, edge, labels), job, others)
    rows[f"heedful, {chosen.minutes:g} minutes"] = ours(recipe, job, chosen.out).model
    print(f"\n| accuracy | parameters | {' | '.join(sets)} |\n|---|---|{'---|' * len(sets)}")
    for name, model in rows.items():
        found = " | ".join(f"{accuracy(model, job, part):.4f}" for part in sets.values())
        print(f"| {name} | {sum(p.numel() for p in model.parameters()):,} | {found} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except HeedError as error:
        raise SystemExit(f"error: {error}") from None
