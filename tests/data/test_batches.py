"""Batches: each pair once an epoch, no token lost, and segments that tell what belongs together."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.seeds import shuffled
from heedful.data.batches import (
    SORT_WINDOW,
    Pair,
    PairBatch,
    Text,
    bucket_rows,
    by_length,
    pack_rows,
    pack_texts,
    pad,
)
from heedful.data.tokenizer import BOS, EOS, PAD
from heedful.errors import InputError

IDS = st.lists(st.integers(4, 99), max_size=11)
PAIRS = st.lists(st.tuples(IDS, IDS), max_size=60)


def sentences(ids: torch.Tensor, segments: torch.Tensor) -> list[list[int]]:
    """The sentences of a row, by their segments, which must count up from 1 and end in padding."""
    assert ids.dtype == segments.dtype == torch.int64
    numbers = segments.tolist()
    used = len(numbers) - numbers.count(0)
    assert numbers == sorted(numbers[:used]) + [0] * (len(numbers) - used)
    assert set(numbers[:used]) == set(range(1, max(numbers, default=0) + 1))
    assert ids[used:].tolist() == [PAD] * (len(numbers) - used)
    return [ids[segments == number].tolist() for number in range(1, max(numbers, default=0) + 1)]


def unpacked(batch: PairBatch) -> list[list[Pair]]:
    """The pairs of each row, after a look at what stands around them."""
    rows = []
    for source, target_in, target_out, left, right in zip(*batch, strict=True):
        sides = [sentences(source, left), sentences(target_in, right), sentences(target_out, right)]
        assert len(sides[0]) == len(sides[1]) == len(sides[2])
        row = []
        for before, read, predicted in zip(*sides, strict=True):
            assert before[-1] == EOS == predicted[-1]
            assert read[0] == BOS
            assert read[1:] == predicted[:-1]
            row.append((before[:-1], predicted[:-1]))
        rows.append(row)
    return rows


def counted(batches: Sequence[PairBatch]) -> tuple[int, int]:
    return sum(batch.source_tokens for batch in batches), sum(batch.target_tokens for batch in batches)


def expected_count(pairs: Sequence[Pair]) -> tuple[int, int]:
    return sum(len(source) + 1 for source, _ in pairs), sum(len(target) + 1 for _, target in pairs)


def captions(n: int) -> list[Pair]:
    """Pairs of about the lengths that captions have."""
    generator = torch.Generator().manual_seed(0)
    lengths = (14 + 5 * torch.randn(n, generator=generator)).clamp(3, 50).long()
    others = (lengths + 3 * torch.randn(n, generator=generator)).clamp(3, 50).long()
    return [([7] * left, [8] * right) for left, right in zip(lengths.tolist(), others.tolist(), strict=True)]


# The order of an epoch


@given(st.integers(0, 200), st.integers(-5, 5), st.integers(0, 5))
@settings(max_examples=50)
def test_the_order_is_a_permutation_of_seed_and_epoch(n: int, seed: int, epoch: int) -> None:
    torch.manual_seed(0)
    order = shuffled(n, seed, epoch)
    assert sorted(order) == list(range(n))
    state = torch.get_rng_state()
    assert shuffled(n, seed, epoch) == order
    assert torch.equal(torch.get_rng_state(), state)


def test_the_order_is_the_same_on_every_machine_and_new_each_epoch() -> None:
    assert shuffled(10, seed=1, epoch=2) == [0, 2, 4, 1, 5, 8, 7, 6, 3, 9]
    orders = {tuple(shuffled(50, seed, epoch)) for seed in range(12) for epoch in range(12)}
    assert len(orders) == 144


# Packing


@given(PAIRS, st.integers(12, 40), st.integers(1, 5), st.integers(0, 3))
@settings(max_examples=200)
def test_packing_keeps_each_pair_once(pairs: list[Pair], row: int, rows: int, epoch: int) -> None:
    order = shuffled(len(pairs), 0, epoch)
    batches = list(pack_rows(pairs, order, row=row, rows=rows))
    assert all(part.shape == (rows, row) for batch in batches for part in batch)
    filled = [line for batch in batches for line in unpacked(batch)]
    assert sorted(pair for line in filled for pair in line) == sorted(pairs)
    assert counted(batches) == expected_count(pairs)
    n_rows = sum(map(bool, filled))
    assert all(map(bool, filled[:n_rows]))  # only the end of the last batch is empty
    assert len(batches) == -(-n_rows // rows)
    again = pack_rows(pairs, order, row=row, rows=rows)
    assert len(again) == len(batches)
    assert all(torch.equal(one.source, other.source) for one, other in zip(again[-2:], batches[-2:], strict=True))
    assert all(
        torch.equal(a, b) for one, two in zip(batches, again, strict=True) for a, b in zip(one, two, strict=True)
    )


def test_a_packed_row_token_by_token() -> None:
    batches = list(pack_rows([([5, 6], [7]), ([8], [9, 10, 11])], [1, 0], row=7, rows=2))
    assert [part.tolist() for part in batches[0]] == [
        [[8, EOS, 5, 6, EOS, 0, 0], [0] * 7],
        [[BOS, 9, 10, 11, BOS, 7, 0], [0] * 7],
        [[9, 10, 11, EOS, 7, EOS, 0], [0] * 7],
        [[1, 1, 2, 2, 2, 0, 0], [0] * 7],
        [[1, 1, 1, 1, 2, 2, 0], [0] * 7],
    ]
    assert len(batches) == 1
    assert (batches[0].source_tokens, batches[0].target_tokens) == (5, 6)


def test_rows_of_64_are_packed_nine_tenths_full() -> None:
    pairs = captions(5000)
    batches = list(pack_rows(pairs, shuffled(len(pairs), 1, 0), row=64, rows=16))
    source, target = (tokens / (len(batches) * 16 * 64) for tokens in counted(batches))
    assert source > 0.9
    assert target > 0.9


def test_long_and_short_pairs_come_mixed() -> None:
    pairs = captions(5000)
    batches = list(pack_rows(pairs, shuffled(len(pairs), 1, 0), row=64, rows=16))
    first = [[len(line[0][0]) for line in unpacked(batch)] for batch in batches[:-1]]
    means = [sum(lengths) / len(lengths) for lengths in first]
    assert max(means) - min(means) < 7  # 16 where the rows stay in the order in which they were opened


def test_a_pair_longer_than_a_row_is_refused_before_the_first_batch() -> None:
    pairs: list[Pair] = [([5], [6]), ([5] * 7, [6]), ([5], [6] * 8)]
    assert len(list(pack_rows(pairs, [0, 1], row=8, rows=1))) == 2
    with pytest.raises(InputError, match=r"(?m)^pair 2 has 9 tokens with EOS, but a row holds 8$") as caught:
        pack_rows(pairs, [0, 1, 2], row=8, rows=1)
    assert caught.value.fix


LEARNT = st.lists(st.tuples(st.integers(4, 99), st.booleans()), max_size=11)
TEXTS = st.lists(st.tuples(LEARNT, st.booleans()).map(lambda own: framed(*zip(*own[0], strict=True), end=own[1])))


def framed(ids: Sequence[int] = (), learnt: Sequence[bool] = (), *, end: bool = True) -> Text:
    """Begun by BOS, and ended by EOS."""
    return Text([BOS, *ids, EOS], [False, *learnt, end])


@given(TEXTS, st.integers(12, 40), st.integers(1, 5), st.integers(0, 3))
@settings(max_examples=200)
def test_packed_texts_keep_which_tokens_are_learnt(texts: list[Text], row: int, rows: int, epoch: int) -> None:
    order = shuffled(len(texts), 0, epoch)
    found = []
    for batch in pack_texts(texts, order, row=row, rows=rows):
        assert all(part is not None and part.shape == (rows, row) for part in batch)
        assert not batch.learnt[batch.segments == 0].any()
        for i, learnt in enumerate(batch.learnt):
            tokens, following, segments = batch.tokens[i], batch.following[i], batch.segments[i]
            read, predicted = sentences(tokens, segments), sentences(following, segments)
            told = [learnt[segments == n + 1].tolist() for n in range(len(read))]
            assert all(one[0] == BOS and one[1:] == other[:-1] for one, other in zip(read, predicted, strict=True))
            assert all(other[-1] == EOS for other in predicted)
            found += [(ids[:-1], own) for ids, own in zip(predicted, told, strict=True)]
    assert sorted(found) == sorted((text.ids[1:-1], text.learnt[1:]) for text in texts)


def test_texts_are_packed_as_the_targets_of_pairs() -> None:
    pairs: list[Pair] = [([], target) for _, target in captions(300)]
    order = shuffled(len(pairs), 1, 0)
    texts = [framed(ids, [True] * len(ids)) for _, ids in pairs]
    both = pack_texts(texts, order, row=64, rows=8), pack_rows(pairs, order, row=64, rows=8)
    for one, other in zip(*both, strict=True):
        expected = (other.target_in, other.target_out, other.target_segments, other.target_segments > 0)
        assert all(a is not None and torch.equal(a, b) for a, b in zip(one, expected, strict=True))


def test_a_text_that_does_not_fit_is_refused_before_the_first_batch() -> None:
    with pytest.raises(InputError, match=r"(?m)^text 1 has 9 tokens with EOS, but a row holds 8$"):
        pack_texts([framed([5], [True]), framed([5] * 8, [True] * 8)], [0, 1], row=8, rows=1)


# Buckets


@given(PAIRS, st.integers(12, 80), st.integers(0, 3))
@settings(max_examples=200)
def test_buckets_keep_each_pair_once_under_the_budget(pairs: list[Pair], tokens: int, epoch: int) -> None:
    order = shuffled(len(pairs), 0, epoch)
    batches = bucket_rows(pairs, order, tokens=tokens)
    rows = [line for batch in batches for line in unpacked(batch)]
    assert all(len(line) == 1 for line in rows)
    assert sorted(pair for line in rows for pair in line) == sorted(pairs)
    assert counted(batches) == expected_count(pairs)
    for batch in batches:
        assert max(batch.source.numel(), batch.target_in.numel()) <= tokens
        assert batch.source_segments[:, -1].any()  # no wider than its longest row
        assert batch.target_segments[:, -1].any()
    again = bucket_rows(pairs, order, tokens=tokens)
    assert all(
        torch.equal(a, b) for one, two in zip(batches, again, strict=True) for a, b in zip(one, two, strict=True)
    )


def test_buckets_hold_like_lengths_of_one_window() -> None:
    pairs = captions(SORT_WINDOW + 500)
    batches = bucket_rows(pairs, shuffled(len(pairs), 0, 0), tokens=1024)
    widths = [batch.target_in.shape[1] for batch in batches]
    drops = [i for i in range(1, len(widths)) if widths[i] < widths[i - 1]]
    assert len(drops) == 1  # ascending, and once more in the second window
    assert sum(len(batch.source) for batch in batches[: drops[0]]) == SORT_WINDOW
    target = sum(batch.target_tokens for batch in batches) / sum(batch.target_in.numel() for batch in batches)
    assert target > 0.95


def test_a_pair_longer_than_the_budget_is_refused() -> None:
    with pytest.raises(InputError, match=r"(?m)^pair 0 has 9 tokens with EOS, but a batch holds 8$"):
        bucket_rows([([5], [6] * 8)], [0], tokens=8)


# Prediction


@given(st.lists(IDS, max_size=9))
def test_what_is_predicted_from_ends_as_in_training(sources: list[list[int]]) -> None:
    ids, segments = pad(sources)
    assert ids.shape == segments.shape == (len(sources), max((len(one) + 1 for one in sources), default=0))
    assert [sentences(*row) for row in zip(ids, segments, strict=True)] == [[[*source, EOS]] for source in sources]


@given(st.lists(IDS, max_size=40), st.integers(1, 60))
def test_groups_of_like_lengths_stay_under_the_budget(sources: list[list[int]], tokens: int) -> None:
    groups = by_length(sources, tokens)
    assert sorted(index for group in groups for index in group) == list(range(len(sources)))
    lengths = [len(sources[index]) for group in groups for index in group]
    assert lengths == sorted(lengths, reverse=True)
    for group in groups:
        assert len(group) == 1 or pad([sources[index] for index in group])[0].numel() <= tokens
    for before, after in pairwise(groups):  # and none could have been fuller
        assert (len(sources[before[0]]) + 1) * (len(before) + 1) > tokens
        assert after
