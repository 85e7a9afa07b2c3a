"""A model of texts about pictures learns to look where a question asks; without a look it cannot know."""

import random

import torch

import heedful
from heedful.data.images.captions import Captioned, CaptionedImages
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

COLOURS = {"red": (230, 30, 30), "green": (30, 200, 30), "blue": (50, 50, 240), "grey": (120, 120, 120)}
HALVES = {"left": slice(0, 8), "right": slice(8, 16)}


def pictures(count: int, seed: int) -> Captioned:
    """Two halves of a colour each, and one of two questions."""
    draw, images = random.Random(seed), torch.zeros(count, 3, 16, 16)
    answers, questions = [], []
    for image in images:
        colours = {half: draw.choice([*COLOURS]) for half in HALVES}
        for half, columns in HALVES.items():
            image[:, :, columns] = torch.tensor(COLOURS[colours[half]])[:, None, None]
        half = draw.choice([*HALVES])
        answers.append([colours[half]])
        questions.append([f"what is {half}?"])
    noise = 20 * torch.randn(images.shape, generator=torch.Generator().manual_seed(seed))
    return Captioned((images + noise).clamp(0, 255).byte(), answers, questions)


def test_answers_are_looked_for(tmp_path) -> None:
    corpus = CaptionedImages(pictures(800, 0), pictures(40, 1), {}, "made", channels=3, size=(16, 16))
    unseen, exact = pictures(100, 2), {}
    for blank in (False, True):
        recipe = build(
            {
                "task": "describe",
                "model": {
                    "d_model": 48,
                    "encoder_layers": 2,
                    "decoder_layers": 1,
                    "context_length": 12,
                    "dropout": 0.0,
                },
                "data": {"vocab_size": 300},
                "images": {"batch": 32, "augment": "none", "blank": blank},
                "train": {"steps": 150, "warmup": 10, "eval_every": 150, "precision": "fp32", "average": 0.9},
            },
            where="test",
        )
        finished(train(recipe, tmp_path / str(blank), corpus=corpus))
        exact[blank] = heedful.load(tmp_path / str(blank)).measure(unseen)["exact"]
    assert exact[False] >= 0.9
    assert exact[True] <= 0.5
