"""Queries, keys and values: retrieval from hard to soft by a temperature, and the scores that the decks name."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from heedful.core import EVERYONE, attend, attention_weights
from heedful.errors import InputError
from heedful.lab.drawn import curves, plane, weights_of
from heedful.lab.exhibit import Rows, Says, Shown, Width, beside, holds, table, unsaid
from heedful.models.rnn import AdditiveAttention

DATABASE = {"Barclay": "Andrew", "Chen": "Li", "Barros": "Luis", "Dubois": "Nicole"}
TEMPERATURES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
NULL = "null"  # what a database answers to a name that it does not have


def spelled(name: str) -> Tensor:
    """A name as a vector of length 1: the counts of its letter pairs, including both ends. Raises InputError for other
    characters than the letters a to z."""
    if not (name.isascii() and name.isalpha()):
        raise InputError(f"{name!r} is no name in the letters a to z", where="query", fix="leave out all others")
    vector = torch.zeros(27 * 27, dtype=torch.float64)
    codes = [0, *(ord(letter) - 96 for letter in name.lower()), 0]
    for one, other in pairwise(codes):
        vector[one * 27 + other] += 1
    return normalize(vector, dim=0)


def looked_up(query: str, database: Mapping[str, str], temperature: float) -> Tensor:
    """The attention weights of a query over the names of a database: hard at temperatures near 0."""
    keys = torch.stack([spelled(name) for name in database])
    q, k = spelled(query)[None, None, None], keys[None, None]
    return attention_weights(q, k, mask=EVERYONE, scale=1 / temperature)[0, 0, 0]


def exactly(query: str, database: Mapping[str, str]) -> str:
    """The value of a name, or "null"."""
    return next((value for name, value in database.items() if name.lower() == query.lower()), NULL)


def nearest(query: str, database: Mapping[str, str]) -> str:
    """The name that is most similar to a query; "null" if none has a letter pair in common."""
    similarities = torch.stack([spelled(name) for name in database]) @ spelled(query)
    return [*database][int(similarities.argmax())] if similarities.max() > 0 else NULL


def database(says: Says, *, query: str = "Barros", temperature: float = 0.01) -> Shown:
    """Looks a name up in a database: exactly, by the nearest name, or softly, where a temperature leads from the value
    of the nearest name to a mean over all values."""
    if temperature < 0:
        raise ValueError("a temperature is above 0")
    names, temperatures = [*DATABASE], sorted({*TEMPERATURES, temperature})
    without = {name: value for name, value in DATABASE.items() if name != "Barros"}
    lines = beside(
        says,
        {
            "Barros": exactly("Barros", DATABASE),
            "Barros, if it is not there": exactly("Barros", without),
            "nearest to Barros, if it is not there": without[nearest("Barros", without)],
        },
    )
    if query != "Barros":
        near = nearest(query, DATABASE)
        lines += unsaid({query: exactly(query, DATABASE)})
        lines += unsaid({f"nearest to {query}": NULL if near == NULL else f"{near}: {DATABASE[near]}"})
    lines += unsaid({f"weights at temperature {t:g}": looked_up(query, DATABASE, t) for t in temperatures})
    soft = {
        name: (temperatures, [float(looked_up(query, DATABASE, t)[i]) for t in temperatures])
        for i, name in enumerate(names)
    }
    return Shown(lines, curves(soft, x="temperature", y="weight", title=f"Looking for {query}", logarithmic="x"))


def soft_retrieval(says: Says, *, queries: Rows = 3, keys: Rows = 5, width: Width = 4, seed: int = 0) -> Shown:
    """The weights of a query are a softmax, whatever the score; the output is the mean of the values by the weights."""
    torch.manual_seed(seed)
    q, k, v = (torch.randn(1, 1, n, width, dtype=torch.float64) for n in (queries, keys, keys))
    weights = attention_weights(q, k, mask=EVERYONE, scale=width**-0.5)
    same = torch.allclose(attend(q, k, v, mask=EVERYONE, scale=width**-0.5), weights @ v, atol=1e-12)
    sums = all(torch.allclose(w.sum(-1), torch.ones_like(w.sum(-1))) for w in all_scores(q[0, 0], k[0, 0]).values())
    lines = beside(says.but("any score may be used"), {"weights of a query sum to": weights.sum(-1)[0, 0, 0]})
    lines.append(holds(says, "any score may be used", sums))
    lines.extend(unsaid({"the output is weights times values": same}))
    rows, columns = [f"q{i + 1}" for i in range(queries)], [f"k{i + 1}" for i in range(keys)]
    return Shown(lines, weights_of(weights[0, 0], rows, columns, "Soft retrieval"))


def all_scores(q: Tensor, k: Tensor) -> dict[str, Tensor]:
    """The weights (T, S) of the same queries and keys with each score that the decks name."""
    T, width = q.shape
    additive = AdditiveAttention(width, width, 8).double()
    keys = additive.keys(k[None].expand(T, -1, -1), torch.ones(T, len(k), dtype=torch.bool))
    score: dict[str, Callable[[], Tensor]] = {
        "dot": lambda: weighed(q, k, 1.0),
        "scaled dot": lambda: weighed(q, k, width**-0.5),
        "cosine": lambda: weighed(normalize(q, dim=-1), normalize(k, dim=-1), 1.0),
        "additive": lambda: additive.weights(q, keys)[:, 0, 0].detach(),
    }
    return {name: make() for name, make in score.items()}


def weighed(q: Tensor, k: Tensor, scale: float) -> Tensor:
    return attention_weights(q[None, None], k[None, None], mask=EVERYONE, scale=scale)[0, 0]


def dot_products(says: Says, *, longer: float = 2.0) -> Shown:
    """Which key scores highest for a query: an equal one, or a longer one?"""
    query = table([[1, 2]])
    keys = torch.cat([query, longer * query, table([[2, 1]])])
    scores = (query @ keys.T)[0]
    among_equals = (query @ normalize(keys, dim=-1).T)[0]
    claim = "a dot product is largest where query and key are equal"
    equal = bool(scores.argmax() == 0)
    lines = [holds(says, claim, equal)]
    computed = {
        f"q.k of q itself, of {longer:g} q, of another": scores,
        "among keys of length 1": among_equals,
        "scaled by 1 / root 2": scores / 2**0.5,
    }
    points = {"q = k1": query[0].tolist(), "k2": keys[1].tolist(), "k3": keys[2].tolist()}
    drawn = plane(points, x="first", y="second", title="Dot products", vectors=True)
    return Shown(lines + unsaid(computed), drawn)


def cosine(says: Says, *, seed: int = 0) -> Shown:
    """A dot product is the cosine times both lengths."""
    torch.manual_seed(seed)
    q, k = torch.randn(2, 16, 8, dtype=torch.float64)
    cosines = (normalize(q, dim=-1) * normalize(k, dim=-1)).sum(-1)
    same = torch.allclose((q * k).sum(-1), cosines * q.norm(dim=-1) * k.norm(dim=-1))
    weights = all_scores(q[:1], k[:4])
    rows = torch.cat([weights["dot"], weights["cosine"]])
    lines = [holds(says, "a dot product is a cosine times both lengths", same)]
    return Shown(lines, weights_of(rows, ["dot", "cosine"], ["k1", "k2", "k3", "k4"], "The same keys by two scores"))


def additive(says: Says, *, d_query: Width = 6, d_key: Width = 10, d_align: Width = 4, seed: int = 0) -> Shown:
    """Compares the project's additive attention with the formula written out; query and keys differ in width."""
    torch.manual_seed(seed)
    layer = AdditiveAttention(d_query, d_key, d_align).double()
    q, k = torch.randn(1, d_query, dtype=torch.float64), torch.randn(1, 5, d_key, dtype=torch.float64)
    with torch.no_grad():
        weights = layer.weights(q, layer.keys(k, torch.ones(1, 5, dtype=torch.bool)))[0, 0]
        inner = torch.tanh(layer.query(q)[:, None] + k @ layer.key.weight.T)
        by_hand = (inner @ layer.score.weight[0]).softmax(-1)
    same = torch.allclose(weights, by_hand)
    lines = [holds(says, "a(q, k)", f"the same, weights {[round(w, 4) for w in by_hand[0].tolist()]}", right=same)]
    return Shown(lines, weights_of(weights, ["q"], [f"k{i + 1}" for i in range(5)], "Additive attention"))
