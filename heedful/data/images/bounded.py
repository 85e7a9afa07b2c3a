"""Refuses pictures that take far longer to read than their pixels and bytes would: those of countless small pieces.

Pillow reads the parts of a file in Python, and a JPEG decoder goes over all pixels again for each scan.
"""

import io
import re
import struct
import zlib

from heedful.errors import InputError

MOST_READS = 10_000  # of any file, and one more for each
BYTES_A_READ = 128  # of a larger one: even a PNG in pieces of 512 bytes needs fewer
MOST_SCANS = 100  # of a JPEG; encoders make about ten
MOST_MARKERS = 10_000  # of a JPEG
MOST_STRIPS = 1 << 16  # or tiles, of a TIFF

MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")  # of a JPEG, except those inside a scan
START_OF_SCAN, END = b"\xda", b"\xd9"
OFFSETS = (273, 324)  # tags of a TIFF: of strips and of tiles

EMPTY_PIXELS = struct.pack(">I4sI", 0, b"IDAT", zlib.crc32(b"IDAT"))  # a chunk of a PNG


class BoundedReader(io.BytesIO):
    """A file in memory. Raises InputError where it is read in far more pieces than its size explains, and at once for a
    JPEG of too many scans or a TIFF of too many strips."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads_left = MOST_READS + len(content) // BYTES_A_READ
        if not _few_scans(content) or _strips(content) > MOST_STRIPS:
            raise _too_many()

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise _too_many()
        return super().read(size)


def without_pixels(content: bytes) -> bytes:
    """A PNG of the same chunks up to its next frame, but with no pixels. Raises OSError where the file ends within
    them, and InputError for more chunks than its size explains."""
    kept, place, seen = [content[:8]], 8, False
    for _ in range(MOST_READS + len(content) // BYTES_A_READ):
        length, kind = struct.unpack(">I4s", content[place : place + 8].ljust(8, b"\0"))
        if place >= len(content) or kind == b"IEND" or (seen and kind == b"fcTL"):
            return b"".join([*kept, EMPTY_PIXELS])
        seen = seen or kind == b"IDAT"
        if kind == b"IDAT" and place + 12 + length > len(content):
            raise OSError("the file is cut short")
        if kind not in (b"IDAT", b"acTL", b"fcTL"):
            kept.append(content[place : place + 12 + length])
        place += 12 + length
    raise _too_many()


def _too_many() -> InputError:
    return InputError("a picture in too many pieces", fix="save it anew, with a program for pictures")


def _few_scans(content: bytes) -> bool:
    """Whether a JPEG has few scans and other parts; True for other files."""
    if not content.startswith(b"\xff\xd8"):
        return True
    place = scans = 0
    for _ in range(MOST_MARKERS):
        found = MARKER.search(content, max(place, 2))
        if found is None or found[1] == END:
            return True
        scans += found[1] == START_OF_SCAN
        if scans > MOST_SCANS:
            return False
        (length,) = struct.unpack(">H", content[found.end() : found.end() + 2].ljust(2, b"\0"))
        place = found.end() + length
    return False


def _strips(content: bytes) -> int:
    """The number of strips or tiles of the first picture of a TIFF; 0 for other files."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2])
    if order is None:
        return 0
    with io.BytesIO(content) as file:
        try:
            big = struct.unpack(f"{order}2xH", file.read(4)) == (43,)  # BigTIFF
            (first,) = struct.unpack(f"{order}4xQ" if big else f"{order}I", file.read(12 if big else 4))
            file.seek(first)
            (entries,) = struct.unpack(f"{order}Q" if big else f"{order}H", file.read(8 if big else 2))
            entry = struct.Struct(f"{order}HHQ8x" if big else f"{order}HHI4x")
            found = (entry.unpack(file.read(entry.size)) for _ in range(min(entries, MOST_STRIPS)))
            return max((count for tag, _, count in found if tag in OFFSETS), default=0)
        except (struct.error, OverflowError, ValueError):  # Pillow says what is wrong
            return 0
