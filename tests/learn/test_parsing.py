"""A parser learns a grammar in which a preposition tells what its phrase belongs to."""

import random

from heedful.data.text.trees import Leaf, Tree, Treebank, right_branching
from heedful.metrics.brackets import bracket_scores
from heedful.tasks.recipes import build
from heedful.verbs.train import train
from made import finished

NOUNS = ["cat", "dog", "hen", "park", "house", "hill"]


def noun_phrase(draw, depth=0):
    """An "of" phrase is part of what stands before it."""
    phrase = Tree("NP", (Leaf("DT", draw.choice(["a", "the"])), Leaf("NN", draw.choice(NOUNS))))
    if depth < 1 and draw.random() < 0.5:
        phrase = Tree("NP", (phrase, Tree("PP", (Leaf("IN", "of"), noun_phrase(draw, depth + 1)))))
    return phrase


def sentence(draw):
    """A "with" phrase is part of what is done."""
    said = [Leaf("VB", draw.choice(["sees", "likes"])), noun_phrase(draw)]
    if draw.random() < 0.5:
        said.append(Tree("PP", (Leaf("IN", "with"), noun_phrase(draw))))
    return Tree("S", (noun_phrase(draw), Tree("VP", tuple(said)), Leaf(".", ".")))


def test_it_learns(tmp_path):
    draw = random.Random(0)
    corpus = Treebank([sentence(draw) for _ in range(2000)], [sentence(draw) for _ in range(40)], {}, "made")
    recipe = build(
        {
            "task": "parse",
            "model": {"d_model": 64, "d_ff": 128, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
            "data": {"vocab_size": 300},
            "train": {"steps": 160, "tokens": 512, "row": 64, "optimizer": "muon", "lr": 4e-3, "warmup": 20}
            | {"average": 0.98, "eval_every": 160, "precision": "fp32"},
            "decode": {"beam": 2},
        },
        where="test",
    )
    done = finished(train(recipe, tmp_path / "run", corpus=corpus))
    scores = done.scores["valid"]
    baseline = [right_branching(list(tree.leaves()), "S", "NP") for tree in corpus.valid]
    assert scores["f1"] > 0.9
    assert scores["valid"] == 1.0
    assert bracket_scores(corpus.valid, baseline).f1 < 0.6
