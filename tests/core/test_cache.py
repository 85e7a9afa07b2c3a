"""Decoding with a cache is decoding without one: for every way to tell positions, both caches, any chunks."""

import pytest
import torch
from torch import Tensor

from heedful.core.attention import KV, AttentionConfig
from heedful.core.block import BlockConfig, Context, Memory, Stack, StackConfig
from heedful.core.cache import BlockCache, Past
from heedful.core.mask import EVERYONE, Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from loud import make_loud

B, T, S, C, H = 3, 7, 5, 16, 4
SCHEMES = ["none", "added", "rotary", "alibi", "buckets", "shaw", "shared alibi", "shared buckets"]
CHUNKS = [[1] * T, [3, 1, 3], [1, 6]]


def decoder(scheme: str) -> Stack:
    position = PositionConfig(kind=scheme.removeprefix("shared "), buckets=8, furthest=6, two_sided=False)
    shared, own = (position, PositionConfig()) if "shared" in scheme else (PositionConfig(), position)
    block = BlockConfig(
        attention=AttentionConfig(n_heads=H, kv_heads=2, position=own),
        cross=AttentionConfig(n_heads=H),
        d_ff=32,
        order="pre",
    )
    stack = Stack(C, StackConfig(n_layers=2, block=block, final_norm=True, shared_position=shared))
    return make_loud(stack)


def positions_for(scheme: str, per_row: bool) -> dict[str, Tensor]:
    """What the context is told of them."""
    if scheme == "none":
        return {}
    if scheme == "added":
        return {"position_embeddings": torch.randn(B if per_row else 1, T, C)}
    first = torch.tensor([[0], [4], [11]]) if per_row else torch.tensor([[0]])
    return {"positions": first + torch.arange(T)}


def part(positions: dict[str, Tensor], start: int, end: int) -> dict[str, Tensor]:
    return {name: told[:, start:end] for name, told in positions.items()}


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_cached_is_full(scheme: str, per_row: bool) -> None:
    stack, x = decoder(scheme), torch.randn(B, T, C)
    positions = positions_for(scheme, per_row)
    memory = Memory(torch.randn(B, S, C), Mask(valid=torch.arange(S) < torch.tensor([[5], [3], [1]])))
    with torch.no_grad():
        full = stack(x, Context(mask=Mask(causal=True), memory=memory, **positions))
        for chunks in CHUNKS:
            for size in (None, T + 4):
                caches, out, start = stack.start(memory, size), [], 0
                for chunk in chunks:
                    end = start + chunk
                    told = part(positions, start, end)
                    context = Context(mask=Mask(causal=True), memory=Memory(None, memory.mask), **told)
                    y, caches = stack.step(x[:, start:end], context, caches)
                    out.append(y)
                    start = end
                torch.testing.assert_close(torch.cat(out, 1), full, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [None, T])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pick_commutes_with_step(scheme: str, size: int | None) -> None:
    """Choosing rows and going on is going on and choosing rows; rows may repeat and the batch may shrink or grow."""
    stack, x, memory = decoder(scheme), torch.randn(B, T, C), Memory(torch.randn(B, S, C), EVERYONE)
    for per_row, chosen in ((False, [2, 0, 0, 1]), (True, [1]), (True, [2, 1, 0, 2])):
        positions, rows = positions_for(scheme, per_row), torch.tensor(chosen)
        with torch.no_grad():
            caches = stack.start(memory, size)
            context = Context(mask=Mask(causal=True), memory=Memory(None, EVERYONE), **part(positions, 0, 3))
            _, caches = stack.step(x[:, :3], context, caches)
            picked = tuple(cache.pick(rows, rows) for cache in caches)
            for t in range(3, T, 2):
                now = slice(t, t + 2)
                at = part(positions, t, t + 2)
                at_rows = {name: told[rows] if len(told) == B else told for name, told in at.items()}
                context = Context(mask=Mask(causal=True), memory=Memory(None, EVERYONE), **at)
                all_rows, caches = stack.step(x[:, now], context, caches)
                context = Context(mask=Mask(causal=True), memory=Memory(None, EVERYONE), **at_rows)
                these, picked = stack.step(x[rows, now], context, picked)
                torch.testing.assert_close(these, all_rows[rows], rtol=1e-5, atol=1e-5)


def kv(tokens: int, rows: int = 2) -> KV:
    return KV(torch.randn(rows, 2, tokens, 4), torch.randn(rows, 2, tokens, 6), torch.randint(9, (rows, tokens)))


@pytest.mark.parametrize("empty", [Past(), Past(9)])
def test_what_was_appended_is_there_in_order(empty: Past) -> None:
    parts = [kv(3), kv(1), kv(2)]
    cache = empty
    for newer in parts:
        cache = cache.append(newer)
    for i, dim in ((0, 2), (1, 2), (2, 1)):
        assert torch.equal(cache.kv()[i], torch.cat([one[i] for one in parts], dim))
    assert torch.equal(cache.positions, cache.kv().positions)
    rows = torch.tensor([1, 1, 0])
    for picked, whole in zip(cache.pick(rows).kv(), cache.kv(), strict=True):
        assert torch.equal(picked, whole[rows])


@pytest.mark.parametrize("empty", [Past(), Past(9)])
def test_an_empty_cache(empty: Past) -> None:
    assert empty.positions is None
    assert empty.pick(torch.tensor([0])) == empty
    with pytest.raises(InputError, match="read nothing yet"):
        empty.kv()


@pytest.mark.parametrize("empty", [Past(), Past(9)])
def test_without_positions(empty: Past) -> None:
    cache = empty.append(kv(2)._replace(positions=None)).append(kv(1)._replace(positions=None))
    assert cache.kv().positions is None
    assert cache.kv().key.shape[2] == 3


def test_room_of_a_size_is_made_once_and_ends() -> None:
    cache = Past(4).append(kv(3))
    place = cache.kv().key.data_ptr()
    cache = cache.append(kv(1))
    assert cache.kv().key.data_ptr() == place
    with pytest.raises(InputError, match="5 tokens do not fit a cache of 4"):
        cache.append(kv(1))


def test_without_a_size_room_is_made_ever_more_rarely() -> None:
    cache, places = Past(), []
    parts = [kv(1) for _ in range(200)]
    for part in parts:
        cache = cache.append(part)
        places.append(cache.kv().key.data_ptr())
    assert len(set(places)) <= 5
    for i, dim in ((0, 2), (1, 2), (2, 1)):
        assert torch.equal(cache.kv()[i], torch.cat([one[i] for one in parts], dim))


def row_of(kv: KV, row: int, length: int) -> list[Tensor]:
    """The first tokens of one row: keys, values and positions."""
    return [part[row].narrow(min(1, part.dim() - 2), 0, length) for part in kv]


@pytest.mark.parametrize("size", [None, 30])
def test_rows_of_unequal_length(size: int | None) -> None:
    """Whatever is appended, kept, picked and put, a row has what was given to it, and what is behind it is finite."""
    first = kv(4, 3)
    rows = [row_of(first, row, length) for row, length in enumerate((4, 1, 2))]
    cache = Past(size).append(first)

    def kept(cache: Past) -> Past:
        lengths = torch.tensor([len(places) for _, _, places in rows])
        cache = cache.keep(int(lengths.max()), lengths)
        assert torch.equal(cache.valid(2), torch.arange(cache.length + 2) < lengths[:, None] + 2)
        for row, (length, parts) in enumerate(zip(lengths.tolist(), rows, strict=True)):
            for found, expected in zip(row_of(cache.kv(), row, length), parts, strict=True):
                assert torch.equal(found, expected)
        assert all(part.isfinite().all() for part in cache.kv())
        return cache

    cache = kept(cache)
    for tokens in (1, 2, 1):
        newer = kv(tokens, 3)
        for row, parts in enumerate(rows):
            more = row_of(newer, row, tokens)
            rows[row] = [torch.cat(pair, min(1, pair[0].dim() - 1)) for pair in zip(parts, more, strict=True)]
        positions = cache.positions_with(newer.positions)
        cache = kept(cache.append(newer))
        for row, (_, _, places) in enumerate(rows):
            assert torch.equal(positions[row, : len(places)], places)
    rows = [rows[row] for row in (2, 0, 0, 1)]
    cache = kept(cache.pick(torch.tensor([2, 0, 0, 1])))
    newer = kv(12, 2)
    rows[1], rows[3] = row_of(newer, 0, 12), row_of(newer, 1, 3)
    kept(cache.put(torch.tensor([1, 3]), Past().append(newer)))


def test_a_row_longer_than_the_buffer_makes_it_grow() -> None:
    """Nothing is lost of the rows that are there, and the new one is there whole."""
    first, newer = kv(4, 3), kv(40, 1)
    cache = Past().append(first).put(torch.tensor([1]), Past().append(newer)).keep(40, torch.tensor([4, 40, 4]))
    for row, (parts, length) in enumerate(
        ((row_of(first, 0, 4), 4), (row_of(newer, 0, 40), 40), (row_of(first, 2, 4), 4))
    ):
        for found, expected in zip(row_of(cache.kv(), row, length), parts, strict=True):
            assert torch.equal(found, expected)
    assert all(part.isfinite().all() for part in cache.kv())


def test_the_memory_is_projected_once_and_picked_along() -> None:
    memory = kv(S)
    cache = BlockCache(Past(), memory).append(kv(1))
    assert cache.memory is memory
    picked = cache.pick(torch.tensor([1]), torch.tensor([1]))
    assert torch.equal(picked.memory.key, memory.key[1:])
    assert torch.equal(picked.past.kv().key, cache.past.kv().key[1:])
