"""Learning from a teacher (Hinton et al. 2015; Sanh et al. 2019): how far a student's probabilities, and what its head
reads, are from those of a larger model.

N rows, one for each thing that is predicted; C features, of which the student may have others than the teacher; V
classes or tokens.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

ROWS = 1024  # whose logits exist at a time


class Outputs(NamedTuple):
    """What a model's head reads of a batch, and the head, which makes logits of it."""

    hidden: Float[Tensor, "N *C"]
    head: Callable[[Tensor], Tensor]

    def softened(self, by: float) -> "Outputs":
        """The same with logits that are divided by this: the temperature."""
        return Outputs(self.hidden, lambda rows: self.head(rows).float() / by)


def divergence(student: Outputs, teacher: Outputs) -> Float[Tensor, ""]:
    """The KL divergence of the student's probabilities from the teacher's, summed over the rows in float32, in nats.
    Logits are computed again for their gradients, and never exist all at once."""
    total = student.hidden.new_zeros((), dtype=torch.float32)
    for x, y in zip(student.hidden.split(ROWS), teacher.hidden.split(ROWS), strict=True):
        with torch.no_grad():
            wanted = _log_shares(y, teacher.head)
        logs = checkpoint(_log_shares, x, student.head, use_reentrant=False, preserve_rng_state=False)
        total = total + F.kl_div(logs, wanted, reduction="sum", log_target=True)
    return total


def _log_shares(hidden: Tensor, head: Callable[[Tensor], Tensor]) -> Float[Tensor, "*N V"]:
    return F.log_softmax(head(hidden).float(), dim=-1)


def cosine_distance(student: Float[Tensor, "N *C"], teacher: Float[Tensor, "N *C"]) -> Float[Tensor, ""]:
    """1 less the cosine of the angle between two vectors, summed over the rows (Sanh et al. 2019, section 3)."""
    return (1 - F.cosine_similarity(student.float(), teacher.float(), dim=-1)).sum()


def yes_or_no(logits: Float[Tensor, "*N"]) -> Float[Tensor, "*N 2"]:
    """The logits of yes and no, of which yes has the probability that a sigmoid makes of these."""
    return torch.stack((logits, torch.zeros_like(logits)), dim=-1)
