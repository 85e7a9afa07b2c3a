"""Masks in each of their layouts, and what is wrong with them in one line."""

import json

import numpy
import pytest
import torch
from PIL import Image

from heedful.data.images.masks import read_masked_images, read_test_masks
from heedful.errors import InputError, MissingError

W, H = 6, 4


def save(path, numbers, mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = numpy.full((H, W), numbers[-1], dtype=numpy.uint16 if mode == "I;16" else numpy.uint8)
    pixels.flat[: len(numbers)] = numbers
    if mode == "P":
        image = Image.frombytes("P", (W, H), pixels.tobytes())
        image.putpalette([255 - shade for shade in range(256) for _ in range(3)])
    else:
        image = Image.fromarray(pixels)
    image.save(path)


def pairs(folder, *numbers, mode="L"):
    for i, own in enumerate(numbers):
        save(folder / "images" / f"{i}.png", [i])
        save(folder / "masks" / f"{i}.png", own, mode)


@pytest.mark.parametrize("mode", ["L", "P"])
def test_numbers_are_classes_in_order(tmp_path, mode):
    pairs(tmp_path / "train", [7, 0, 255, 3], [0, 3], mode=mode)
    pairs(tmp_path / "val", [7, 3, 0], mode=mode)
    read = read_masked_images(tmp_path)
    assert (read.channels, read.size) == (1, (H, W))
    assert (read.classes.labels, read.classes.values) == (("0", "3", "7"), (0, 3, 7))
    assert read.train.masks[0].flatten()[:5].tolist() == [2, 0, 255, 1, 1]
    assert read.valid.masks[0].shape == (1, H, W)
    (test,) = read_test_masks(tmp_path / "val", read.classes, channels=3).values()
    assert test.masks[0].flatten()[:3].tolist() == [2, 1, 0]
    assert test.images[0].shape == (3, H, W)


@pytest.mark.parametrize("turn", [3, 6])
@pytest.mark.parametrize(
    ("mode", "ending"), [("L", "png"), ("P", "png"), ("I;16", "png"), ("L", "tif"), ("I;16", "tif")]
)
def test_a_mask_is_turned_as_its_picture(tmp_path, mode, ending, turn):
    exif = Image.Exif()
    exif[0x0112] = turn  # a half, or a quarter
    for folder, kind in (("images", "L"), ("masks", mode)):
        numbers = numpy.arange(6, dtype=numpy.uint16 if kind == "I;16" else numpy.uint8).reshape(2, 3)
        image = Image.fromarray(numbers)
        if kind == "P":
            image = Image.frombytes("P", (3, 2), numbers.tobytes())
            image.putpalette([255 - shade for shade in range(256) for _ in range(3)])
        for i in range(2):
            (tmp_path / folder).mkdir(exist_ok=True)
            image.save(tmp_path / folder / f"{i}.{ending}", exif=exif)
    read = read_masked_images(tmp_path)
    mask = read.train.masks[0]
    assert mask.shape == read.train.images[0].shape
    assert torch.equal(mask[0], read.train.images[0][0].clamp(max=1 if mode == "I;16" else 255))


def test_names(tmp_path):
    pairs(tmp_path, [0, 1, 2], [2, 0])
    (tmp_path / "labels.txt").write_text("ground\nroad\n\nsky\n")
    with pytest.raises(InputError, match="the number 2, which has no name"):
        read_masked_images(tmp_path)
    (tmp_path / "labels.txt").unlink()
    for told in (["ground", "road", "house", "sky"], {"2": "house", "1": "road", "3": "sky", "0": "ground"}):
        (tmp_path / "labels.json").write_text(json.dumps(told))
        read = read_masked_images(tmp_path)
        assert read.classes.labels == ("ground", "road", "house", "sky")
        assert read.classes.values == (0, 1, 2, 3)
    assert "1 picture held out" in read.notes[0]


def test_as_many_classes_as_a_byte_has_room_for(tmp_path):
    for i in range(2):
        for name in ("images", "masks"):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(numpy.arange(256, dtype=numpy.uint8)[None]).save(tmp_path / name / f"{i}.png")
    read = read_masked_images(tmp_path)
    assert len(read.classes.labels) == 255
    assert read.train.masks[0].flatten().tolist() == [*range(256)]


def test_black_and_white(tmp_path):
    pairs(tmp_path, [0, 255], [255, 0])
    read = read_masked_images(tmp_path)
    assert read.classes.values == (0, 255)
    assert {*read.train.masks[0].flatten().tolist()} == {0, 1}
    for names in ({"0": "ground", "255": "cell"}, ["ground", "cell"]):
        (tmp_path / "labels.json").write_text(json.dumps(names))
        named = read_masked_images(tmp_path).classes
        assert (named.labels, named.values) == (("ground", "cell"), (0, 255))
    (tmp_path / "labels.json").write_text(json.dumps(["ground", "cell", "dirt"]))
    assert read_masked_images(tmp_path).classes.values == (0, 1, 2)  # 255: not known


def test_what_is_not_known_is_told(tmp_path):
    """Shades of three classes, as 0, 128 and 255 for the eye, lose the last one: who trains is to know."""
    pairs(tmp_path, [255] * 6 + [0, 128], [255] * 6 + [0, 128])
    read = read_masked_images(tmp_path)
    assert read.classes.values == (0, 128)
    told = "25.00% of the pixels are 255, which says that it is not known: neither learnt nor scored"
    assert read.notes[1:] == (f"{tmp_path}: {told}",)


def test_parts_are_called_as_people_call_them(tmp_path):
    for part in ("Training", "Validation", "Testing"):
        pairs(tmp_path / part, [0, 1])
    read = read_masked_images(tmp_path)
    assert (len(read.train), len(read.valid), len(read.tests["Testing"])) == (1, 1, 1)


def test_numbered_things(tmp_path):
    pairs(tmp_path, [0, 3, 2], [0, 1, 90], mode="I;16")
    read = read_masked_images(tmp_path)
    assert read.classes.labels == ("ground", "thing")
    masks = torch.stack([read.train.masks[0], read.valid.masks[0]]).flatten(1)
    assert masks[:, :3].tolist() == [[0, 1, 1], [0, 1, 1]]
    assert "number things" in read.notes[1]
    (tmp_path / "labels.txt").write_text("none\nnucleus\n")
    assert read_masked_images(tmp_path).classes.labels == ("none", "nucleus")


def wrong(folder, kind):
    pairs(folder, [0, 1], [1, 0])
    match kind:
        case "no masks":
            for file in (folder / "masks").iterdir():
                file.unlink()
            (folder / "masks").rmdir()
        case "no mask":
            (folder / "masks" / "1.png").unlink()
        case "no picture":
            (folder / "images" / "1.png").unlink()
        case "another size":
            Image.new("L", (W, H + 1)).save(folder / "masks" / "1.png")
        case "colours":
            for i in range(2):
                Image.new("RGB", (W, H)).save(folder / "masks" / f"{i}.png")
        case "JPEG":
            for i in range(2):
                (folder / "masks" / f"{i}.png").unlink()
                Image.new("L", (W, H)).save(folder / "masks" / f"{i}.jpg")
        case "a name of 255":
            (folder / "labels.json").write_text('{"0": "ground", "1": "cell", "255": "dirt"}')
        case "cut short":
            whole = (folder / "masks" / "1.png").read_bytes()
            (folder / "masks" / "1.png").write_bytes(whole[:-20])
        case "one number":
            pairs(folder, [4], [4])
        case "names":
            (folder / "labels.json").write_text('{"a": "b"}')
        case "one name":
            (folder / "labels.txt").write_text("ground\n")
        case "nothing":
            for file in [*(folder / "images").iterdir(), *(folder / "masks").iterdir()]:
                file.unlink()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("no masks", "no folder masks/ beside images/"),
        ("no mask", r"no mask for .*1\.png"),
        ("no picture", r"no picture for .*1\.png"),
        ("another size", r"1\.png: a mask of 6 x 5 pixels, but .* has 6 x 4"),
        ("colours", r"masks.*png: colours \(RGB\)"),
        ("JPEG", r"masks.*jpg: JPEG, in which numbers do not stay"),
        ("a name of 255", r"labels\.json: expected two or more"),
        ("cut short", r"1\.png: a damaged picture"),
        ("one number", "all masks are 4"),
        ("names", r"labels\.json: expected a list"),
        ("one name", r"labels\.txt: expected two or more"),
        ("nothing", "no picture in this folder"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, kind, message):
    wrong(tmp_path, kind)
    with pytest.raises((InputError, MissingError), match=message):
        read_masked_images(tmp_path)


def test_numbers_that_were_not_learnt(tmp_path):
    pairs(tmp_path / "train", [0, 1])
    pairs(tmp_path / "test", [0, 9])
    pairs(tmp_path / "val", [0, 1])
    with pytest.raises(InputError, match=r"test.masks.0\.png: a mask with the number 9"):
        read_masked_images(tmp_path).tests["test"].masks[0]
    with pytest.raises(MissingError, match="no folder images/"):
        read_masked_images(tmp_path / "train" / "images")
    with pytest.raises(InputError, match="a file, expected a folder"):
        read_masked_images(tmp_path / "train" / "images" / "0.png")
