"""The permutation that is computed number by number: a permutation for every size, and for ever the same."""

from collections.abc import Iterable

import numpy as np
import pytest

from heedful.data.stored import permuted


@pytest.mark.parametrize("sizes", [range(1, 300), [1000, 4095, 4096, 4097, 100_003]])
def test_every_number_has_one_place(sizes: Iterable[int]) -> None:
    for n in sizes:
        found = permuted(np.arange(n), n, "key", 1)
        assert sorted(found.tolist()) == [*range(n)]


def test_a_window_is_a_part_of_the_whole() -> None:
    whole = permuted(np.arange(1000), 1000, 7)
    assert permuted(np.arange(100, 200), 1000, 7).tolist() == whole[100:200].tolist()
    assert whole.tolist() != permuted(np.arange(1000), 1000, 8).tolist()


def test_neighbours_are_no_longer_neighbours() -> None:
    found = permuted(np.arange(100_000), 100_000, 3).astype(float)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.02
    assert abs(found[:10_000].mean() / 50_000 - 1) < 0.02


def test_the_numbers_never_change() -> None:
    """Trainings that were begun with them continue with them."""
    assert permuted(np.arange(8), 1000, "blocks", 1, 2).tolist() == [954, 198, 823, 670, 113, 373, 266, 57]
