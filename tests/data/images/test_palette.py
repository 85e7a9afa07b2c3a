"""Pictures as numbers of a palette, and back."""

import pytest
import torch

from heedful.data.images.files import Preparation
from heedful.data.images.palette import Palette, grey_palette, learn_palette
from heedful.errors import InputError


@pytest.mark.parametrize(
    "palette", [grey_palette(16), grey_palette(256), Palette(((0, 0, 0), (1, 0, 0), (255, 9, 255), (20, 200, 3)))]
)
def test_colours_of_the_palette_come_back(palette):
    numbers = torch.randint(len(palette), (3, 4, 5))
    painted = palette.paint(numbers)
    assert painted.shape == (3, len(palette.colours[0]), 4, 5)
    assert torch.equal(palette.numbers(painted / 255), numbers)


def test_other_colours_become_the_nearest():
    palette = Palette(((0, 0, 0), (250, 0, 0), (0, 200, 0)))
    pixels = torch.tensor([[[130.0, 120.0, 90.0]], [[0.0, 0.0, 110.0]], [[0.0, 0.0, 10.0]]])[None] / 255
    assert palette.numbers(pixels).tolist() == [[[1, 0, 2]]]
    greys = torch.arange(256) / 255
    assert torch.equal(grey_palette(16).numbers(greys.view(1, 1, 1, 256))[0, 0], (greys * 15).round().long())


def test_a_palette_is_learnt():
    """Of three clouds of colours k-means finds the middles, whatever it begins from."""
    middles = torch.tensor([[30, 30, 200], [120, 220, 120], [200, 40, 40]])
    pixels = middles[torch.randint(3, (20, 8, 8))] + torch.randint(-9, 10, (20, 8, 8, 3))
    images, fitting = pixels.to(torch.uint8).movedim(3, 1), Preparation(resize=(8,), crop=(8, 8))
    found = learn_palette(images, fitting, colours=3, seed=4)
    assert (torch.tensor(found.colours) - middles).abs().max() <= 2
    assert learn_palette(images, fitting, colours=3, seed=4) == found
    few = (images // 100) * 100
    exact = learn_palette(few, fitting, colours=40, seed=1)
    assert torch.equal(exact.paint(exact.numbers(few / 255)), few)


def test_what_is_no_palette():
    with pytest.raises(InputError, match="257 greys"):
        grey_palette(257)
    for colours in ((), ((1,), (1,)), ((1, 2),), ((1,), (1, 2, 3)), ((256,),)):
        with pytest.raises(InputError, match="a palette is"):
            Palette(colours)
