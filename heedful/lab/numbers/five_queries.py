"""Attention by hand: queries that attend to three keys and values, with and without a mask (S0)."""

import torch
from torch import Tensor

from heedful.core import EVERYONE, Mask, attend, attention_weights
from heedful.lab.drawn import Drawing, weights_of
from heedful.lab.exhibit import Says, Shown, beside, holds, table

KEYS = table([[1, 2], [2, 5], [0, 1]])
VALUES = table([[5, 2, 1, 4], [0, 1, 0, 1], [8, 4, 2, 1]])
QUERIES = table([[1, 1], [0, 1], [1, 0], [2, 2], [1, 2]])
VISIBLE = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]], dtype=torch.bool)
EXERCISE_KEYS = table([[1, 2], [-1, 1], [0, 1]])
EXERCISE_VALUES = table([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1]])
EXERCISE_QUERIES = table([[0, 1], [1, 1]])


def attended(
    queries: Tensor, keys: Tensor, values: Tensor, scale: float, mask: Mask | Tensor = EVERYONE
) -> tuple[Tensor, Tensor]:
    """The weights (T, S) and outputs (T, E) of one head."""
    q, k, v = (each[None, None] for each in (queries, keys, values))
    return attention_weights(q, k, mask=mask, scale=scale)[0, 0], attend(q, k, v, mask=mask, scale=scale)[0, 0]


def by_query(name: str, rows: Tensor) -> dict[str, Tensor]:
    return {f"{name} of q{number}": row for number, row in enumerate(rows, 1)}


def drawn(weights: Tensor, title: str, mask: Tensor | None = None) -> Drawing:
    rows, columns = ([f"{letter}{i}" for i in range(1, n + 1)] for letter, n in zip("qk", weights.shape, strict=True))
    return weights_of(weights, rows, columns, title, mask)


def five_queries(says: Says, *, scale: float = 0.7) -> Shown:
    """Five queries. The deck uses 0.7 for 1 / sqrt(2)."""
    weights, outputs = attended(QUERIES, KEYS, VALUES, scale)
    lines = beside(
        says.but("queries are the columns of Q"),
        {"scores": QUERIES @ KEYS.T, **by_query("weights", weights), **by_query("output", outputs)},
    )
    rows = len(outputs) == len(QUERIES)  # an output for each row
    lines.append(holds(says, "queries are the columns of Q", not rows))
    return Shown(lines, drawn(weights, "Five queries"))


def masked_queries(says: Says, *, scale: float = 0.7) -> Shown:
    """The same five queries, each of which may only attend to some keys."""
    weights, outputs = attended(QUERIES, KEYS, VALUES, scale, VISIBLE)
    lines = beside(says, {**by_query("weights", weights), **by_query("output", outputs)})
    return Shown(lines, drawn(weights, "Five queries under a mask", VISIBLE))


def two_queries(says: Says, *, scale: float = 2**-0.5) -> Shown:
    """The solution of the deck's exercise."""
    weights, outputs = attended(EXERCISE_QUERIES, EXERCISE_KEYS, EXERCISE_VALUES, scale)
    return Shown(beside(says, by_query("output", outputs)), drawn(weights, "Two queries"))
