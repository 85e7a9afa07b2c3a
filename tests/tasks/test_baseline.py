"""The bag of words that classifiers of texts are measured beside."""

import random

import torch
import torch.nn.functional as F

from heedful.data.text.labelled import Example, Labelled
from heedful.run.events import Finished, Note
from heedful.tasks.classify.baseline import BagOfWords, bag_of_words
from heedful.tasks.recipes import build
from heedful.verbs.train import train

DRAW = random.Random(1)
TEXTS = [[DRAW.randrange(4, 20) for _ in range(DRAW.randrange(3, 9))] for _ in range(200)]


def test_it_is_the_best_of_its_likelihood_and_its_weights_squares() -> None:
    """Where the slope of what it minimises is nothing, by the formula of logistic regression."""
    labels = torch.tensor([min(2, text.count(5)) for text in TEXTS])
    model = BagOfWords(TEXTS, 3)
    bag = model.read(TEXTS)
    model.fit(bag, labels, 10.0)
    rows = torch.zeros(len(TEXTS), len(model.columns))
    for i, (begin, end) in enumerate(zip(bag.starts, [*bag.starts[1:], len(bag.columns)], strict=True)):
        rows[i, bag.columns[begin:end]] = bag.weights[begin:end]
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(len(TEXTS)))
    logits = rows @ model.weight + model.bias
    torch.testing.assert_close(model.logits(bag), logits)
    wrong = F.one_hot(labels) - logits.softmax(-1)
    torch.testing.assert_close(10.0 * rows.T @ wrong, model.weight, atol=0.02, rtol=0)
    assert wrong.sum(0).abs().max() < 0.02


def test_it_knows_words_and_neighbours_and_no_other_order() -> None:
    first = [int(5 in text) for text in TEXTS]
    assert bag_of_words((TEXTS, first), (TEXTS, first), 2)([[9, 5, 12], [9, 12]]) == [1, 0]
    turned = [text for a in range(4, 9) for b in range(9, 14) for text in ([a, 30, 31, b], [b, 31, 30, a])]
    labels = [int(text[1] == 30) for text in turned]
    assert bag_of_words((turned, labels), (turned, labels), 2)([[6, 30, 31, 6], [6, 31, 30, 6]]) == [1, 0]
    apart = [[a, 30, b] for a in range(4, 9) for b in range(4, 9) if a != b]  # which of two is larger
    found = bag_of_words((apart, [int(a > b) for a, _, b in apart]), (apart, [0] * len(apart)), 2)
    assert found([[99], []]) == found([[98], []])  # of what is not known it has one answer


def test_a_classifier_that_a_bag_of_words_is_ahead_of_is_told(tmp_path) -> None:
    rows = [Example(" ".join(map(str, text)), label="with" if 5 in text else "without") for text in TEXTS]
    corpus = Labelled(rows[40:], rows[:40], {"test": rows[:30]}, "made", answer="label")
    plan = {"steps": 1, "lr": 1e-6, "precision": "fp32"}
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 1, "context_length": 48}
    made = {"task": "classify", "preset": "gpt-nano", "model": sizes, "train": plan}
    events = [*train(build(made, where="test"), tmp_path / "run", corpus=corpus)]
    finished = next(event for event in events if isinstance(event, Finished))
    own = finished.scores["test"]
    assert own["bag_of_words"] > 0.9 > own["accuracy"]
    told = [event.text for event in events if isinstance(event, Note) and "bag of words" in event.text]
    assert told == [
        f"test: a bag of words, and of pairs of neighbours, is right more often: {own['bag_of_words']:.3f} of the "
        "texts; the model may need more examples, or another model to begin with (--from)"
    ]
    assert "bag of words" in (tmp_path / "run" / "README.md").read_text()
