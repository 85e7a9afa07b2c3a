"""How likely tokens are to a model."""

import math
from dataclasses import dataclass

from heedful.errors import InputError

MOST = 700.0  # nats a token, of which exp is still a number


@dataclass(frozen=True)
class Nats:
    """Tokens, and the sum of their negative log-probabilities under a model."""

    nats: float
    tokens: int

    @property
    def loss(self) -> float:
        """Nats per token. Raises InputError without tokens."""
        if not self.tokens:
            raise InputError("a text without a token has no loss", fix="leave it out")
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)


def perplexity(loss: float) -> float:
    """The perplexity from nats per token, or per word."""
    return math.exp(min(loss, MOST))
