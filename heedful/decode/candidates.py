"""The candidates of a step of beam search, over all rows of a sentence.

Sizes: n sentences, w rows of each, R rows in all, K continuations of a row, C of a sentence, W of them that live on.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.decode.rules import NEVER


class Candidates(NamedTuple):
    """What may follow in n sentences, of each the best first: the sum of log-probabilities, the row that is continued,
    by which token, with which log-probability, and whether it is an end token.

    Chosen of them: those that finish a hypothesis, the columns of those that live on, the best first, and which are
    hypotheses at the limit where they live on.
    """

    score: Float[Tensor, "n C"]
    parent: Int[Tensor, "n C"]
    value: Float[Tensor, "n C"]
    token: Int[Tensor, "n C"]
    end: Bool[Tensor, "n C"]
    closing: Bool[Tensor, "n C"]
    live: Int[Tensor, "n W"]
    standing: Bool[Tensor, "n C"]


def candidates(
    value: Float[Tensor, "R K"],
    token: Int[Tensor, "R K"],
    total: Float[Tensor, "n w"],
    *,
    ends: Sequence[int],
    size: int | None = None,
) -> Candidates:
    """The `size` best (None: all) of a sentence's rows together, none chosen yet; of equals the first in the order
    given goes first. `total` has the sums of the rows, w a sentence."""
    (n, width), each = total.shape, value.shape[1]
    score, order = (total.view(-1, 1) + value).reshape(n, -1).sort(dim=1, descending=True, stable=True)
    score, order = score[:, :size], order[:, :size]
    parent = order // each + torch.arange(0, n * width, width, device=total.device)[:, None]
    value, token = value.reshape(n, -1).gather(1, order), token.reshape(n, -1).gather(1, order)
    end = among(token, ends)
    return Candidates(score, parent, value, token, end, torch.zeros_like(end), order[:, :0], torch.ones_like(end))


def chosen_plainly(made: Candidates, beam: int) -> Candidates:
    """An end token among the first `beam` finishes a hypothesis, and the `beam` best others live on."""
    closing = made.end & (made.score > NEVER)
    closing[:, beam:] = False
    return made._replace(closing=closing, live=made.end.sort(dim=1, stable=True).indices[:, :beam])


def ends_of(eos: int | Sequence[int]) -> tuple[int, ...]:
    """The end tokens, from one or several."""
    return (eos,) if isinstance(eos, int) else tuple(eos)


def among(tokens: Int[Tensor, "..."], ends: Sequence[int]) -> Bool[Tensor, "..."]:
    """Which of the tokens are end tokens."""
    if len(ends) == 1:
        return tokens == ends[0]
    return torch.isin(tokens, torch.tensor(ends, device=tokens.device))
