"""Norms of the features of each token."""

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

Norm = Literal["layer", "rms", "rms_offset"]


class OffsetRMSNorm(nn.RMSNorm):
    """Multiplies by 1 + weight: a weight that decays, or begins as 0, leaves features as they are (Gemma Team 2024,
    their code)."""

    def forward(self, x: Float[Tensor, "*B C"]) -> Float[Tensor, "*B C"]:
        return F.rms_norm(x, self.normalized_shape, 1.0 + self.weight, self.eps)


def make_norm(kind: Norm, width: int, eps: float) -> nn.Module:
    match kind:
        case "layer":
            return nn.LayerNorm(width, eps=eps)
        case "rms":
            return nn.RMSNorm(width, eps=eps)
        case "rms_offset":
            return OffsetRMSNorm(width, eps=eps)
