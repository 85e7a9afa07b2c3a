"""Which keys a query sees by their positions alone, and the parts in which such attention is computed.

T queries, S keys, t and s those of a part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.errors import InputError

TILE = 128  # queries of a part


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """A query sees the keys that one of these allows; without any, all keys.

    Local: `window` (Beltagy et al. 2020, section 3.1; with `dilation` its dilated form) and `block` (Liu et al. 2018,
    section 4.2.4). Strided: `stride` (Child et al. 2019, section 4.3, "fixed"). Global: `global_tokens` (Zaheer et al.
    2020, section 2; where attention is causal they are the attention sinks of Xiao et al. 2023).
    """

    window: int | None = None  # those less than this many positions away
    dilation: int = 1  # of a window: only those at a multiple of this distance
    block: int | None = None  # those in the same block of so many positions
    stride: int | None = None  # the last position of each so many
    global_tokens: int = 0  # the first so many positions, and these themselves see all

    def __post_init__(self) -> None:
        for name, least in (("window", 1), ("dilation", 1), ("block", 1), ("stride", 1), ("global_tokens", 0)):
            size = getattr(self, name)
            if size is not None and (not isinstance(size, int) or size < least):
                of = "; 1 is a token itself" if name == "window" else ""
                raise InputError(f"a {name} of {size} keys", fix=f"give {least} or more{of}")
        if self.dilation > 1 and self.window is None:
            raise InputError(f"a dilation of {self.dilation} without a window", fix="give a window too")
        if self.global_tokens and not self.is_sparse:
            raise InputError("global tokens where all are seen already", fix="give a window, a block or a stride too")

    @property
    def is_sparse(self) -> bool:
        """Whether some keys are not seen."""
        return any(size is not None for size in (self.window, self.block, self.stride))

    @property
    def sparsity(self) -> "Sparsity":
        """These conditions alone."""
        return Sparsity(**{field.name: getattr(self, field.name) for field in fields(Sparsity)})

    def sees(self, queries: Int[Tensor, "*#B T 1"], keys: Int[Tensor, "*#B 1 S"]) -> Bool[Tensor, "*B #T S"]:
        """Whether queries at these positions see keys at those."""
        allowed = keys < 0  # none
        if self.window is not None:
            distance = (queries - keys).abs()
            near = distance < self.window
            allowed = allowed | (near if self.dilation == 1 else near & (distance % self.dilation == 0))
        if self.block is not None:
            allowed = allowed | (queries // self.block == keys // self.block)
        if self.stride is not None:
            allowed = allowed | (keys % self.stride == self.stride - 1)
        if self.global_tokens:
            allowed = allowed | (keys < self.global_tokens) | (queries < self.global_tokens)
        return allowed

    def parts(
        self, indices: Int[Tensor, "T"], positions: tuple[Int[Tensor, "#B T"], Int[Tensor, "#B S"]], *, causal: bool
    ) -> Iterator[tuple[Int[Tensor, "t"], Int[Tensor, "s"]]]:
        """The queries, which stand at these indices among the keys, in parts, with the keys that any of a part may see:
        those near it, and those that are seen from everywhere. Tokens of a text must stand side by side."""
        S = positions[1].shape[1]
        seen_by_all = positions[1] < self.global_tokens
        if self.stride is not None:
            seen_by_all = seen_by_all | (positions[1] % self.stride == self.stride - 1)
        see_all = (positions[0] < (0 if causal else self.global_tokens)).any(dim=0)
        everywhere = seen_by_all.any(dim=0).nonzero()[:, 0]
        if see_all.any():
            yield see_all.nonzero()[:, 0], torch.arange(S, device=indices.device)
        reach = max(self.window or 1, self.block or 1) - 1
        step = self.dilation if self.block is None else 1
        reach = reach // step * step
        for residue in range(step):
            for queries in ((indices % step == residue) & ~see_all).nonzero()[:, 0].split(TILE):
                if not len(queries):
                    continue
                first, last = int(indices[queries[0]]) - reach, int(indices[queries[-1]]) + (0 if causal else reach)
                near = torch.arange(first, last + 1, step, device=indices.device)
                near = near[(near >= 0) & (near < S)]
                far = everywhere[(everywhere < first) | (everywhere > last) | ((everywhere - first) % step > 0)]
                yield queries, torch.cat([far[far <= last] if causal else far, near])
