"""What happens to a picture depends on its own key alone, and each change does what its name says."""

import pytest
import torch

from heedful.data.images.augment import AUGMENTS, OPERATIONS, Augment, augmented, cut_out, draws, mixed, shifted
from heedful.data.images.files import Preparation

PREPARED = Preparation(channels=3, resize=(16,), crop=(16, 16))
STRONG = Augment(area=0.3, shift=0.2, flip=True, jitter=0.3, operations=3, erase=0.5)


def seen(pictures, samples, augment):
    own = draws(samples, 1, 0)
    cut = [cut_out(pixels, draw, PREPARED, augment) for pixels, draw in zip(pictures, own, strict=True)]
    return augmented(PREPARED.scaled(torch.stack(cut)), own, augment)


def test_a_batch_is_one_by_one():
    pictures = torch.randint(0, 256, (8, 3, 20, 24), dtype=torch.uint8)
    together = seen(pictures, range(8), STRONG)
    assert together.shape == (8, 3, 16, 16)
    assert together.min() >= 0
    assert together.max() <= 1
    for i in range(8):
        torch.testing.assert_close(seen(pictures[i : i + 1], [i], STRONG)[0], together[i], rtol=0, atol=1e-6)
    assert not torch.equal(seen(pictures, range(1, 9), STRONG), together)


def test_none_is_as_for_use():
    pictures = torch.randint(0, 256, (3, 3, 20, 24), dtype=torch.uint8)
    torch.testing.assert_close(seen(pictures, range(3), AUGMENTS["none"]), PREPARED(list(pictures)))


def test_shifts_bring_black_in():
    pixels = torch.rand(2, 1, 4, 5)
    moved = shifted(pixels, torch.tensor([1, -2]), torch.tensor([0, 3]))
    assert torch.equal(moved[0, :, 1:], pixels[0, :, :-1])
    assert not moved[0, :, 0].any()
    assert torch.equal(moved[1, :, :2, 3:], pixels[1, :, 2:, :2])
    assert moved[1].count_nonzero() == 4


def test_flips_and_shifts_take_each_way():
    pixels = torch.zeros(200, 1, 14, 14)
    pixels[:, :, 7, 3] = 1
    places = augmented(pixels, draws(range(200), "x"), AUGMENTS["light"]).flatten(1).argmax(1)
    assert sorted({int(place) % 14 for place in places}) == [2, 3, 4, 9, 10, 11]
    assert sorted({int(place) // 14 for place in places}) == [6, 7, 8]


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_operations_do_nothing_at_0_and_something_at_1(number):
    pixels = torch.rand(4, 3, 12, 12)
    same = OPERATIONS[number](pixels, torch.zeros(4))
    torch.testing.assert_close(same, pixels, rtol=0, atol=1 / 255)
    if number:
        assert not torch.allclose(OPERATIONS[number](pixels, torch.ones(4)), pixels, rtol=0, atol=0.02)


def test_erasing_leaves_the_rest():
    pixels = torch.rand(300, 3, 12, 12)
    changed = (augmented(pixels, draws(range(300), "x"), Augment(erase=0.5)) != pixels).all(1).flatten(1).float()
    assert 0.4 < float((changed.sum(1) > 0).float().mean()) < 0.6
    assert float(changed.mean(1).max()) <= 0.4


def test_mixtures_by_hand():
    one, other = torch.ones(2, 1, 2, 2), torch.zeros(2, 1, 2, 2)
    assert mixed(one, other, torch.tensor([0.25, 1.0]))[:, 0, 0, 0].tolist() == [0.25, 1.0]
