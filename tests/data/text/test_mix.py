"""General pairs that are drawn into each epoch: the share that was asked for, and each as often as any other."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.text.corpus import read_parallel
from heedful.data.text.mix import drawn, mixed_order, read_mixes
from heedful.errors import InputError

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


def written(path: Path, word: str, count: int = 40) -> str:
    path.write_text("en\tde\n" + "".join(f"{word} {i}\t{word.upper()} {i}\n" for i in range(count)))
    return str(path)


def test_what_is_mixed_in_is_read_as_the_data_is(tmp_path: Path) -> None:
    like = read_parallel(written(tmp_path / "a.tsv", "a"), source="de", target="en")
    (mix,) = read_mixes([f"{written(tmp_path / 'b.tsv', 'b')}:0.25"], like)
    assert mix.share == 0.25
    assert mix.corpus.train.source[0].startswith("B ")
    assert mix.corpus.tests["test"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["{}"], "does not say how much of each epoch"),
        (["{}:1.5"], "mixes in 1.5 of each epoch"),
        (["{}:0.5", "{}:0.46"], "0.96 of each epoch is mixed in"),
    ],
)
def test_a_share_that_cannot_be_is_refused(tmp_path: Path, given: list[str], message: str) -> None:
    path = written(tmp_path / "a.tsv", "a")
    like = read_parallel(path)
    with pytest.raises(InputError, match=message):
        read_mixes([one.format(path) for one in given], like)
