"""What is said of a picture moves with its pixels."""

import pytest
import torch

from heedful.data.images.augment import Augment, draws
from heedful.data.images.views import View, drawn, whole

H, W = 40, 60


def box_of(mask):
    rows, columns = mask.any(1).nonzero()[:, 0], mask.any(0).nonzero()[:, 0]
    return torch.tensor([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]).float()


def test_boxes_follow_the_pixels():
    """A box drawn into a picture is where the view says."""
    seen = 0
    for draw in draws(range(60), 1):
        view = drawn(draw, (H, W), Augment(area=0.4, flip=True))
        edges = torch.tensor([[20.0, 10.0, 38.0, 31.0]])
        pixels = torch.zeros(1, H, W, dtype=torch.uint8)
        pixels[:, 10:31, 20:38] = 255
        shares, inside = view.boxes(edges)
        cut = view.pixels(pixels, (160, 240), resample="nearest")[0] > 0
        if inside.all():
            seen += 1
            found = box_of(cut) / torch.tensor([240, 160, 240, 160])
            torch.testing.assert_close(shares[0], found, rtol=0, atol=0.03)
    assert seen > 30


def test_things_stay_while_their_centre_is_seen():
    view = View(10.0, 0.0, 30.0, 40.0, flip=True)
    boxes = torch.tensor([[0.0, 0, 12, 4], [0, 0, 22, 4], [26, 36, 36, 44], [22, 10, 26, 20]])
    shares, inside = view.boxes(boxes)
    assert inside.tolist() == [False, True, False, True]
    torch.testing.assert_close(shares[3], torch.tensor([0.2, 0.25, 0.4, 0.5]))
    torch.testing.assert_close(shares[1], torch.tensor([0.4, 0.0, 1.0, 0.1]))


def test_all_of_a_picture():
    pixels = torch.randint(0, 256, (3, H, W), dtype=torch.uint8)
    assert torch.equal(whole((H, W)).pixels(pixels, (H, W)), pixels)
    boxes = torch.tensor([[6.0, 4, 30, 20]])
    assert whole((H, W)).boxes(boxes)[0].tolist() == [pytest.approx([0.1, 0.1, 0.5, 0.5])]
    for draw in draws(range(9), 2):
        assert drawn(draw, (H, W), Augment()) == whole((H, W))


def test_a_view_depends_on_its_own_numbers_alone():
    strong = Augment(area=0.3, flip=True)
    one, other = ([drawn(draw, (H, W), strong) for draw in draws(range(9), key)] for key in ("a", "b"))
    assert [drawn(draw, (H, W), strong) for draw in draws(range(5, 9), "a")] == one[5:]
    assert one != other
    assert {view.flip for view in one} == {True, False}
