"""Pictures of countless small pieces are refused after few of them, and those that programs make are read."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from heedful.data.images.files import ImageFile, image_header, read_image
from heedful.errors import InputError

Repeat = Callable[[int], bytes]


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(before: bytes = b"", after: bytes = b"", *, size: int = 8, piece: int = 1 << 16) -> bytes:
    """A PNG of noise, its pixels in pieces of so many bytes."""
    rows = b"".join(b"\0" + random.Random(row).randbytes(3 * size) for row in range(size))
    pixels = zlib.compress(rows)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
    body = b"".join(chunk(b"IDAT", pixels[i : i + piece]) for i in range(0, len(pixels), piece))
    return b"\x89PNG\r\n\x1a\n" + head + before + body + after + chunk(b"IEND")


def saved(kind: str, *, size: int = 8, **how: object) -> bytes:
    image = Image.frombytes("RGB", (size, size), random.Random(0).randbytes(3 * size * size))
    made = io.BytesIO()
    image.save(made, kind, **how)
    return made.getvalue()


def gif(number: int) -> bytes:
    whole = saved("GIF")
    begin = 13 + 3 * (2 << (whole[10] & 7))
    return whole[:begin] + b"\x21\xfe\x00" * number + whole[begin:]


def jpeg(part: bytes, number: int) -> bytes:
    whole = saved("JPEG")
    return whole[:2] + part * number + whole[2:]


def scans(number: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    whole = saved("JPEG", progressive=True)
    return whole[:-2] + whole[whole.rfind(b"\xff\xda") : -2] * number + whole[-2:]


def tiff(number: int, *, order: str = "<", big: bool = False) -> bytes:
    """A TIFF of so many strips."""
    tags = [(256, 3, 1, 8), (257, 3, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, number, 300)]
    head = struct.pack(f"{order}2sH", b"II" if order == "<" else b"MM", 43 if big else 42)
    head += struct.pack(f"{order}HHQQ" if big else f"{order}IH", *((8, 0, 16, len(tags)) if big else (8, len(tags))))
    entries = b"".join(struct.pack(f"{order}HHQQ" if big else f"{order}HHII", *tag) for tag in tags)
    return (head + entries).ljust(300, b"\0") + bytes(4 * number)


COUNTLESS: dict[str, Repeat] = {
    "empty chunks of a PNG": lambda n: png(chunk(b"abCd") * n),
    "chunks behind its pixels": lambda n: png(after=chunk(b"abCd") * n),
    "empty chunks of pixels": lambda n: png(chunk(b"IDAT") * n),
    "texts of a PNG": lambda n: png(chunk(b"tEXt", b"a\0b") * n),
    "comments of a GIF": gif,
    "parts of a JPEG": lambda n: jpeg(b"\xff\xe5\x00\x02", n),
    "comments of a JPEG": lambda n: jpeg(b"\xff\xfe\x00\x03a", n),
    "padding of a JPEG": lambda n: jpeg(b"\xff", n),
    "padding of a JPEG without an end": lambda n: jpeg(b"\xff", n)[: 2 + n] + b"\0",
    "scans of a JPEG": scans,
    "strips of a TIFF": tiff,
    "strips of a TIFF of the other order": lambda n: tiff(n, order=">"),
    "strips of a BigTIFF": lambda n: tiff(n, big=True),
    "comments of a PPM": lambda n: b"P6\n" + b"#\n" * n + b"8 8 255\n" + bytes(192),
}


@pytest.mark.parametrize("kind", COUNTLESS)
def test_a_picture_of_countless_pieces_is_refused(
    tmp_path: Path, kind: str, full: bool, tally: Callable[[str, int], None]
) -> None:
    for number in (200_000, *([2_000_000] if full else [])):
        (tmp_path / "x").write_bytes(COUNTLESS[kind](number))
        with pytest.raises(InputError, match="x: a picture in too many pieces"):
            read_image(tmp_path / "x")
        tally("S10 pictures of countless pieces", 1)


def test_a_few_of_each_are_read(tmp_path: Path) -> None:
    for kind, made in COUNTLESS.items():
        if "TIFF" not in kind and "end" not in kind:  # those have no pixels
            (tmp_path / "x").write_bytes(made(20))
            assert read_image(tmp_path / "x").shape == (3, 8, 8), kind


def test_pictures_that_programs_make_are_read(tmp_path: Path) -> None:
    """Large ones in small pieces, and with other pictures inside."""
    exif = Image.Exif()
    exif[0x010E] = b"\xff\xda" * 300
    image = Image.new("P", (900, 900))
    image.putdata([number * number % 251 for number in range(900 * 900)])
    image.putpalette([value // 3 for value in range(768)])
    runs = io.BytesIO()
    image.save(runs, "BMP")
    for content in (
        png(size=1200, piece=512),
        png(size=300, piece=100),
        saved("JPEG", size=700, progressive=True),
        saved("JPEG", size=700, exif=exif) + b"\xff\xda\x00\x02" * 500,  # a film behind it
        saved("GIF", size=700),
        saved("TIFF", size=700, compression="tiff_lzw"),
        saved("TIFF", size=700, strip_size=1),
        saved("WEBP", size=700),
        saved("PPM", size=700),
        runs.getvalue(),
        packed_bmp(900),
    ):
        (tmp_path / "x").write_bytes(content)
        shape = read_image(tmp_path / "x").shape
        assert image_header(ImageFile(tmp_path / "x"))[1:] == shape[1:]


def packed_bmp(size: int) -> bytes:
    """A BMP whose every run of equal pixels is one pixel."""
    rows = (b"".join(bytes((1, (row + i) % 256)) for i in range(size)) + b"\0\0" for row in range(size))
    pixels = b"".join(rows) + b"\0\1"
    head = struct.pack("<IiiHHIIiiII", 40, size, size, 1, 8, 1, len(pixels), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 1078 + len(pixels), 0, 0, 1078) + head + bytes(range(256)) * 4 + pixels
