"""The Decision Transformer (Chen et al. 2021, figure 1 and algorithm 1): past states and actions and the reward
still to be earned are read as one sequence, and the next action is predicted from it.

B batch, T steps of an episode, S numbers of a state, A actions, C model width. Three tokens a step: the return to go
(the sum of all rewards from here to the end), the state, the action.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.block import Context, Stack, StackConfig
from heedful.core.embed import Table
from heedful.core.init import gpt2
from heedful.core.mask import Mask
from heedful.errors import InputError

TOKENS = 3  # per step


@dataclass(frozen=True, kw_only=True)
class DecisionTransformerConfig:
    d_model: int
    d_state: int
    n_actions: int
    longest: int  # the maximum number of steps of an episode
    stack: StackConfig


class DecisionTransformer(nn.Module):
    def __init__(self, config: DecisionTransformerConfig) -> None:
        super().__init__()
        C = config.d_model
        self.config = config
        self.returns = nn.Linear(1, C)
        self.states = nn.Linear(config.d_state, C)
        self.actions = Table(config.n_actions, C)
        self.steps = Table(config.longest, C)  # one vector per step, shared by its three tokens
        self.norm = nn.LayerNorm(C)
        self.stack = Stack(C, config.stack)
        self.head = nn.Linear(C, config.n_actions)
        gpt2(self, n_layers=config.stack.n_layers)

    def forward(
        self,
        returns: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Int[Tensor, "B T"],
        steps: Int[Tensor, "B T"] | None = None,
        valid: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T A"]:
        """The logits of each step's action, from its state, its return to go and everything before, but not from the
        action itself. `steps` are their numbers in the episode (None: the first ones); `valid` is False for padding.
        Raises InputError for a step beyond `longest`."""
        B, T = returns.shape
        if steps is None:
            steps = torch.arange(T, device=returns.device).expand(B, T)
        if T and int(steps.max()) >= self.config.longest:
            raise InputError(f"step {int(steps.max())}, and the model has {self.config.longest}", fix="longest")
        when = self.steps(steps)
        tokens = (self.returns(returns[..., None]) + when, self.states(states) + when, self.actions(actions) + when)
        x = self.norm(torch.stack(tokens, dim=2).flatten(1, 2))  # (B, 3T, C)
        each = None if valid is None else valid.repeat_interleave(TOKENS, dim=1)
        context = Context(mask=Mask(causal=True, valid=each))
        return self.head(self.stack(x, context)[:, 1::TOKENS])  # the hidden states of the states' tokens
