"""A tagger learns labels that a word alone does not tell: what is bought and what is sold, another word says, which
stands anywhere."""

import random

from heedful.data.parts import Parts
from heedful.data.text.tagged import Sentence
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

THINGS, OTHERS = ["apples", "bread", "cups", "hats", "old keys", "red wine"], ["we", "now", "here", "gladly"]


def sentence(draw):
    deal = draw.choice(["buy", "sell"])
    words, labels = [], []
    for part in draw.sample([deal, *draw.sample(THINGS, 2), *draw.sample(OTHERS, 2)], 5):
        own = part.split()
        words += own
        labels += [f"{'I' if n else 'B'}-{deal.upper()}" if part in THINGS else "O" for n in range(len(own))]
    return Sentence(tuple(words), tuple(labels))


def test_it_learns(tmp_path):
    draw = random.Random(0)
    corpus = Parts([sentence(draw) for _ in range(1500)], [sentence(draw) for _ in range(150)], {}, "made")
    recipe = build(
        {
            "task": "tag",
            "model": {"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": 48, "dropout": 0.0, "order": "pre"},
            "data": {"vocab_size": 400},
            "train": {
                "steps": 120,
                "eval_every": 120,
                "tokens": 512,
                "lr": 2e-3,
                "warmup": 20,
                "average": 0.9,
                "precision": "fp32",
            },
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=corpus))
    assert done.scores["valid"]["span_f1"] >= 0.95  # 0.5 by the words alone
