"""Pictures are read as they are meant to be seen, or one line says which file is wrong; and they are made to fit."""

import io
import zipfile
import zlib

import numpy
import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from heedful.data.images.augment import Augment, seen
from heedful.data.images.files import (
    ImageFile,
    ImageFiles,
    Preparation,
    SomeImages,
    image_header,
    read_image,
    resize,
    survey,
)
from heedful.data.images.palette import learn_palette
from heedful.errors import InputError, MissingError
from heedful.tasks.shared.pictures import prepared

RED, WHITE = [255, 0, 0], [255, 255, 255]


def saved(folder, image, name="a.png", **options):
    image.save(folder / name, **options)
    return folder / name


def corner(pixels):
    """The upper left pixel."""
    return pixels[:, 0, 0].tolist()


def test_what_is_transparent_is_white(tmp_path):
    clear = Image.new("RGBA", (3, 2), (255, 0, 0, 0))
    assert corner(read_image(saved(tmp_path, clear))) == WHITE
    half = Image.new("RGBA", (3, 2), (255, 0, 0, 128))
    assert corner(read_image(saved(tmp_path, half))) == pytest.approx([255, 127, 127], abs=1)
    assert corner(read_image(saved(tmp_path, Image.new("LA", (3, 2), (0, 0))))) == WHITE
    assert corner(read_image(saved(tmp_path, Image.new("LA", (3, 2), (7, 255))), channels=1)) == [7]


def test_palettes_are_looked_up(tmp_path):
    image = Image.new("P", (3, 2))
    image.putpalette([0, 255, 0, *RED])
    image.putpixel((0, 0), 1)
    assert corner(read_image(saved(tmp_path, image))) == RED
    assert corner(read_image(saved(tmp_path, image, transparency=1))) == WHITE


def test_16_bits_become_8(tmp_path):
    values = numpy.array([[0, 257, 65535]], dtype=numpy.uint16)
    path = saved(tmp_path, Image.fromarray(values))
    assert read_image(path, channels=1).tolist() == [[[0, 1, 255]]]
    assert read_image(path).shape == (3, 1, 3)


def test_cmyk_and_black_and_white(tmp_path):
    assert corner(read_image(saved(tmp_path, Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "a.jpg"))) == pytest.approx(
        RED, abs=3
    )
    assert corner(read_image(saved(tmp_path, Image.new("1", (3, 2), 1)))) == WHITE


def test_turned_as_the_camera_was(tmp_path):
    image = Image.new("RGB", (3, 2), "black")
    image.putpixel((0, 0), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    for name in ("a.png", "a.tif"):  # Pillow turns TIFF by itself
        path = saved(tmp_path, image, name, exif=exif)
        seen = read_image(path)
        assert seen.shape == (3, 3, 2)
        assert seen[:, 0, 1].tolist() == RED
        assert image_header(ImageFile(path)) == (3, 3, 2)


def test_of_a_png_the_header_is_read_without_the_pixels(tmp_path, monkeypatch):
    """With what follows them, as some programs write EXIF there, as the reader of pixels does."""
    exif = Image.Exif()
    exif[0x0112] = 6
    image, turned, plain = Image.new("RGB", (3, 2)), io.BytesIO(), io.BytesIO()
    image.save(turned, "png", exif=exif)
    image.save(plain, "png")
    early, end = turned.getvalue(), plain.getvalue()[-12:]
    begin = early.index(b"eXIf") - 4
    chunk = early[begin : begin + 12 + int.from_bytes(early[begin : begin + 4], "big")]
    (tmp_path / "late.png").write_bytes(plain.getvalue()[:-12] + chunk + end)
    (tmp_path / "none.png").write_bytes(plain.getvalue())
    assert read_image(tmp_path / "late.png").shape == (3, 3, 2)
    monkeypatch.setattr(PngImageFile, "load", None)
    assert image_header(ImageFile(tmp_path / "late.png")) == (3, 3, 2)
    assert image_header(ImageFile(tmp_path / "none.png")) == (3, 2, 3)


def test_of_several_frames_the_first(tmp_path):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    path = saved(tmp_path, frames[0], "a.gif", save_all=True, append_images=frames[1:])
    assert corner(read_image(path)) == RED


def png():
    data = io.BytesIO()
    Image.fromarray(numpy.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=numpy.uint8)).save(data, "png")
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a picture"),
        (b"hello", "not a picture"),
        (png()[:1000], "a damaged picture"),
        (png()[:40], "a damaged picture|not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),  # no program is started for it
        (png()[:300] + bytes(200) + png()[500:], "a damaged picture"),
    ],
)
def test_what_is_no_picture_is_named(tmp_path, data, message):
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as told:
        read_image(path)
    assert told.value.where == str(path)
    assert "\n" not in str(told.value)


def test_floats_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.tiff: floating-point pixels"):
        read_image(saved(tmp_path, Image.new("F", (3, 2)), "a.tiff"))


@pytest.mark.parametrize("edge", [9000, 30000])  # Pillow itself warns of the first and refuses the second
def test_a_bomb_is_refused(tmp_path, edge):
    head = b"IHDR" + edge.to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
    whole = png()
    (tmp_path / "a.png").write_bytes(whole[:12] + head + zlib.crc32(head).to_bytes(4, "big") + whole[33:])
    with pytest.raises(InputError, match=r"a\.png: .* pixels"):
        read_image(tmp_path / "a.png")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingError, match=r"nothing\.png: no such file"):
        read_image(tmp_path / "nothing.png")


def test_pictures_in_a_zip_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x/a.png", png())
    assert read_image(ImageFile(tmp_path / "a.zip", "x/a.png")).shape == (3, 40, 40)
    with pytest.raises(InputError, match=r"a\.zip/y\.png: cannot be taken"):
        ImageFile(tmp_path / "a.zip", "y.png").read()


def test_a_damaged_member_of_a_zip_file_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bmp", bytes(1000))
    whole = bytearray((tmp_path / "a.zip").read_bytes())
    whole[35:40] = b"\xff" * 5  # of its data, behind a header of 30 bytes and the name
    (tmp_path / "a.zip").write_bytes(whole)
    with pytest.raises(InputError, match=r"a\.zip/a\.bmp: cannot be taken"):
        read_image(ImageFile(tmp_path / "a.zip", "a.bmp"))


def test_a_narrow_picture_does_not_become_a_huge_one():
    with pytest.raises(InputError, match="1 x 40,000 pixels, which would become 64 x 2,560,000"):
        Preparation(channels=1, resize=(64,), crop=(64, 64)).fitted(torch.zeros(1, 1, 40000, dtype=torch.uint8))


def test_a_picture_that_does_not_fit_is_named(tmp_path):
    files = [ImageFile(saved(tmp_path, Image.new("L", (size, 2)), f"{size}.png")) for size in (2, 2000)]
    images = SomeImages(ImageFiles(files, channels=1), [0, 0, 1])
    narrow = Preparation(channels=1, resize=(2000,), crop=(4, 4))
    uses = [
        lambda: list(prepared(images, narrow, most=2)),
        lambda: seen(images, [2], narrow, Augment()),
        lambda: learn_palette(images, narrow, colours=2, seed=0),
    ]
    for use in uses:
        with pytest.raises(InputError, match=r"/2000\.png: a picture of 2 x 2,000 pixels, which would become"):
            use()
    with pytest.raises(InputError, match=r"/2\.png: a picture of 2 x 2 pixels, of which 4 x 4"):
        list(prepared(images, Preparation(channels=1, crop=(4, 4)), most=2))


def test_memory_is_bounded(tmp_path):
    paths = [saved(tmp_path, Image.new("L", (10, 10), shade), f"{shade}.png") for shade in (1, 2, 3)]
    images = ImageFiles([ImageFile(path) for path in paths], channels=1, most=250)
    for _ in range(2):
        assert [int(images[i][0, 0, 0]) for i in range(3)] == [1, 2, 3]
    assert len(images._kept) == 2


def test_resizing_keeps_the_mean_and_a_box_is_cut_out():
    pixels = torch.arange(64, dtype=torch.uint8).view(1, 8, 8)
    smaller = resize(pixels, (4, 2))
    assert smaller.shape == (1, 4, 2)
    assert float(smaller.float().mean()) == pytest.approx(float(pixels.float().mean()), abs=1)
    assert torch.equal(resize(pixels, (2, 3), box=(1.0, 4.0, 4.0, 6.0)), pixels[:, 4:6, 1:4])
    assert torch.equal(resize(pixels, (8, 8)), pixels)


def test_a_preparation_by_hand():
    pixels = torch.zeros(1, 40, 20, dtype=torch.uint8)
    pixels[:, 20:] = 255
    seen = Preparation(channels=1, resize=(10,), crop=(8, 10), mean=(0.5,), std=(0.25,))([pixels])
    assert seen.shape == (1, 1, 8, 10)
    assert seen[0, 0, 0].unique().tolist() == [-2.0]
    assert seen[0, 0, -1].unique().tolist() == [2.0]
    with pytest.raises(InputError, match="of which 30 x 30 are to be cut out"):
        Preparation(resize=(20,), crop=(30, 30)).fitted(pixels.expand(3, -1, -1))
    with pytest.raises(InputError, match="a mean"):
        Preparation(channels=3, mean=(0.5,))


def test_mean_and_deviation_by_hand(tmp_path):
    pixels = torch.randint(0, 256, (700, 2, 5, 4), dtype=torch.uint8)
    found, shares = survey(pixels), pixels.double() / 255
    assert found.mean == pytest.approx(shares.mean(dim=(0, 2, 3)).tolist())
    assert found.std == pytest.approx(shares.transpose(0, 1).flatten(1).std(1, correction=0).tolist())
    assert survey(torch.zeros(3, 1, 4, 4, dtype=torch.uint8)).std == (1.0,)
    changed = pixels.clone()
    changed[699, 1, 4, 3] ^= 1
    assert survey(changed).fingerprint != found.fingerprint


@pytest.mark.parametrize(("lowest", "highest"), [(0, 65536), (-1, 9), (0, 2**31 - 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_numbers_that_are_wider_than_16_bits_are_not_cut_off_in_silence(tmp_path, lowest, highest, channels):
    numbers = numpy.array([[lowest, 5, highest]], dtype=numpy.int32)
    Image.fromarray(numbers).save(tmp_path / "a.tiff")
    with pytest.raises(InputError) as caught:
        read_image(tmp_path / "a.tiff", channels=channels)
    assert caught.value.what == f"pixels of 32 bits from {lowest:,} to {highest:,}, and from 0 to 65,535 are read"
    assert caught.value.fix == "scale them, and save the picture with 8 or 16 bits"
