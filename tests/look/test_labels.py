"""Labels name the pattern that was put into a head, and promise nothing for an even or a random one."""

import math

import pytest
import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.look.labels import summary, token_label

N = 8


def pattern(shift: int, *, causal: bool = False) -> Tensor:
    """A head that puts 0.9 on the token `shift` places away, and spreads the rest over what it may see."""
    allowed = torch.ones(N, N).tril() if causal else torch.ones(N, N)
    weights = 0.1 * allowed / allowed.sum(-1, keepdim=True)
    for t in range(N):
        aim = t + shift if 0 <= t + shift < N and allowed[t, t + shift] else t
        weights[t, aim] += 0.9
    return weights


def column(place: int) -> Tensor:
    weights = torch.full((N, N), 0.1 / N)
    weights[:, place] += 0.9
    return weights


@pytest.mark.parametrize("causal", [False, True])
def test_neighbours_are_named(causal: bool) -> None:
    heads = torch.stack([pattern(-1, causal=causal), pattern(0, causal=causal)])
    labels = summary(heads, same=True)
    assert [label.name for label in labels] == ["previous", "self"]
    assert all(label.score == pytest.approx(0.9, abs=0.02) for label in labels)


def test_the_other_patterns_are_named() -> None:
    band = sum((torch.ones(N).diag(), torch.ones(N - 1).diag(1), torch.ones(N - 1).diag(-1)))
    heads = torch.stack([pattern(1), column(0), column(N - 1), band / band.sum(-1, keepdim=True)])
    assert [label.name for label in summary(heads, same=True)] == ["next", "first", "last", "diagonal"]
    assert str(summary(heads, same=True)[0]) == "next 0.90"


def test_an_even_head_is_uniform_and_explains_nothing() -> None:
    even = torch.full((1, 4, 6), 1 / 6)
    label = summary(even, same=False)[0]
    assert label.name == "uniform"
    assert label.score == pytest.approx(1)
    assert label.entropy == pytest.approx(math.log2(6))
    causal = torch.ones(1, N, N).tril()
    assert summary(causal / causal.sum(-1, keepdim=True), same=True)[0].name == "uniform"


def test_what_most_queries_cannot_do_is_no_pattern() -> None:
    """Under a causal mask only the last token can look at the last token."""
    weights = torch.ones(1, N, N).tril()
    weights[0, -1, :-1] = 0
    assert str(summary(weights / weights.sum(-1, keepdim=True), same=True)[0]) == "mixed"


def test_a_head_without_a_pattern_is_mixed() -> None:
    weights = torch.zeros(1, N, N)
    weights[0, torch.arange(N), torch.tensor([3, 6, 0, 7, 1, 5, 2, 4])] = 1
    weights = 0.7 * weights + 0.3 / N
    assert str(summary(weights, same=True)[0]) == "mixed"


def test_a_translation_along_the_diagonal_is_named_though_the_lengths_differ() -> None:
    weights = torch.full((1, 5, 9), 0.01)
    weights[0, torch.arange(5), torch.arange(5) * 2] = 0.92
    assert summary(weights, same=False)[0].name == "diagonal"
    assert "self" not in {label.name for label in summary(weights, same=False)}


def test_one_token_alone_has_a_label_too() -> None:
    assert summary(torch.ones(2, 1, 1), same=True)[0].entropy == 0


def test_the_same_tokens_are_as_many() -> None:
    with pytest.raises(InputError, match="4 queries and 6 keys"):
        summary(torch.full((1, 4, 6), 1 / 6), same=True)


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("Haus", "Haus"),
        ("a\nb", "a\\nb"),
        ("\u202egnirts", "\\u202egnirts"),
        ("\ud800", "\\ud800"),
        ("", "␣"),
        ("  ", "␣"),
        ("ن\u200cم", "ن\u200cم"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("x" * 10_000, "x" * 39 + "…"),
    ],
)
def test_a_token_is_one_safe_short_line(token: str, label: str) -> None:
    assert token_label(token) == label
