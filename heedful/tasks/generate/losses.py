"""Rows of running text, and the cross-entropy of what follows each token.

B rows, T tokens.
"""

from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor

from heedful.models.lm import LM
from heedful.training.loss import Loss, linear_cross_entropy


class TextBatch(NamedTuple):
    """Rows of running text: position i of `tokens` predicts position i of `following`. Segment 0 is padding. `learnt`:
    which of `following` count in the loss (None: all), such as the answers of a conversation."""

    tokens: Int[Tensor, "B T"]
    following: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    learnt: Bool[Tensor, "B T"] | None = None


def next_token_loss(model: LM, batch: TextBatch, *, across: bool, smoothing: float = 0.0) -> Loss:
    """Summed over the tokens, in nats. `across`: a token may look at the documents before its own."""
    device, head = model.head.weight.device, model.head
    hidden = model.hidden(batch.tokens.to(device), None if across else batch.segments.to(device))
    following = batch.following.to(device)
    if batch.learnt is None:
        hidden, following = hidden.flatten(0, 1), following.flatten()
    else:
        learnt = batch.learnt.to(device)
        hidden, following = hidden[learnt], following[learnt]
    total = linear_cross_entropy(hidden, head.weight, head.bias, following, smoothing=smoothing)
    return Loss(total, len(following))
