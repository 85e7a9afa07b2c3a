"""A scene says the same in boxes, in its mask and in words."""

import numpy
import pytest

from heedful.data.made import shapes


def test_a_scene_depends_on_its_part_and_number_alone():
    one, again, other, test = (shapes.scene(*key) for key in (("train", 3), ("train", 3), ("train", 4), ("test", 3)))
    assert numpy.array_equal(one.pixels, again.pixels)
    assert one.shapes == again.shapes
    assert not numpy.array_equal(one.pixels, other.pixels)
    assert not numpy.array_equal(one.pixels, test.pixels)
    assert (one.pixels.shape, one.pixels.dtype) == ((64, 64, 3), numpy.uint8)


def test_boxes_fit_the_mask():
    scenes = shapes.scenes("train", 60)
    assert {len(one.shapes) for one in scenes} == {1, 2, 3, 4}
    for one in scenes:
        left = one.mask.copy()
        for shape in one.shapes:
            x0, y0, x1, y1 = map(int, shape.box)
            inside = left[y0:y1, x0:x1] == shapes.KINDS.index(shape.kind) + 1
            assert inside.any(0).all()
            assert inside.any(1).all()
            left[y0:y1, x0:x1] = 0
        assert not left.any()


def test_captions_by_hand():
    red, blue = (
        shapes.Shape("circle", "red", (4.0, 0.0, 8.0, 4.0)),
        shapes.Shape("square", "blue", (0.0, 20.0, 4.0, 30.0)),
    )
    blank = numpy.zeros((64, 64, 3), numpy.uint8)

    def caption(*own):
        return shapes.Scene(blank, blank[..., 0], own).caption

    assert caption(red) == "a red circle"
    assert caption(red, blue) == "a red circle above a blue square"
    assert caption(blue, red) == "a blue square below a red circle"
    far = shapes.Shape("triangle", "green", (50.0, 22.0, 60.0, 30.0))
    assert caption(red, blue, far) == "a red circle above a blue square left of a green triangle"
    assert caption(far, blue) == "a green triangle right of a blue square"


@pytest.mark.parametrize(("name", "count"), [("shapes", shapes.MANY), ("shapes:12", 12), ("my/shapes", None)])
def test_names(name, count):
    assert shapes.asked(name) == count
