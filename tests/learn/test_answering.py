"""An answerer learns to find what a question asks for: one of a person, a place and a time, in any order."""

import random

from heedful.data.parts import Parts
from heedful.data.text.questions import Question, Span
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

ASKED = {
    "who": ["ada", "ben lee", "cleo", "dan"],
    "where": ["rome", "new york", "oslo", "lima"],
    "when": ["today", "last year", "at noon", "in may"],
}


def question(draw):
    told = {word: draw.choice(words) for word, words in ASKED.items()}
    context = " , ".join(draw.sample([*told.values()], 3))
    word = draw.choice([*ASKED])
    return Question(f"{word} was it ?", context, (Span(told[word], context.index(told[word])),), context)


def test_it_learns(tmp_path):
    draw = random.Random(0)
    corpus = Parts([question(draw) for _ in range(1500)], [question(draw) for _ in range(120)], {}, "made")
    recipe = build(
        {
            "task": "answer",
            "preset": "encoder-tiny",
            "model": {"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": 48, "dropout": 0.0, "order": "pre"},
            "data": {"vocab_size": 400},
            "train": {
                "steps": 180,
                "eval_every": 180,
                "tokens": 512,
                "lr": 3e-3,
                "warmup": 20,
                "average": 0.9,
                "precision": "fp32",
            },
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=corpus))
    assert done.scores["valid"]["exact_match"] >= 0.95  # a third, where the question is not read
