"""A classifier learns what the words of a text decide, and which choice a text asks for."""

import random

from heedful.data.text.labelled import Example, Labelled
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

COLOURS, ANIMALS = ["red", "green", "blue", "pink"], ["dog", "cat", "cow", "hen"]


def majority(draw):
    """Are most of five words colours, or animals?"""
    words = [draw.choice(COLOURS + ANIMALS) for _ in range(5)]
    return Example(" ".join(words), label="colours" if sum(word in COLOURS for word in words) > 2 else "animals")


def sought(draw):
    """Which of two or three words is what the text asks for?"""
    asked, others = draw.sample([("a colour", COLOURS), ("an animal", ANIMALS)], 2)
    choices = [draw.choice(asked[1]), *draw.sample(others[1], draw.choice([1, 2]))]
    right = choices[0]
    draw.shuffle(choices)
    return Example(f"name {asked[0]}", "which ?", choices=tuple(choices), choice=choices.index(right))


def learnt(answer, make, out, preset="gpt-mini"):
    draw = random.Random(0)
    corpus = Labelled([make(draw) for _ in range(2000)], [make(draw) for _ in range(200)], {}, "made", answer=answer)
    recipe = build(
        {
            "task": "classify",
            "preset": preset,
            "model": {"n_layers": 2, "d_model": 64, "context_length": 32, "dropout": 0.0},
            "data": {"vocab_size": 400},
            "train": {"steps": 160, "tokens": 384, "lr": 3e-3, "warmup": 20, "eval_every": 160, "precision": "fp32"},
        },
        where="test",
    )
    done = finished(train(recipe, out, corpus=corpus))
    return done.scores["valid"]["accuracy"]


def test_labels(tmp_path):
    assert learnt("label", majority, tmp_path / "run") >= 0.95


def test_choices(tmp_path):
    assert learnt("choice", sought, tmp_path / "run") >= 0.95


def test_labels_by_an_encoder(tmp_path):
    assert learnt("label", majority, tmp_path / "run", "encoder-tiny") >= 0.95
