"""A language model that learns by reinforcement, with an estimate of the reward it expects: a linear map of the same
hidden states (Schulman et al. 2017, section 5; Ziegler et al. 2019, section 2.2).

B answers, T tokens, C model width.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from heedful.models.lm import LM, LMConfig


@dataclass(frozen=True, kw_only=True)
class ActorCriticConfig:
    lm: LMConfig


class ActorCritic(nn.Module):
    """`lm` is the policy; only it is kept after the training."""

    def __init__(self, config: ActorCriticConfig) -> None:
        super().__init__()
        self.config = config
        self.lm = LM(config.lm)
        self.value = nn.Linear(config.lm.d_model, 1)
        nn.init.zeros_(self.value.weight)  # at first it expects a reward of 0
        nn.init.zeros_(self.value.bias)

    def values(self, hidden: Float[Tensor, "*B C"]) -> Float[Tensor, "*B"]:
        """The expected reward from each of the language model's hidden states on, in float32."""
        return self.value(hidden).squeeze(-1).float()
