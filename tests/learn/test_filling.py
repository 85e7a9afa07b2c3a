"""An encoder learns to fill masks in sentences whose words tell of each other at a distance: an animal and what it
does, before and after, with other words between."""

import random

from heedful.data.text.documents import Documents
from heedful.tasks.fill.use import Filler
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

CRIES = {"cat": "meows", "dog": "barks", "cow": "moos", "duck": "quacks"}
CRIES |= {"lion": "roars", "horse": "neighs"}
PLACES = ["garden", "house", "barn", "forest", "street", "field"]


def sentences(count: int, seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        one, other, place = draw.choice(list(CRIES)), draw.choice(list(CRIES)), draw.choice(PLACES)
        first = f"The {one} in the {place} {CRIES[one]} at the {other}"
        made.append(f"{first} , and the {other} {CRIES[other]} at the {one} .".split())
    return made


def test_it_learns(tmp_path):
    texts = [" ".join(words) for words in sentences(2500, 1)]
    recipe = build(
        {
            "task": "fill",
            "model": {"d_model": 64, "n_heads": 4, "n_layers": 2, "context_length": 64, "dropout": 0.0},
            "data": {"vocab_size": 400},
            "train": {
                "steps": 200,
                "eval_every": 200,
                "tokens": 512,
                "lr": 4e-3,
                "warmup": 50,
                "average": 0.97,
                "precision": "fp32",
            },
        },
        where="test",
    )
    finished(train(recipe, tmp_path / "run", corpus=Documents(texts[200:], texts[:200], {}, "made", (), ())))
    filler = Filler.load(tmp_path / "run")
    for place in (1, 5, 13):  # an animal that is named again, what it does, and what the other does
        test = sentences(100, 2)
        asked = [" ".join([*words[:place], "<mask>", *words[place + 1 :]]) for words in test]
        named = [own.candidates[0].token for (own,) in filler.fill(asked, top=1)]
        words = [words[place] for words in test]
        assert max(map(words.count, words)) < 25, "what naming one word every time gets right"
        assert sum(one == other for one, other in zip(named, words, strict=True)) >= 95
