"""The loss of a set: by hand, by trying all pairs, and its laws. Against Hugging Face's it stands in
tests/parity/test_detr.py."""

from itertools import permutations

import pytest
import torch
from torch import Tensor

from heedful.training.detection import SetConfig, Target, corners, overlap, pair, set_loss

Q, K = 5, 4


def boxes(*shape: int) -> Tensor:
    return torch.rand(*shape, 4) * 0.5 + 0.2


def target(n: int) -> Target:
    return Target(torch.randint(0, K - 1, (n,)), boxes(n))


def test_corners() -> None:
    assert corners(torch.tensor([0.5, 0.4, 0.2, 0.6])).tolist() == pytest.approx([0.4, 0.1, 0.6, 0.7])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0.5, 0.5, 0.4, 0.4], [0.5, 0.5, 0.4, 0.4], 1.0),  # the same
        ([0.5, 0.5, 0.4, 0.4], [0.5, 0.5, 0.2, 0.2], 0.25),  # a quarter, inside
        ([0.4, 0.5, 0.4, 0.4], [0.6, 0.5, 0.4, 0.4], 1 / 3),  # half of each, nothing else around
        ([0.2, 0.2, 0.2, 0.2], [0.6, 0.2, 0.2, 0.2], -1 / 3),  # a box's width apart
        ([0.2, 0.2, 0.2, 0.2], [0.4, 0.4, 0.2, 0.2], -0.5),  # corner to corner
    ],
)
def test_overlap_by_hand(one: list[float], other: list[float], expected: float) -> None:
    assert float(overlap(torch.tensor(one), torch.tensor(other))) == pytest.approx(expected, abs=1e-6)
    assert float(overlap(torch.tensor(other), torch.tensor(one))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_pairs_cost_least(n: int) -> None:
    config, logits, found, there = SetConfig(pair_distance=2.0), torch.randn(Q, K), boxes(Q), target(n)

    def cost(q: int, t: int) -> float:
        chance = float(logits[q].softmax(-1)[there.classes[t]])
        apart = float((found[q] - there.boxes[t]).abs().sum())
        return -chance + 2 * apart - 2 * float(overlap(found[q], there.boxes[t]))

    _, queries, things = pair(logits[None], found[None], [there], config)
    assert sorted(things.tolist()) == list(range(n))
    assert len(set(queries.tolist())) == n
    least = min(sum(cost(q, t) for t, q in enumerate(chosen)) for chosen in permutations(range(Q), n))
    own = sum(cost(q, t) for q, t in zip(queries.tolist(), things.tolist(), strict=True))
    assert own == pytest.approx(least, abs=1e-5)


def test_what_is_no_number_is_paired_last() -> None:
    logits, found, there = torch.zeros(2, K), boxes(2), target(1)
    found[0] = torch.nan
    assert pair(logits[None], found[None], [there], SetConfig())[1].tolist() == [1]


def test_order_says_nothing() -> None:
    logits, found, targets = torch.randn(2, 2, Q, K), boxes(2, 2, Q), [target(3), target(2)]
    loss = set_loss(logits, found, targets)
    turned = [Target(one.classes.flip(0), one.boxes.flip(0)) for one in targets]
    torch.testing.assert_close(set_loss(logits, found, turned).total, loss.total)
    order = torch.randperm(Q)
    torch.testing.assert_close(set_loss(logits[:, :, order], found[:, :, order], targets).total, loss.total)
    torch.testing.assert_close(set_loss(logits.flip(1), found.flip(1), targets[::-1]).total, loss.total)


def test_layers_are_summed() -> None:
    logits, found, targets = torch.randn(3, 2, Q, K), boxes(3, 2, Q), [target(3), target(2)]
    each = [set_loss(logits[i : i + 1], found[i : i + 1], targets).total for i in range(3)]
    loss = set_loss(logits, found, targets)
    torch.testing.assert_close(loss.total, sum(each))
    torch.testing.assert_close(loss.total - loss.extra, each[-1])


def test_what_is_found_rightly_costs_nothing() -> None:
    there = target(3)
    found, logits = boxes(1, 1, Q), torch.full((1, 1, Q, K), -50.0)
    found[0, 0, [4, 0, 2]] = there.boxes
    logits[0, 0, [4, 0, 2], there.classes] = 50.0
    logits[0, 0, [1, 3], K - 1] = 50.0
    assert float(set_loss(logits, found, [there]).total) == pytest.approx(0, abs=1e-5)


def test_without_a_thing_all_is_to_be_nothing() -> None:
    logits, found = torch.randn(1, 2, Q, K), boxes(1, 2, Q)
    loss = set_loss(logits, found, [target(0), target(0)])
    assert loss.count == 1
    torch.testing.assert_close(loss.total, -logits.log_softmax(-1)[..., -1].mean())
