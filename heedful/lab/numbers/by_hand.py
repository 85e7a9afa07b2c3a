"""Small calculations of the decks: thinking machines, a table that does not sum to one, one query and three keys."""

import torch

from heedful.core import EVERYONE, attend, attention_weights
from heedful.lab.drawn import weights_of
from heedful.lab.exhibit import Says, Shown, beside, table
from heedful.lab.sizes.rows import transformer

HI = {"Hi": [0.7, 0.1, 0.1, 0.1], "how": [0.1, 0.6, 0.2, 0.1], "are": [0.1, 0.3, 0.6, 0.1], "you": [0.1, 0.3, 0.3, 0.3]}


def thinking_machines(says: Says, *, first: float = 112, second: float = 96, width: int = 64) -> Shown:
    """Two scores divided by the square root of a head's width, and their softmax (Alammar's numbers)."""
    scaled = table([[first, second]]) / width**0.5
    base = transformer("transformer-base")
    computed = {
        "scores over 8": scaled[0],
        "softmax": scaled.softmax(-1)[0],
        "embedding width": base.d_model,
        "width of a head": base.d_model // base.n_heads,
    }
    return Shown(beside(says, computed))


def rows_of_weights(says: Says) -> Shown:
    """Each row of a table of attention weights must sum to one."""
    rows = torch.tensor([*HI.values()], dtype=torch.float64)
    sums = {f"sum of the row {name}": round(float(row.sum()), 12) for name, row in zip(HI, rows, strict=True)}
    return Shown(beside(says, sums), weights_of(rows, [*HI], [*HI], "Weights, as printed"))


def one_query(says: Says, *, scale: float = 3**-0.5) -> Shown:
    """One query, three keys, values on a diagonal."""
    keys = table([[0.9, 0.4, -1.1], [0.2, -1, 0.5], [-1, 0, 1]])
    query, values = table([[1, 0.5, -1]]), torch.diag(table([[1, 2, 1]])[0])
    q, k, v = (each[None, None] for each in (query, keys, values))
    weights = attention_weights(q, k, mask=EVERYONE, scale=scale)[0, 0]
    output = attend(q, k, v, mask=EVERYONE, scale=scale)[0, 0]
    computed = {"scores": (query @ keys.T)[0] * scale, "weights": weights[0], "output": output[0]}
    return Shown(beside(says, computed), weights_of(weights, ["q"], ["k1", "k2", "k3"], "One query, three keys"))
