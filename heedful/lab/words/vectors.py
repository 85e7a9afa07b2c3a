"""Words as vectors: counts, one-hot vectors, embeddings, and points in a plane."""

from collections import Counter

import torch
from torch.nn.functional import one_hot

from heedful.core.embed import Table
from heedful.lab.drawn import plane
from heedful.lab.drawn_words import maps
from heedful.lab.exhibit import Draws, Rows, Says, Shown, Width, beside, holds, unsaid

SENTENCES = ("the dog bites the man", "the man bites the dog")
PLACED = {"Apple": [5, 5], "Soccer": [0, 6], "House": [2, 2], "Car": [6, 0]}


def counted(says: Says, *, first: str = SENTENCES[0], second: str = SENTENCES[1], window: int = 1) -> Shown:
    """One-hot vectors, their sum, and the co-occurrences of words within a window."""
    vocabulary = sorted({*first.split(), *second.split()})
    bags = [Counter(sentence.split()) for sentence in (first, second)]
    rows = torch.tensor([[bag[word] for word in vocabulary] for bag in bags])
    ids = torch.tensor([vocabulary.index(word) for word in first.split()])
    summed = one_hot(ids, len(vocabulary)).sum(0)
    together = torch.zeros(len(vocabulary), len(vocabulary))
    for sentence in (first, second):
        words = [vocabulary.index(word) for word in sentence.split()]
        for at, word in enumerate(words):
            for other in words[max(0, at - window) : at] + words[at + 1 : at + 1 + window]:
                together[word, other] += 1
    forgets = bool(torch.equal(rows[0], rows[1])) and first != second
    lines = [
        holds(says, "a bag of words forgets the order", forgets),
        *unsaid(
            {
                "vocabulary": " ".join(vocabulary),
                "bag of the first": rows[0],
                "bag of the second": rows[1],
                "a bag is the sum of its one-hot vectors": bool(torch.equal(summed, rows[0])),
            },
        ),
    ]
    return Shown(lines, maps({"How often words stand side by side": together}, vocabulary, vocabulary, value="times"))


def looked_up(says: Says, *, vocabulary: Draws = 10, width: Width = 4, tokens: Rows = 3) -> Shown:
    """A product with one-hot vectors selects columns, as an embedding lookup does."""
    torch.manual_seed(0)
    table, ids = Table(vocabulary, width), torch.randint(vocabulary, (tokens,))
    omega, hot = table.weight.detach().T, one_hot(ids, vocabulary).T.float()  # D x |V|, |V| x N
    product = omega @ hot
    same = torch.equal(product, table(ids).detach().T)
    wrong = "one-hot N x |V| times D x |V| gives"
    try:
        told = " x ".join(map(str, (hot.T @ omega).shape))
    except RuntimeError:
        told = "nothing: the shapes do not fit"
    return Shown(
        [
            holds(says, wrong, told, right=told == says[wrong]),
            *unsaid({"D x |V| times |V| x N": list(product.shape), "the same as looking up": same}),
        ]
    )


def placed(says: Says, *, word: str = "apple") -> Shown:
    """The quiz: words as points, and their distances; the nearest word is the most similar."""
    names = [*PLACED]
    points = torch.tensor([*PLACED.values()], dtype=torch.float64)
    distances = torch.cdist(points, points)
    lines = beside(says, dict(PLACED))
    at = names.index(word.capitalize()) if word.capitalize() in names else 0
    order = distances[at].argsort()[1:].tolist()
    near = {f"from {names[at]}, the nearest first": " ".join(names[i] for i in order)}
    return Shown(lines + unsaid(near), plane(PLACED, x="first", y="second", title="Words in a plane"))
