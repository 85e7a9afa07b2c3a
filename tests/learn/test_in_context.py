"""A language model learns to take a task from examples: each document names the kinds of its words anew, and the names
of two kinds that it never saw together are understood from four examples, which without any is impossible."""

import random
from itertools import product

from heedful.data.text.documents import Documents
from heedful.data.text.solved import Solved
from heedful.tasks.generate.in_context import Asking, evaluate_in_context, lay_out
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

WORDS = {"red blue green pink": ("hue", "tint", "shade"), "dog cat cow fox": ("beast", "animal", "creature")}
NAMES = tuple(name for names in WORDS.values() for name in names)
HELD_OUT = [("hue", "beast"), ("tint", "animal")]
GPT = {"d_model": 64, "n_heads": 4, "n_layers": 2, "context_length": 64}


def episodes(count: int) -> list[str]:
    """Documents of ten words, each with the name that its kind has there."""
    draw = random.Random(1)
    known = [names for names in product(*WORDS.values()) if names not in HELD_OUT]
    made = []
    for _ in range(count):
        named = [*zip(WORDS, draw.choice(known), strict=True)]
        kinds = [draw.choice(named) for _ in range(10)]
        shots = [Solved(draw.choice(words.split()), name) for words, name in kinds]
        made.append(lay_out("", shots).removesuffix(" "))
    return made


def test_it_learns(tmp_path):
    texts = episodes(1500)
    recipe = build(
        {
            "task": "generate",
            "preset": "gpt-nano",
            "model": GPT,
            "data": {"vocab_size": 320, "across": False},
            "train": {
                "steps": 250,
                "eval_every": 250,
                "tokens": 512,
                "lr": 4e-3,
                "warmup": 30,
                "average": 0.95,
                "precision": "fp32",
            },
        },
        where="test",
    )
    finished(train(recipe, tmp_path / "run", corpus=Documents(texts[40:], texts[:40], {}, "made", (), ())))
    model = LanguageModel.load(tmp_path / "run")
    by_chance = []
    for names in HELD_OUT:
        named = [(word, name) for words, name in zip(WORDS, names, strict=True) for word in words.split()]
        examples = [Solved(word, name, NAMES) for word, name in named] * 5
        none, four = (evaluate_in_context(model, examples, Asking(shots=shots)) for shots in (0, 4))
        written = evaluate_in_context(model, examples, Asking(shots=4, by="match"))
        assert four.accuracy >= 0.8  # in one of sixteen prompts no word is of the kind that is asked
        assert written.accuracy >= 0.8
        assert four.chance == 1 / len(NAMES)
        by_chance.append(none.accuracy)
    assert sum(by_chance) <= 1  # without an example, what is right of one pair of names is wrong of the other
