"""Epochs with general pairs in them: the share that was asked for, and each as often as any other."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from heedful.tasks.translate.training.epochs import drawn, mixed_order

counts = st.integers(1, 40)


@given(count=counts, size=counts, seed=st.integers(0, 9), epochs=st.integers(1, 12))
def test_each_pair_comes_before_any_comes_again(count: int, size: int, seed: int, epochs: int) -> None:
    seen = [i for epoch in range(epochs) for i in drawn(count, size, seed, epoch)]
    assert len(seen) == count * epochs
    for begin in range(0, len(seen), size):
        turn = seen[begin : begin + size]
        assert len(set(turn)) == len(turn)
    times = Counter(seen)
    assert max(times.values()) - min(times[i] for i in range(size)) <= 1


@given(
    own=st.integers(1, 200),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=3),
    share=st.sampled_from([0.1, 0.2, 0.3]),
    epoch=st.integers(0, 5),
)
def test_every_pair_is_counted(own: int, sizes: list[int], share: float, epoch: int) -> None:
    mixes, at = [], own
    for size in sizes:
        mixes.append((range(at, at + size), share))
        at += size
    order = mixed_order(range(own), mixes, 1, epoch)
    whole = own / (1 - share * len(sizes))
    times = Counter(order)
    assert [times[i] for i in range(own)] == [1] * own
    for rows, _ in mixes:
        assert sum(times[i] for i in rows) == max(1, round(share * whole))
    assert order == mixed_order(range(own), mixes, 1, epoch)
    assert own < 20 or order != mixed_order(range(own), mixes, 1, epoch + 1)
