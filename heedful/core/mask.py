"""Who may look at whom.

One convention everywhere: True means *may attend*. A mask is a description; it becomes a tensor only when
a kernel asks for one, and is then kept for the other layers that ask the same.

B batch, T queries, S keys.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Mask:
    """Every condition given must hold; with none given, everyone sees everyone.

    Places are counted in the keys. Unless `start` says where the first query stands, the queries are the
    last T keys, which is right for whole sequences and for a growing cache alike.
    """

    causal: bool = False  # a query sees the keys up to its own place
    window: int | None = None  # and those less than this many places away
    prefix: Int[Tensor, "B"] | None = None  # but the first `prefix` keys are seen by every query
    valid: Bool[Tensor, "B S"] | None = None  # False marks padding
    segments: tuple[Int[Tensor, "B T"], Int[Tensor, "B S"]] | None = None  # packed rows: like sees like, 0 is padding
    allowed: Bool[Tensor, "*B T S"] | None = None  # any other pattern, (T, S) or (B, T, S)
    start: int | None = None  # the place of the first query, where keys are a fixed buffer
    _made: dict[tuple[object, ...], Tensor | None] = field(default_factory=dict, init=False, repr=False)
    _hiding: dict[tuple[object, ...], "Hiding | None"] = field(default_factory=dict, init=False, repr=False)

    def dense(self, T: int, S: int, device: torch.device) -> Bool[Tensor, "B 1 T S"] | None:
        """The mask as a tensor, with B = 1 where all rows of the batch agree; None when everyone sees everyone."""
        key = (T, S, device)
        if key not in self._made:
            self._made[key] = self._dense(T, S, device)
        return self._made[key]

    def hiding(self, T: int, S: int, device: torch.device, dtype: torch.dtype) -> "Hiding | None":
        """`dense` as what is to be added to scores (`hiding`)."""
        key = (T, S, device, dtype)
        if key not in self._hiding:
            seen = self.dense(T, S, device)
            self._hiding[key] = None if seen is None else hiding(seen, dtype)
        return self._hiding[key]

    def is_plain_causal(self, T: int, S: int) -> bool:
        """Whether a kernel's own causal switch means the same: it counts from the top left corner, so only
        square scores qualify."""
        others = (self.window, self.prefix, self.valid, self.segments, self.allowed)
        return self.causal and T == S and self.start in (None, 0) and all(other is None for other in others)

    def _dense(self, T: int, S: int, device: torch.device) -> Bool[Tensor, "B 1 T S"] | None:
        seen = None
        if self.causal or self.window is not None:
            start = S - T if self.start is None else self.start
            distance = torch.arange(start, start + T, device=device)[:, None] - torch.arange(S, device=device)
            seen = torch.ones(T, S, dtype=torch.bool, device=device)
            if self.causal:
                seen = distance >= 0
            if self.window is not None:
                seen = seen & (distance.abs() < self.window)
            seen = seen[None]
        if self.prefix is not None and seen is not None:
            seen = seen | (torch.arange(S, device=device) < self.prefix[:, None])[:, None]
        if self.valid is not None:
            seen = _both(seen, self.valid[:, None, :].expand(-1, T, -1))
        if self.segments is not None:
            queries, keys = self.segments
            seen = _both(seen, (queries[:, :, None] == keys[:, None, :]) & (keys > 0)[:, None, :])
        if self.allowed is not None:
            seen = _both(seen, self.allowed if self.allowed.dim() == 3 else self.allowed[None])
        return None if seen is None else seen[:, None]


class Hiding(NamedTuple):
    """What hides keys by being added to their scores: 0 where seen, else -inf. Of a query that sees nobody it hides
    nothing, for of -inf alone there is no softmax: such weights are to be multiplied by `sighted`, which is 0 there and
    else 1 (None: everyone sees somebody)."""

    added: Float[Tensor, "*B T S"]
    sighted: Float[Tensor, "*B T 1"] | None


def hiding(seen: Bool[Tensor, "*B T S"], dtype: torch.dtype) -> Hiding | None:
    """None away from a CPU, where looking for who sees nobody makes the host wait."""
    if seen.device.type != "cpu":
        return None
    sighted = seen.any(dim=-1, keepdim=True)
    added = torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen & sighted, -torch.inf)
    return Hiding(added, None if sighted.all() else sighted.to(dtype))


def _both(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one & other


EVERYONE = Mask()
