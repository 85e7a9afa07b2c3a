"""A toy that any search can ask: what comes next hangs on all tokens before, and on nothing that was learnt."""

from dataclasses import dataclass

import torch
from torch import Tensor

V, BOS, EOS, SIZE = 12, 1, 2, 997


@dataclass
class Walk:
    """Where each row of a toy stands in its table."""

    row: Tensor

    def pick(self, rows: Tensor) -> "Walk":
        return Walk(self.row[rows])


class Toy:
    """A model whose logits depend on all tokens before."""

    def __init__(self, end: float = 1.0) -> None:
        self.table = 2 * torch.randn(SIZE, V, generator=torch.Generator().manual_seed(5))
        self.table[:, EOS] += end

    def start(self, source: Tensor, segments: Tensor | None) -> Walk:
        return Walk(source.sum(1) * 31 % SIZE)

    def step(self, tokens: Tensor, state: Walk) -> tuple[Tensor, Walk]:
        row = (state.row * 37 + tokens * 101 + 7) % SIZE
        return self.table[row], Walk(row)


def sources(n: int) -> Tensor:
    return torch.arange(3 * n).view(n, 3) * 5
