"""A mixture of experts in place of an MLP: many of them, of which each token uses a few (Shazeer et al. 2017, section
2). Parameters grow with the experts, the work of a token does not.

B batch, T tokens, C model width, N experts, K experts of a token, M tokens of all rows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig:
    number: int
    used: int = 2  # by each token
    normalised: bool = True  # the weights of a token's experts sum to 1; False: to what the router gives them of all
    balance: float = 0.01  # weight of the balance loss beside the loss of a token; 0: none

    def __post_init__(self) -> None:
        if not 1 <= self.used <= self.number:
            raise InputError(f"{self.used} of {self.number} experts", fix="use 1 or more, and no more than there are")
        if not self.balance >= 0:
            raise InputError(f"a balance loss of weight {self.balance}", fix="give 0 or more")


class Experts(nn.Module):
    """The outputs of the K experts that the router scores highest for a token, weighted by a softmax over these scores
    (Jiang et al. 2024, section 2.2). What a token gets does not depend on the others. Each expert is what `make` makes:
    a map from (B, T, C) to (B, T, C), of each token alone."""

    def __init__(self, d_model: int, config: ExpertsConfig, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Linear(d_model, config.number, bias=False)
        self.experts = nn.ModuleList(make() for _ in range(config.number))

    def forward(
        self, x: Float[Tensor, "B T C"], losses: list[Tensor] | None = None, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """The balance loss is added to `losses`, where there are any; it leaves out tokens that are not `valid`."""
        scores = self.router(x)
        highest, chosen = scores.topk(self.config.used, dim=-1)
        shares = highest.softmax(-1) if self.config.normalised else scores.softmax(-1).gather(-1, chosen)
        if losses is not None and self.config.balance:
            losses.append(self.config.balance * balance_loss(scores, chosen, valid))
        if torch.compiler.is_compiling():
            return self._by_all(x, shares, chosen)
        return dispatched(x.flatten(0, 1), shares.flatten(0, 1), chosen.flatten(0, 1), self.experts).view_as(x)

    def _by_all(
        self, x: Float[Tensor, "B T C"], shares: Float[Tensor, "B T K"], chosen: Int[Tensor, "B T K"]
    ) -> Float[Tensor, "B T C"]:
        """The same by every expert for every token: a graph whose sizes do not depend on what the router says."""
        share = torch.zeros(*x.shape[:2], len(self.experts), dtype=shares.dtype, device=x.device)
        share = share.scatter(-1, chosen, shares)
        return sum((expert(x) * share[..., n, None] for n, expert in enumerate(self.experts)), torch.zeros_like(x))


def dispatched(
    x: Float[Tensor, "M C"],
    shares: Float[Tensor, "M K"],
    chosen: Int[Tensor, "M K"],
    experts: Iterable[nn.Module],
) -> Float[Tensor, "M C"]:
    """The sum of what the chosen experts make of each token, by these shares; no token goes through another."""
    found = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        token, place = (chosen == number).nonzero(as_tuple=True)
        if len(token) or torch.is_grad_enabled():  # every expert has a gradient, if only zeros
            said = expert(x[None, token])[0] * shares[token, place, None]
            found = found.index_add(0, token, said.to(found.dtype))
    return found


def balance_loss(
    scores: Float[Tensor, "B T N"], chosen: Int[Tensor, "B T K"], valid: Bool[Tensor, "B T"] | None = None
) -> Float[Tensor, ""]:
    """How unevenly the tokens of a row use the experts: N times the sum over the experts of the share of choices that
    fall on one times the probability that the router gives it, 1 where all are equal (Fedus et al. 2022, section 2.2).
    It is taken row by row (DeepSeek-AI 2024, section 2.1.2) and summed over the tokens: rows that are computed apart
    give the same sum."""
    B, T, N = scores.shape
    weight = torch.ones(B, T, device=scores.device) if valid is None else valid.float()
    used = torch.zeros(B, T, N, device=scores.device).scatter(-1, chosen, 1 / chosen.shape[-1])
    counts = weight.sum(1)
    share = torch.einsum("btn,bt->bn", used, weight)
    probability = torch.einsum("btn,bt->bn", scores.float().softmax(-1), weight)
    return N * ((share * probability).sum(1) / counts.clamp(min=1)).sum()
