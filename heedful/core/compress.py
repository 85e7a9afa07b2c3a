"""Memory-compressed attention: the keys and values of several tokens become one (Liu et al. 2018, section 4.2.4).

B batch, G key heads, S tokens, M groups of N tokens, D head width.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from heedful.core.attention import KV
from heedful.core.cache import Past


class Groups(NamedTuple):
    """The groups of each row. A key stands where its last token stands, so that it is seen once all of them are past;
    tokens at the end of a text that fill no group become no key."""

    tokens: Int[Tensor, "#B m N"]  # of the groups that are new
    ends: Int[Tensor, "#B M"]  # the last token of each group
    valid: Bool[Tensor, "#B M"] | None = None  # False where a row has fewer groups; None: all
    counts: Int[Tensor, "B"] | None = None  # groups of each row of a cache; None: M in each


def groups_in(positions: Int[Tensor, "#B S"], size: int) -> Groups:
    """The groups of whole rows, whose tokens have these positions in their texts: no group reaches over two texts."""
    complete = positions % size == size - 1
    counts = complete.sum(dim=1, keepdim=True)
    ends = complete.int().argsort(dim=1, descending=True, stable=True)[:, : int(counts.max())]
    tokens = ends[..., None] + torch.arange(1 - size, 1, device=ends.device)
    valid = torch.arange(ends.shape[1], device=ends.device) < counts
    return Groups(tokens.clamp(min=0), ends, None if valid.all() else valid)


def groups_after(past: Past, T: int, size: int, device: torch.device) -> Groups:
    """The groups once T tokens are appended to a cache."""
    before = torch.tensor([past.length], device=device) if past.lengths is None else past.lengths
    first, counts = before // size, (before + T) // size
    number = torch.arange(int((counts - first).max()), device=device) + first[:, None]
    tokens = number[..., None] * size + torch.arange(size, device=device)
    ends = torch.arange(int(counts.max()), device=device)[None] * size + size - 1
    equal = past.lengths is None
    valid = None if equal else torch.arange(ends.shape[1], device=device) < counts[:, None]
    return Groups(tokens.clamp(max=past.length + T - 1), ends, valid, None if equal else counts)


class Compress(nn.Module):
    """A convolution over the tokens of a group, one for keys and one for values, each of all heads together."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.key, self.value = (nn.Linear(size * width, width) for _ in range(2))

    def forward(self, kv: KV, tokens: Int[Tensor, "#B m N"]) -> KV:
        """One key and one value for these tokens of each group."""
        indices = tokens.flatten(1)

        def convolved(part: Tensor, convolution: nn.Linear) -> Tensor:
            taken = torch.take_along_dim(part, indices[:, None, :, None], dim=2).unflatten(2, tokens.shape[1:])
            return convolution(taken.permute(0, 2, 3, 1, 4).flatten(2)).unflatten(2, part.shape[1::2]).transpose(1, 2)

        positions = None if kv.positions is None else torch.take_along_dim(kv.positions, tokens[..., -1], dim=1)
        return KV(convolved(kv.key, self.key), convolved(kv.value, self.value), positions)
