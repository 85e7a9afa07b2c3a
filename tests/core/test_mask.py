"""Who may look at whom: every condition, alone and together, against a loop that reads aloud."""

import itertools
from collections.abc import Iterator

import pytest
import torch

from heedful.core.mask import EVERYONE, Mask
from heedful.errors import InputError

B = 2
CPU = torch.device("cpu")
SHAPES = [(5, 5), (3, 5), (1, 5), (6, 4)]  # the last has queries before the first key


def conditions(T: int, S: int) -> dict[str, object]:
    """One value for each field of a mask."""
    return {
        "causal": True,
        "window": 2,
        "prefix": torch.tensor([0, 3]),
        "valid": torch.rand(B, S) < 0.7,
        "segments": (torch.randint(0, 3, (B, T)), torch.randint(0, 3, (B, S))),
        "allowed": torch.rand(B, T, S) < 0.7,
        "start": 1,
    }


def combinations(every: dict[str, object]) -> Iterator[dict[str, object]]:
    """All that a mask may be given together: a prefix is of keys that some queries would not see."""
    for size in range(len(every) + 1):
        for names in itertools.combinations(every, size):
            if "prefix" not in names or {"causal", "window"} & {*names}:
                yield {name: every[name] for name in names}


def may_look(given: dict, b: int, t: int, s: int, T: int, S: int) -> bool:
    place = t + given.get("start", S - T)
    near = s <= place or not given.get("causal", False)
    near = near and abs(place - s) < given.get("window", S + T + 9)
    if "prefix" in given:
        near = near or s < int(given["prefix"][b])
    if "valid" in given:
        near = near and bool(given["valid"][b, s])
    if "segments" in given:
        queries, keys = given["segments"]
        near = near and int(keys[b, s]) != 0 and int(queries[b, t]) == int(keys[b, s])
    if "allowed" in given:
        near = near and bool(given["allowed"][b, t, s])
    return near


def brute(given: dict, T: int, S: int) -> torch.Tensor:
    rows = [[[may_look(given, b, t, s, T, S) for s in range(S)] for t in range(T)] for b in range(B)]
    return torch.tensor(rows)[:, None]


@pytest.mark.parametrize(("T", "S"), SHAPES)
def test_every_combination_of_conditions(T: int, S: int) -> None:
    for given in combinations(conditions(T, S)):
        dense = Mask(**given).dense(T, S, CPU)
        if dense is None:
            assert set(given) <= {"start"}, "this alone forbids nothing"
        else:
            assert dense.dtype == torch.bool
            assert torch.equal(dense.expand(B, 1, T, S), brute(given, T, S)), [*given]


def test_queries_are_told_apart_where_their_rows_differ() -> None:
    """Of a mask that does not tell them apart, all rows are one, whatever is random in it."""
    for given in combinations(conditions(5, 5)):
        mask = Mask(**given)
        if not mask.tells_queries:
            dense = mask.dense(5, 5, CPU)
            assert dense is None or dense.equal(dense[:, :, :1].expand_as(dense)), [*given]
        else:
            assert set(given) & {"causal", "window", "segments", "allowed"}
    assert not Mask(valid=torch.ones(B, 5, dtype=torch.bool)).tells_queries
    assert not Mask(allowed=torch.rand(1, 5) < 0.5).tells_queries


def test_a_prefix_of_what_all_see_is_refused() -> None:
    with pytest.raises(InputError, match="a prefix of keys where all are seen already"):
        Mask(prefix=torch.tensor([2]))


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_of_nothing_is_refused(window: int) -> None:
    with pytest.raises(InputError, match=f"a window of {window} keys"):
        Mask(causal=True, window=window)


def test_everyone_needs_no_tensor() -> None:
    assert EVERYONE.dense(4, 4, CPU) is None


def test_rows_that_agree_are_made_once() -> None:
    assert Mask(causal=True, window=3).dense(4, 4, CPU).shape == (1, 1, 4, 4)
    assert Mask(causal=True, prefix=torch.tensor([1, 2])).dense(4, 4, CPU).shape == (2, 1, 4, 4)


def test_causal_by_hand() -> None:
    assert Mask(causal=True).dense(2, 3, CPU).int().tolist() == [[[[1, 1, 0], [1, 1, 1]]]]
    assert Mask(causal=True, start=0).dense(2, 3, CPU).int().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]


def test_window_by_hand() -> None:
    assert Mask(window=1).dense(3, 3, CPU).int().tolist() == [[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]]
    assert Mask(causal=True, window=2).dense(3, 3, CPU).int().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]]


def test_padding_sees_nobody_and_is_not_seen() -> None:
    segments = torch.tensor([[1, 1, 2, 0]])
    dense = Mask(segments=(segments, segments)).dense(4, 4, CPU)
    assert dense.int().tolist() == [[[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]]]


def test_one_pattern_for_all_rows() -> None:
    pattern = torch.rand(3, 4) < 0.5
    one = Mask(allowed=pattern).dense(3, 4, CPU)
    many = Mask(allowed=pattern.expand(B, 3, 4)).dense(3, 4, CPU)
    assert torch.equal(one.expand(B, 1, 3, 4), many)


def test_layers_that_ask_the_same_get_the_same_tensor() -> None:
    mask = Mask(causal=True)
    assert mask.dense(4, 4, CPU) is mask.dense(4, 4, CPU)
    for T, S in ((3, 4), (4, 6)):
        assert mask.dense(T, S, CPU).shape == (1, 1, T, S)
    assert mask.dense(4, 4, CPU) is not Mask(causal=True).dense(4, 4, CPU)


def test_plain_causal_means_the_same_as_the_kernels_switch() -> None:
    """The switch counts from the top left corner: whoever claims to be plain causal must be a lower triangle."""
    for T, S in SHAPES:
        for given in combinations(conditions(T, S) | {"start": 0}):
            mask = Mask(**given)
            plain = mask.is_plain_causal(T, S)
            assert plain == (T == S and set(given) in ({"causal"}, {"causal", "start"})), [*given]
            if plain:
                assert torch.equal(mask.dense(T, S, CPU)[0, 0], torch.ones(T, S, dtype=torch.bool).tril())
    assert not Mask(causal=True, start=1).is_plain_causal(4, 4)


def test_a_pattern_of_each_head() -> None:
    allowed = torch.rand(2, 3, 4, 5) < 0.6
    made = Mask(causal=True, allowed=allowed).dense(4, 5, CPU)
    causal = Mask(causal=True).dense(4, 5, CPU)
    assert made is not None
    assert causal is not None
    assert made.equal(causal & allowed)


@pytest.mark.parametrize("shape", [(5,), (1, 1, 1, 4, 5)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="a mask of the shape"):
        Mask(allowed=torch.ones(shape, dtype=torch.bool))


def test_a_tensor_is_a_mask_too() -> None:
    tensor = torch.ones(4, 5, dtype=torch.bool)
    assert Mask.of(tensor).allowed is tensor
    assert Mask.of(EVERYONE) is EVERYONE
    with pytest.raises(InputError, match=r"a mask of torch.float32"):
        Mask.of(tensor.float())
