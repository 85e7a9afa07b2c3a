"""Every rule against the same rule spelled out for one row; sizes: R rows, t tokens so far, V vocabulary."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.decode.rules import (
    BIG,
    NEVER,
    CountPenalty,
    Forbid,
    MinP,
    NoRepeat,
    RepetitionPenalty,
    Rule,
    Shortest,
    Temperature,
    TopK,
    TopP,
    top,
)
from heedful.errors import InputError

NONE = torch.zeros(1, 0, dtype=torch.int64)


def kept(scores: Tensor) -> list[set[int]]:
    """The tokens that each row may still choose."""
    return [{token for token, score in enumerate(row) if score > NEVER} for row in scores.tolist()]


def chances(*shares: float) -> Tensor:
    """One row of logits with these probabilities."""
    return torch.tensor([shares]).log() + 3


def test_forbid_and_shortest_take_tokens_away_and_change_no_other() -> None:
    history, scores = torch.zeros(2, 3, dtype=torch.int64), torch.randn(2, 6)
    assert torch.equal(Forbid(())(history, scores.clone()), scores)
    left = Forbid((0, 4))(history, scores.clone())
    assert kept(left) == [{1, 2, 3, 5}] * 2
    assert torch.equal(left[:, [1, 2, 3, 5]], scores[:, [1, 2, 3, 5]])
    assert kept(Shortest(4, eos=2)(history, scores.clone())) == [{0, 1, 3, 4, 5}] * 2
    assert torch.equal(Shortest(3, eos=2)(history, scores.clone()), scores)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_no_repeat_forbids_what_would_repeat_an_n_gram(size: int) -> None:
    V = 5
    for t in range(9):
        history, scores = torch.randint(V, (40, t)), torch.randn(40, V)
        left = NoRepeat(size)(history, scores.clone())
        for told, before, after in zip(history.tolist(), scores.tolist(), left.tolist(), strict=True):
            grams = {tuple(told[i : i + size]) for i in range(t - size + 1)}
            again = [(*told[max(0, t - size + 1) :], token) in grams for token in range(V)]
            assert after == [NEVER if repeated else score for repeated, score in zip(again, before, strict=True)]


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits_once() -> None:
    history = torch.tensor([[1, 2, 1], [3, 3, 3]])
    scores = torch.tensor([[4.0, 4, -4, 2], [4, NEVER, -4, 0]])
    left = RepetitionPenalty(2.0)(history, scores.clone())
    assert left.tolist() == [[4.0, 2, -8, 2], [4, NEVER, -4, 0]]
    assert torch.equal(RepetitionPenalty(1.5)(NONE, scores[:1].clone()), scores[:1])
    after = RepetitionPenalty(2.0, given=(0, 1, 0))(history[1:, :0], scores[1:].clone())
    assert after.tolist() == [[2.0, NEVER, -4, 0]]


def test_a_count_penalty_takes_away_once_and_for_each_time() -> None:
    history = torch.tensor([[1, 2, 1], [3, 3, 3]])
    scores = torch.tensor([[4.0, 4, -4, 2], [4, NEVER, -4, 0]])
    left = CountPenalty(0.5, 0.25)(history, scores.clone())
    assert left.tolist() == [[4.0, 3, -4.75, 2], [4, NEVER, -4, -1.25]]
    assert CountPenalty(-1.0, 0.0)(history, scores.clone()).tolist() == [[4.0, 5, -3, 2], [4, NEVER, -4, 1]]
    assert torch.equal(CountPenalty(1.5, 1.0)(NONE, scores[:1].clone()), scores[:1])


@pytest.mark.parametrize(
    ("rule", "shares", "left"),
    [
        (TopK(2), (0.1, 0.4, 0.2, 0.3), {1, 3}),
        (TopK(1), (0.3, 0.2, 0.3, 0.2), {0}),
        (TopK(3), (0.25, 0.25, 0.25, 0.25), {0, 1, 2}),
        (TopK(9), (0.1, 0.4, 0.2, 0.3), {0, 1, 2, 3}),
        (TopP(0.69), (0.1, 0.4, 0.2, 0.3), {1, 3}),
        (TopP(0.71), (0.1, 0.4, 0.2, 0.3), {1, 2, 3}),
        (TopP(0.01), (0.1, 0.4, 0.2, 0.3), {1}),
        (TopP(0.4), (0.25, 0.25, 0.25, 0.25), {0, 1}),
        (TopP(0.5), (0.25, 0.25, 0.25, 0.25), {0, 1}),
        (TopP(0.99), (0.0, 0.5, 0.5, 0.0), {1, 2}),
        (MinP(0.6), (0.1, 0.4, 0.2, 0.3), {1, 3}),
        (MinP(0.2), (0.1, 0.4, 0.2, 0.3), {0, 1, 2, 3}),
        (MinP(1.0), (0.25, 0.25, 0.25, 0.25), {0, 1, 2, 3}),
    ],
)
def test_filters_keep_exactly_their_tokens_and_leave_the_logits_they_got(
    rule: Rule, shares: tuple[float, ...], left: set[int]
) -> None:
    scores = chances(*shares)
    before = scores.clone()
    after = rule(NONE, scores)
    assert kept(after) == [left]
    assert torch.equal(scores, before)
    assert torch.equal(after[0, sorted(left)], scores[0, sorted(left)])


@pytest.mark.parametrize("loud", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("mass", [0.3, 0.9, 0.999])
def test_top_p_is_the_shortest_beginning_of_the_sorted_tokens_that_reaches_the_mass(loud: float, mass: float) -> None:
    scores = torch.randn(4, 1500) * loud
    probability, order = scores.double().softmax(-1).sort(dim=-1, descending=True)
    sizes = (probability.cumsum(-1) < mass).sum(-1) + 1
    for found, size, tokens in zip(
        kept(TopP(mass)(NONE.expand(4, 0), scores)), sizes.tolist(), order.tolist(), strict=True
    ):
        assert abs(len(found) - size) <= 1, "float32 may round at the edge"
        assert found == set(tokens[: len(found)])


def test_temperature_divides() -> None:
    scores = torch.tensor([[1.0, -2.0, NEVER]])
    assert Temperature(0.5)(NONE, scores).tolist() == [[2.0, -4.0, NEVER]]
    assert scores.tolist() == [[1.0, -2.0, NEVER]]


def rough(R: int, V: int) -> Tensor:
    return torch.randn(R, V)


def coarse(R: int, V: int) -> Tensor:
    return torch.randn(R, V).round() * 0.5  # many equal ones, and zeros of both signs


def half(R: int, V: int) -> Tensor:
    return (torch.randn(R, V) * 3).bfloat16().float()


def flat(R: int, V: int) -> Tensor:
    return torch.full((R, V), -1.5)


@pytest.mark.parametrize("make", [rough, coarse, half, flat])
@pytest.mark.parametrize(("R", "V"), [(1, 1), (3, 5), (4, 64), (2, 3000), (40, 4013), (3, 50257)])
def test_top_is_the_beginning_of_a_stable_sort(make: Callable[[int, int], Tensor], R: int, V: int) -> None:
    scores = make(R, V)
    values, tokens = scores.sort(dim=-1, descending=True, stable=True)
    for size in (1, 2, 10, 70, V, V + 1):
        best, found = top(scores, size)
        assert torch.equal(found, tokens[:, :size])
        assert torch.equal(best, values[:, :size])


def test_top_looks_into_blocks_and_past_the_last() -> None:
    scores = torch.zeros(40, 4013)
    assert scores.numel() >= BIG
    scores[:, 4012], scores[:, 64], scores[:, 63] = 2.0, 1.0, 1.0
    assert top(scores, 5)[1].tolist() == [[4012, 63, 64, 0, 1]] * 40


def test_top_puts_possible_tokens_before_impossible_ones() -> None:
    scores = torch.full((2, 9), NEVER)
    scores[0, [7, 3]] = torch.tensor([1.0, 2.0])
    values, tokens = top(scores, 4)
    assert values.tolist() == [[2.0, 1.0, NEVER, NEVER], [NEVER] * 4]
    assert tokens[0, :2].tolist() == [3, 7]
    assert all(len(set(row)) == 4 for row in tokens.tolist())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoRepeat(0), "n-gram size 0"),
        (lambda: RepetitionPenalty(0.5), "repetition penalty 0.5"),
        (lambda: RepetitionPenalty(math.nan), "repetition penalty nan"),
        (lambda: CountPenalty(math.nan, 0.0), "presence penalty nan"),
        (lambda: CountPenalty(0.0, math.inf), "frequency penalty inf"),
        (lambda: Temperature(0.0), "temperature 0.0"),
        (lambda: Temperature(math.inf), "temperature inf"),
        (lambda: TopK(0), "top-k 0"),
        (lambda: TopP(0.0), "top-p 0.0"),
        (lambda: TopP(1.5), "top-p 1.5"),
        (lambda: MinP(-0.1), "min-p -0.1"),
    ],
)
def test_values_that_mean_nothing_are_refused(make: Callable[[], Rule], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make()
