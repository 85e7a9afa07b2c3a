"""The Decision Transformer (Chen et al. 2021, figure 1 and algorithm 1): past states and actions and the reward
still to be earned are read as one sequence, and the next action is predicted from it.

B batch, T steps of an episode, S numbers of a state, A actions or numbers of one, C model width. Three tokens a step:
the return to go (the sum of all rewards from here to the end), the state, the action.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, Context, Stack, StackConfig
from heedful.core.dropout import Dropout
from heedful.core.embed import Table
from heedful.core.init import gpt2
from heedful.core.mask import Mask
from heedful.errors import InputError

TOKENS = 3  # per step


@dataclass(frozen=True, kw_only=True)
class DecisionTransformerConfig:
    d_model: int
    d_state: int
    n_actions: int  # how many there are to choose from; continuous: how many numbers an action has
    longest: int  # the maximum number of steps of an episode
    stack: StackConfig
    continuous: bool = False  # actions are vectors
    bounded: bool = False  # continuous: the predicted numbers are from -1 to 1, by tanh
    dropout: float = 0.0  # of the tokens


@dataclass(frozen=True, kw_only=True)
class DecisionSize:
    """A Decision Transformer's size. The data replace the published `d_state`, `n_actions` and `longest`."""

    n_layers: int
    d_model: int
    n_heads: int
    dropout: float = 0.1
    d_state: int = 17
    n_actions: int = 6
    longest: int = 1000


DECISIONS: Mapping[str, DecisionSize] = {
    "decision-nano": DecisionSize(n_layers=2, d_model=64, n_heads=2, dropout=0.0),
    "decision-small": DecisionSize(n_layers=3, d_model=128, n_heads=1),  # Chen et al. 2021, table 8
}


def decision_config(row: DecisionSize, *, continuous: bool = True, bounded: bool = True) -> DecisionTransformerConfig:
    block = BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads, dropout=row.dropout),
        d_ff=4 * row.d_model,
        order="pre",
        dropout=row.dropout,
    )
    return DecisionTransformerConfig(
        d_model=row.d_model,
        d_state=row.d_state,
        n_actions=row.n_actions,
        longest=row.longest,
        stack=StackConfig(n_layers=row.n_layers, block=block, final_norm=True),
        continuous=continuous,
        bounded=bounded,
        dropout=row.dropout,
    )


class DecisionTransformer(nn.Module):
    def __init__(self, config: DecisionTransformerConfig) -> None:
        super().__init__()
        C = config.d_model
        self.config = config
        self.returns = nn.Linear(1, C)
        self.states = nn.Linear(config.d_state, C)
        self.actions = nn.Linear(config.n_actions, C)
        self.steps = Table(config.longest, C)  # one vector per step, shared by its three tokens
        self.norm = nn.LayerNorm(C)
        self.dropout = Dropout(config.dropout)
        self.stack = Stack(C, config.stack)
        self.head = nn.Linear(C, config.n_actions)
        gpt2(self, n_layers=config.stack.n_layers)

    def forward(
        self,
        returns: Float[Tensor, "B T"],
        states: Float[Tensor, "B T S"],
        actions: Int[Tensor, "B T"] | Float[Tensor, "B T A"],
        steps: Int[Tensor, "B T"] | None = None,
        valid: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T A"]:
        """The logits of each step's action, or its numbers, from its state, its return to go and everything before, but
        not from the action itself. `steps` are their numbers in the episode (None: the first ones); `valid` is False
        for padding. Raises InputError for a step beyond `longest`."""
        B, T = returns.shape
        if steps is None:
            steps = torch.arange(T, device=returns.device).expand(B, T)
        if T and int(steps.max()) >= self.config.longest:
            raise InputError(f"step {int(steps.max())}, and the model has {self.config.longest}", fix="longest")
        when = self.steps(steps)
        if not self.config.continuous:
            actions = one_hot(actions, self.config.n_actions).to(states.dtype)
        tokens = (self.returns(returns[..., None]) + when, self.states(states) + when, self.actions(actions) + when)
        x = self.dropout(self.norm(torch.stack(tokens, dim=2).flatten(1, 2)))  # (B, 3T, C)
        each = None if valid is None else valid.repeat_interleave(TOKENS, dim=1)
        context = Context(mask=Mask(causal=True, valid=each))
        logits = self.head(self.stack(x, context)[:, 1::TOKENS])  # the hidden states of the states' tokens
        return logits.tanh() if self.config.bounded else logits
