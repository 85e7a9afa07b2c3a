"""Losses for preferences of people or of a rule: the better one of two answers, or a whole ranking.

B judgements, K answers of each (missing ones have the rank -1).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.training.loss import Loss


def ranking_loss(scores: Float[Tensor, "B K"], ranks: Int[Tensor, "B K"]) -> Loss:
    """Minus the log-likelihood that each answer is the first among itself and those ranked below it (Luce 1959;
    Plackett 1975), in nats, summed over the answers that have some below.

    Rank 0 is the best. Equal ranks are ties and are not compared; without ties this is the likelihood of the ranking.
    For two answers it is Bradley and Terry's (1952), -log sigmoid(better - worse): Ouyang et al. 2022, equation 1.
    """
    scores = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    present = ranks >= 0
    scores = scores.masked_fill(~present, 0.0)
    below = (ranks[:, None, :] > ranks[:, :, None]) & present[:, :, None]  # [judgement, answer, the other]
    itself = torch.eye(ranks.shape[1], dtype=torch.bool, device=ranks.device)
    among = scores[:, None, :].masked_fill(~(below | itself), -torch.inf).logsumexp(2)
    chosen = below.any(2)
    return Loss((among - scores)[chosen].sum(), int(chosen.sum()))


def dpo_loss(
    chosen: Float[Tensor, "B"],
    rejected: Float[Tensor, "B"],
    chosen_reference: Float[Tensor, "B"],
    rejected_reference: Float[Tensor, "B"],
    *,
    beta: float,
) -> Loss:
    """Direct preference optimisation (Rafailov et al. 2023, equation 7), from the log-probabilities (nats) of whole
    answers under the model and under the reference."""
    margin = beta * ((chosen - chosen_reference) - (rejected - rejected_reference))
    return Loss(-F.logsigmoid(margin).sum(), len(margin))
