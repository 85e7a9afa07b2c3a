"""Sparse masks: who sees whom by position, and tiles that give the same as the whole mask, for less."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.core import kernels, sparsity
from heedful.core.attention import attend, attention_weights
from heedful.core.embed import positions_in_segments
from heedful.core.mask import Mask
from heedful.core.sparsity import Sparsity
from heedful.errors import InputError

CPU = torch.device("cpu")
CONDITIONS: dict[str, Any] = {"window": 5, "dilation": 2, "block": 4, "stride": 6, "global_tokens": 2}
B, H, G, D, L = 2, 4, 2, 8, 37


def sparsities() -> Iterator[dict[str, Any]]:
    """All that may be given together, in small."""
    for size in range(1, len(CONDITIONS) + 1):
        for names in itertools.combinations(CONDITIONS, size):
            if {"window", "block", "stride"} & {*names} and ("window" in names or "dilation" not in names):
                yield {name: CONDITIONS[name] for name in names}


EVERY = [*sparsities()]


def named(given: object) -> str:
    return " ".join(given) if isinstance(given, dict) else str(given)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of a few queries, whatever they cost."""
    monkeypatch.setattr(sparsity, "TILE", 4)
    monkeypatch.setattr(kernels, "WORTH_TILING", 99.0)
    monkeypatch.setattr(kernels, "least_tiled", lambda device: 0)


def sees(given: dict[str, Any], q: int, k: int) -> bool:
    near = "window" in given and abs(q - k) < given["window"] and abs(q - k) % given.get("dilation", 1) == 0
    near = near or ("block" in given and q // given["block"] == k // given["block"])
    near = near or ("stride" in given and (k + 1) % given["stride"] == 0)
    return near or min(q, k) < given.get("global_tokens", 0)


@pytest.mark.parametrize("given", EVERY, ids=named)
@pytest.mark.parametrize("causal", [False, True])
def test_who_sees_whom_by_position(given: dict[str, Any], causal: bool) -> None:
    T, S = 9, 12
    dense = Mask(causal=causal, **given).dense(T, S, CPU)
    assert dense is not None
    right = [[sees(given, t + S - T, s) and (s <= t + S - T or not causal) for s in range(S)] for t in range(T)]
    assert dense[0, 0].equal(torch.tensor(right))


def masks(given: dict[str, Any], causal: bool) -> Iterator[tuple[Mask, int, int]]:
    """This sparsity with all else that a mask may say, and how many queries and keys it is for."""
    valid = torch.arange(L) < torch.tensor([[L], [L - 9]])
    texts = torch.tensor([[1] * 7 + [2] * 19 + [3] * 11, [1] * 23 + [2] * 9 + [0] * 5])
    places = positions_in_segments(texts)
    yield Mask(causal=causal, **given), L, L
    yield Mask(causal=causal, valid=valid, **given), L, L
    yield Mask(causal=causal, allowed=torch.rand(B, H, L, L) < 0.8, **given), L, L
    yield Mask(causal=causal, allowed=torch.rand(1, L) < 0.8, **given), L, L
    yield Mask(causal=causal, segments=(texts, texts), positions=(places, places), **given), L, L
    yield Mask(causal=causal, **given), 5, L  # the newest of a growing cache
    yield Mask(causal=causal, start=9, positions=(torch.arange(9, 14)[None], torch.arange(L)[None]), **given), 5, L
    yield Mask(causal=causal, **given), L, L - 8  # the first queries stand before all keys


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("given", EVERY, ids=named)
@pytest.mark.parametrize("causal", [False, True])
def test_tiles_have_each_query_once_and_all_that_it_sees(given: dict[str, Any], causal: bool) -> None:
    for mask, T, S in masks(given, causal):
        tiled, dense = mask.tiled(T, S, CPU), mask.dense(T, S, CPU)
        assert tiled is not None
        assert dense is not None
        assert tiled.queries.sort().values.equal(torch.arange(T))
        whole = torch.zeros_like(dense)
        queries, keys = tiled.queries.split(tiled.query_counts), tiled.keys.split(tiled.key_counts)
        for of_queries, of_keys, tile in zip(queries, keys, tiled.masks, strict=True):
            assert len(of_keys.unique()) == len(of_keys)
            assert tile.allowed is not None
            whole[:, :, of_queries[:, None], of_keys] = tile.allowed
        assert whole.equal(dense)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("given", EVERY, ids=named)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_in_tiles_is_the_whole(given: dict[str, Any], causal: bool, grad: bool) -> None:
    """In value, and where there are gradients in these."""
    for mask, T, S in masks(given, causal):
        for softcap in (None, 0.7):
            q, k, v = (torch.randn(B, n, length, D, requires_grad=grad) for n, length in ((H, T), (G, S), (G, S)))
            weights = attention_weights(q, k, mask=mask, scale=0.5, softcap=softcap)
            expected = weights @ v.repeat_interleave(H // G, dim=1)
            out = attend(q, k, v, mask=mask, scale=0.5, softcap=softcap)
            close(out, expected)
            if grad:
                pull = torch.randn_like(out)
                ours, theirs = (torch.autograd.grad((each * pull).sum(), (q, k, v)) for each in (out, expected))
                for one, other in zip(ours, theirs, strict=True):
                    close(one, other)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("given", [{"window": 5}, {"block": 4}], ids=named)
def test_texts_in_pieces_are_attended_as_a_whole(given: dict[str, Any]) -> None:
    """Where positions are not those of the row, nearness is not a band of it."""
    texts = torch.tensor([[1] * 9 + [2] * 9 + [1] * 12 + [2] * 7])
    places = positions_in_segments(texts)
    pieces = Mask(segments=(texts, texts), positions=(places, places), **given)
    jumps = Mask(positions=(2 * torch.arange(L)[None], 2 * torch.arange(L)[None]), **given)
    other = Mask(positions=(torch.arange(L)[None], torch.arange(L)[None] + 3), **given)
    prefix = Mask(causal=True, prefix=torch.tensor([4]), **given)
    assert all(mask.tiled(L, L, CPU) is None for mask in (pieces, jumps, other, prefix, Mask(causal=True)))


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"window": 100}, 3.0),
        ({"window": 64, "dilation": 4}, 9.0),
        ({"block": 128}, 1.0),
        ({"window": 50, "stride": 64}, 4.0),
        ({"window": 100, "global_tokens": 4}, 3.0),
    ],
    ids=named,
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_work_follows_what_is_allowed(given: dict[str, Any], most: float, causal: bool) -> None:
    """Pairs that are computed, compared with those that are seen: not more of them the longer a text is."""
    shares = []
    for length in (2048, 4096, 8192):
        mask = Mask(causal=causal, **given)
        tiled = mask.tiled(length, length, CPU)
        assert tiled is not None
        assert not mask._dense  # the whole was never made
        computed = sum(t * s for t, s in zip(tiled.query_counts, tiled.key_counts, strict=True))
        seen = [
            tile.dense(t, s, CPU) for tile, t, s in zip(tiled.masks, tiled.query_counts, tiled.key_counts, strict=True)
        ]
        shares.append(computed / sum(int(each.sum()) for each in seen if each is not None))
    assert max(shares) <= most * (2 if causal else 1)
    assert shares[2] <= shares[0] * 1.05


def test_where_most_is_seen_nothing_is_tiled() -> None:
    assert Mask(window=400).tiled(512, 512, CPU) is None
    assert Mask(causal=True, window=3).tiled(16, 16, CPU) is None
    assert Mask(causal=True, window=64).tiled(1, 8192, CPU) is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": 0}, "a window of 0 keys"),
        ({"block": 0}, "a block of 0 keys"),
        ({"stride": -1}, "a stride of -1 keys"),
        ({"global_tokens": -1, "window": 2}, "a global_tokens of -1 keys"),
        ({"window": 4, "dilation": 0}, "a dilation of 0 keys"),
        ({"dilation": 2}, "a dilation of 2 without a window"),
        ({"global_tokens": 2}, "global tokens where all are seen already"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    for kind in (Sparsity, Mask):
        with pytest.raises(InputError, match=message):
            kind(**given)
