"""Which keys a query may attend to.

One convention everywhere: True means *may attend*. A mask is a description; it becomes a tensor only when
a kernel asks for one, and is then kept for the other layers that ask the same.

B batch, H heads, T queries, S keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core import kernels
from heedful.core.sparsity import Sparsity
from heedful.errors import InputError

SHAPES = "give (T, S), (B, T, S) or (B, H, T, S)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Mask(Sparsity):
    """All given conditions must hold; without any, every query sees every key. (What a `Sparsity` says is one of them.)

    Positions are counted in the keys. Unless `start` gives the position of the first query, the queries are the last T
    keys, which is right for whole sequences and for a growing cache.
    """

    causal: bool = False  # a query sees the keys up to its own position
    positions: tuple[Int[Tensor, "#B T"], Int[Tensor, "#B S"]] | None = None  # of the sparsity; None: as above
    prefix: Int[Tensor, "B"] | None = None  # but the first `prefix` keys are seen by every query
    valid: Bool[Tensor, "B S"] | None = None  # False marks padding
    segments: tuple[Int[Tensor, "B T"], Int[Tensor, "B S"]] | None = None  # packed rows: like sees like, 0 is padding
    allowed: Bool[Tensor, "*BHT S"] | None = None  # any other pattern, (T, S), (B, T, S) or of each head (B, H, T, S)
    start: int | None = None  # the position of the first query, where keys are a fixed buffer
    indices: Int[Tensor, "#B S"] | None = None  # where the keys stand in the row; None: side by side
    _dense: dict[tuple[object, ...], Tensor | None] = field(default_factory=dict, init=False, repr=False)
    _additive: dict[tuple[object, ...], "AdditiveMask | None"] = field(default_factory=dict, init=False, repr=False)
    _opened: dict[tuple[object, ...], "OpenedMask | None"] = field(default_factory=dict, init=False, repr=False)
    _tiled: dict[tuple[object, ...], "TiledMask | None"] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for given in (self.valid, self.allowed):
            if given is not None:
                _refuse_others(given)
        if self.allowed is not None and not 2 <= self.allowed.dim() <= 4:
            raise InputError(f"a mask of the shape {tuple(self.allowed.shape)}", fix=SHAPES)
        for name, pair in (("segments", self.segments), ("positions", self.positions)):
            if pair is not None and (not isinstance(pair, tuple) or len(pair) != 2):
                raise InputError(f"{name} that are no pair", fix="give two tensors, of the queries and of the keys")
        if self.prefix is not None and not isinstance(self.prefix, Tensor):
            raise InputError(f"a prefix of {self.prefix!r}", fix="give a tensor, with a number for each row")
        if self.prefix is not None and not self.causal and not self.is_sparse:
            raise InputError("a prefix of keys where all are seen already", fix="say causal=True too")

    @staticmethod
    def of(given: "Mask | Tensor") -> "Mask":
        """A mask as it is; a bool tensor becomes a mask with these keys `allowed`. Raises InputError for anything
        else."""
        if isinstance(given, Mask):
            return given
        _refuse_others(given)
        return Mask(allowed=given)

    @property
    def valid_queries(self) -> Bool[Tensor, "B T"] | None:
        """Which queries are no padding, where queries and keys are the same tokens; None: all, as far as it says."""
        return self.valid if self.segments is None else self.segments[0] > 0

    def refuse_other_sizes(self, B: int, H: int, T: int, S: int) -> None:
        """Raises InputError where one of its tensors does not fit scores of this shape. Tensors that all rows, heads or
        queries share may have the size 1 there."""
        own = (self.prefix, self.valid, self.segments, self.positions, self.allowed, self.indices)
        if all(given is None for given in own) or torch.compiler.is_exporting():  # whose sizes are not compared
            return
        sized = [("prefix", self.prefix, (B,)), ("valid", self.valid, (B, S)), ("indices", self.indices, (B, S))]
        for name, pair in (("segments", self.segments), ("positions", self.positions)):
            if pair is not None:
                sized += [(f"{name} of queries", pair[0], (B, T)), (f"{name} of keys", pair[1], (B, S))]
        if self.allowed is not None:
            sized.append(("allowed", self.allowed, {2: (T, S), 3: (B, T, S), 4: (B, H, T, S)}[self.allowed.dim()]))
        for name, given, shape in sized:
            if given is not None and not _fits(given.shape, shape):
                what = f"a mask of the shape {tuple(given.shape)} ({name}), for {B} rows of {T} queries and {S} keys"
                raise InputError(what, fix=f"give the shape {shape}")

    def dense(self, T: int, S: int, device: torch.device) -> Bool[Tensor, "B H T S"] | None:
        """The mask as a tensor, with B or H = 1 where all rows or heads agree; None if every query sees every key."""
        if torch.compiler.is_exporting():  # symbolic sizes cannot be keys of the cache
            return self._make(T, S, device)
        key = (T, S, device)
        if key not in self._dense:
            self._dense[key] = self._make(T, S, device)
        return self._dense[key]

    def additive(self, T: int, S: int, device: torch.device, dtype: torch.dtype) -> "AdditiveMask | None":
        """`dense` as a bias to add to the scores; None where that does not pay, or every query sees every key."""
        if torch.compiler.is_exporting() or not kernels.adds_masks(device):
            return None
        key = (T, S, device, dtype)
        if key not in self._additive:
            visible = self.dense(T, S, device)
            self._additive[key] = None if visible is None else additive_mask(visible, dtype)
        return self._additive[key]

    def opened(self, T: int, S: int, device: torch.device) -> "OpenedMask | None":
        """`dense`, with queries that see no key opened; None where the kernel handles these, or there can be none."""
        own = (self.positions, self.valid, self.segments, self.allowed)
        if all(given is None for given in own) or kernels.knows_blind_queries(device):
            return None
        key = (T, S, device)
        if key not in self._opened:
            visible = self.dense(T, S, device)
            self._opened[key] = None if visible is None else opened_mask(visible)
        return self._opened[key]

    def tiled(self, T: int, S: int, device: torch.device) -> "TiledMask | None":
        """The mask in tiles; None where its keys are not seen by position, where tiles would not be much less than the
        whole, and in a compiled graph, whose sizes may not depend on what a mask says."""
        by_position = self.is_sparse or self.indices is not None
        if not by_position or torch.compiler.is_compiling() or kernels.least_tiled(device) > T * S:
            return None
        key = (T, S, device)
        if key not in self._tiled:
            make = self._make_tiles if self.indices is None else self._make_steps
            self._tiled[key] = make(T, S, device)
        return self._tiled[key]

    def within(self, sparsity: Sparsity, queries: Tensor | None, keys: Tensor | None) -> "Mask":
        """The same mask with this sparsity, for queries and keys at these positions (None: as they stand in their
        rows)."""
        positions = None if queries is None or keys is None else (queries, keys)
        return replace(self, positions=positions, **vars(sparsity))

    def at(self, indices: Int[Tensor, "#B M"], valid: Bool[Tensor, "#B M"] | None, T: int, S: int) -> "Mask":
        """The mask of T queries and those of the S keys that stand at these indices and are `valid` (None: all). Raises
        InputError for a mask that allows keys one by one."""
        if self.allowed is not None or self.is_sparse:
            raise InputError("a mask that allows keys one by one, where they are compressed", fix="give another mask")

        def taken(table: Tensor) -> Tensor:
            return torch.take_along_dim(table, indices, dim=1)

        if self.valid is not None:
            valid = taken(self.valid) if valid is None else taken(self.valid) & valid
        segments = None if self.segments is None else (self.segments[0], taken(self.segments[1]))
        return replace(self, indices=indices, valid=valid, segments=segments, start=self._start(T, S))

    @property
    def tells_queries(self) -> bool:
        """Whether queries of one row may see different keys."""
        by_position = self.causal or self.is_sparse or self.segments is not None
        return by_position or (self.allowed is not None and self.allowed.shape[-2] > 1)

    def is_plain_causal(self, T: int, S: int) -> bool:
        """Whether a kernel's own causal switch means the same: it counts from the top left corner, so only
        square scores qualify."""
        others = (self.prefix, self.valid, self.segments, self.allowed, self.indices)
        square = T == S and self.start in (None, 0)
        return self.causal and square and not self.is_sparse and all(other is None for other in others)

    def _make(self, T: int, S: int, device: torch.device) -> Bool[Tensor, "B H T S"] | None:
        queries, keys = torch.arange(T, device=device), torch.arange(S, device=device)
        seen = self._between(queries + self._start(T, S), keys, slice(None), slice(None))
        return None if seen is None else seen.expand(-1, -1, T, S)

    def _start(self, T: int, S: int) -> int:
        return S - T if self.start is None else self.start

    def _between(
        self, query_indices: Tensor, key_indices: Tensor, queries: Tensor | slice, keys: Tensor | slice
    ) -> Bool[Tensor, "B H #T #S"] | None:
        """The mask of some queries and some keys, at these indices of their rows."""
        k = key_indices[None, None] if self.indices is None else self.indices[:, None, keys]
        q = query_indices[None, :, None]
        seen: Tensor | None = None
        if self.causal:
            seen = k <= q
        if self.is_sparse:
            if self.positions is None:
                near = self.sees(q, k)
            else:
                near = self.sees(self.positions[0][:, queries, None], self.positions[1][:, None, keys])
            seen = _both(seen, near)
        if self.prefix is not None and seen is not None:
            seen = seen | (k < self.prefix[:, None, None])
        if self.valid is not None:
            seen = _both(seen, self.valid[:, None, keys])
        if self.segments is not None:
            of_queries, of_keys = self.segments[0][:, queries, None], self.segments[1][:, None, keys]
            seen = _both(seen, (of_queries == of_keys) & (of_keys > 0))
        seen = None if seen is None else seen[:, None]
        if self.allowed is None:
            return seen
        pattern = self.allowed[:, None] if self.allowed.dim() == 3 else self.allowed  # (T, S) broadcasts
        pattern = pattern if pattern.dim() == 4 else pattern[None, None]
        return _both(seen, (pattern if pattern.shape[2] == 1 else pattern[:, :, queries])[..., keys])

    def _make_tiles(self, T: int, S: int, device: torch.device) -> "TiledMask | None":
        if self.prefix is not None or not self._in_order(T, S):
            return None
        indices = torch.arange(T, device=device) + self._start(T, S)
        positions = self.positions or (indices[None], torch.arange(S, device=device)[None])
        tiles: list[tuple[Tensor, Tensor, Mask]] = []
        left = kernels.WORTH_TILING * T * S
        for queries, keys in self.parts(indices, positions, causal=self.causal):
            seen = self._between(indices[queries], keys, queries, keys)
            assert seen is not None
            used = seen.flatten(0, 2).any(dim=0)
            if used.any():
                keys, seen = keys[used], seen[..., used]
            tiles.append((queries, keys, Mask(allowed=seen)))
            left -= len(queries) * len(keys)
            if left < 0:
                return None
        return TiledMask.of(tiles)

    def _make_steps(self, T: int, S: int, device: torch.device) -> "TiledMask | None":
        """Of keys that are the last of equally many tokens: the queries that stand equally far behind such a key see
        one key more each, which is plain causal attention."""
        others = (self.prefix, self.valid, self.segments, self.allowed, self.positions)
        assert self.indices is not None
        if not (self.causal and S) or self.start != 0 or any(other is not None for other in others):
            return None
        size, indices = int(self.indices[0, 0]) + 1, torch.arange(T, device=device)
        if not self.indices.equal(indices[None, size - 1 :: size]):
            return None
        before = (indices[: size - 1], indices[:0], EVERYONE)  # which see none
        steps = (indices[first::size] for first in range(size - 1, 2 * size - 1))
        return TiledMask.of([before, *((queries, indices[: len(queries)], Mask(causal=True)) for queries in steps)])

    def _in_order(self, T: int, S: int) -> bool:
        """Whether the queries are some of the keys, and tokens of a text stand side by side, as their positions say."""
        if self.positions is None:
            return True
        (queries, keys), start = self.positions, self._start(T, S)
        if start < 0 or start + T > S or not bool((queries == keys[:, start : start + T]).all()):
            return False
        follows = keys[:, 1:] == keys[:, :-1] + 1
        if self.segments is not None:
            texts, begins = self.segments[1], keys == 0
            same = texts[:, 1:] == texts[:, :-1]
            follows = torch.where(same, follows, begins[:, 1:]) | (texts[:, 1:] == 0)
            follows = follows & (begins | (texts == 0))[:, :1] & self.segments[0].equal(texts[:, start : start + T])
        return bool(follows.all())


class TiledMask(NamedTuple):
    """A mask in tiles, which hold all pairs that it allows: each query is in one of them, beside the keys that it may
    see and others. `queries` and `keys` are those of all tiles, one behind another, in these numbers."""

    queries: Int[Tensor, "T"]
    keys: Int[Tensor, "K"]
    query_counts: list[int]
    key_counts: list[int]
    masks: list[Mask]

    @staticmethod
    def of(tiles: Sequence[tuple[Tensor, Tensor, Mask]]) -> "TiledMask":
        """From the queries, the keys and the mask of each."""
        queries, keys = [part for part, _, _ in tiles], [part for _, part, _ in tiles]
        masks = [mask for _, _, mask in tiles]
        return TiledMask(torch.cat(queries), torch.cat(keys), [*map(len, queries)], [*map(len, keys)], masks)


class AdditiveMask(NamedTuple):
    """A bias for the scores: 0 where a key is visible and -inf elsewhere. A query without any visible key has zeros, as
    a row of -inf has no softmax: its weights must be multiplied by `has_key`, which is 0 there and 1 elsewhere (None:
    every query has a visible key)."""

    bias: Float[Tensor, "*B T S"]
    has_key: Float[Tensor, "*B T 1"] | None


def additive_mask(visible: Bool[Tensor, "*B T S"], dtype: torch.dtype) -> AdditiveMask:
    has_key = visible.any(dim=-1, keepdim=True)
    bias = torch.zeros_like(visible, dtype=dtype).masked_fill_(~visible & has_key, -torch.inf)
    return AdditiveMask(bias, None if has_key.all() else has_key.to(dtype))


class OpenedMask(NamedTuple):
    """A mask in which a query without any visible key sees all keys, and which queries these are: their results must be
    set to zero."""

    visible: Bool[Tensor, "*B T S"]
    blind: Bool[Tensor, "*B T 1"]


def opened_mask(visible: Bool[Tensor, "*B T S"]) -> OpenedMask:
    blind = ~visible.any(dim=-1, keepdim=True)
    return OpenedMask(visible | blind, blind)


def _refuse_others(given: object) -> None:
    kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
    if kind != torch.bool:
        raise InputError(f"a mask of {kind}", fix="give a bool tensor, True where a query may attend")


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether it has this shape; axes before the last may be 1."""
    if len(given) != len(shape) or (len(shape) > 1 and given[-1] != shape[-1]):
        return False
    return all(own in (1, size) for own, size in zip(given, shape, strict=True))


def _both(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one & other


EVERYONE = Mask()
