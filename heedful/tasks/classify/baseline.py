"""A baseline for classifiers of texts: a linear classifier on tokens and token bigrams (Wang and Manning 2012). It
learns in seconds, and knows no word order beyond bigrams.

B texts, F features, L labels.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data.parts import spread
from heedful.metrics.labels import accuracy
from heedful.training.optimizers import LBFGS

Ids = Sequence[int]
Part = tuple[Sequence[Ids], Sequence[int]]  # texts, and their labels
Feature = tuple[int, ...]
TOKENS = 500_000  # the most tokens of the texts that it learns from
WEIGHTS = 5_000_000  # the most weights: the features that most texts have
STRENGTHS = (1.0, 10.0, 100.0)  # of the log-likelihood against the L2 penalty; chosen on validation texts
ITERATIONS = 60  # of L-BFGS


class Bag(NamedTuple):
    """Texts by their features: the columns of all features, text after text; where each text begins; and the weight of
    each feature by its frequency in the text and its rarity in all texts (TF-IDF). The weights of a text have norm
    1."""

    columns: Int[Tensor, "features"]
    starts: Int[Tensor, "B"]
    weights: Float[Tensor, "features"]


class BagOfWords:
    """A linear map from the features of the given texts to labels, with all weights 0 until it is fitted."""

    def __init__(self, texts: Sequence[Ids], n_labels: int) -> None:
        known = Counter(chain.from_iterable(map(set, map(_features, texts))))
        most = known.most_common(max(1, WEIGHTS // n_labels))
        self.columns = {feature: column for column, (feature, _) in enumerate(most)}
        self.idf = [1 + math.log((1 + len(texts)) / (1 + count)) for _, count in most]
        self.weight = torch.zeros(len(most), n_labels)
        self.bias = torch.zeros(n_labels)

    def fit(self, bag: Bag, labels: Int[Tensor, "B"], strength: float) -> None:
        """Logistic regression, which begins with the current weights."""
        learnt = [self.weight.requires_grad_(), self.bias.requires_grad_()]
        optimizer = LBFGS(learnt, max_iter=ITERATIONS, line_search_fn="strong_wolfe")

        def loss() -> float:
            optimizer.zero_grad()
            wrong = F.cross_entropy(self.logits(bag), labels, reduction="sum")
            total = strength * wrong + 0.5 * self.weight.square().sum()
            total.backward()
            return total.item()

        optimizer.step(loss)

    def logits(self, bag: Bag) -> Float[Tensor, "B L"]:
        return self.bias + F.embedding_bag(
            bag.columns, self.weight, bag.starts, mode="sum", per_sample_weights=bag.weights
        )

    def labels(self, bag: Bag) -> list[int]:
        """The most likely label of each text."""
        with torch.no_grad():
            found: list[int] = self.logits(bag).argmax(-1).tolist()
        return found

    def read(self, texts: Sequence[Ids]) -> Bag:
        columns, weights, starts = list[int](), list[float](), list[int]()
        for text in texts:
            counts = Counter(self.columns[feature] for feature in _features(text) if feature in self.columns)
            own = [(1 + math.log(count)) * self.idf[column] for column, count in counts.items()]
            length = math.hypot(*own)
            starts.append(len(columns))
            columns += counts
            weights += [one / length for one in own]
        return Bag(torch.tensor(columns, dtype=torch.long), torch.tensor(starts), torch.tensor(weights))


def bag_of_words(train: Part, valid: Part, n_labels: int) -> Callable[[Sequence[Ids]], list[int]]:
    """Trains a classifier on texts, given as token ids, and their labels; on a share of them where there are many
    tokens. The strength is the one with the best accuracy on the validation texts. Returns a function from texts to
    labels."""
    chosen = spread(len(train[0]), min(1.0, TOKENS / max(1, sum(map(len, train[0])))))
    texts, labels = [train[0][i] for i in chosen], [train[1][i] for i in chosen]
    model = BagOfWords(texts, n_labels)
    bag, held = model.read(texts), model.read(valid[0])
    best, found = 0.0, (model.weight, model.bias)
    for strength in STRENGTHS:
        model.fit(bag, torch.tensor(labels), strength)
        right = accuracy(model.labels(held), valid[1])
        if right > best:
            best, found = right, (model.weight.detach().clone(), model.bias.detach().clone())
    model.weight, model.bias = found
    return lambda texts: model.labels(model.read(texts))


def _features(text: Ids) -> Iterator[Feature]:
    yield from ((token,) for token in text)
    yield from pairwise(text)
