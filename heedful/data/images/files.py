"""Reads pictures from files as byte tensors, and prepares them as a model's input: size and normalisation.

N channels (1: grey, 3: red, green, blue), H x W pixels, B pictures.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy
import torch
from jaxtyping import Float, Integer, UInt8
from PIL import Image, ImageOps
from torch import Tensor

from heedful.data.images.bounded import BoundedReader, without_pixels
from heedful.data.lines import DAMAGED, NOT_READ, open_archive, open_file, unreadable
from heedful.errors import HeedError, InputError

# The formats that are read: Pillow knows more, but runs other programs for some of them.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
MOST_BYTES = 1 << 28  # of a file; up to 4 times as many bytes of pictures are kept in memory
MOST_PIXELS = 1 << 26
SCALE = "scale them, and save the picture with 8 or 16 bits"
GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L")
RESAMPLE = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


@dataclass(frozen=True, order=True)
class ImageFile:
    """A file, or a member of a zip file."""

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    def read(self) -> bytes:
        """Reads the bytes of the file. Raises MissingError or InputError."""
        try:
            archive = open_archive(self.path) if self.member else None
            size = archive.getinfo(self.member).file_size if archive else self.path.stat().st_size
            if size > MOST_BYTES:
                raise InputError(f"{size:,} bytes, at most {MOST_BYTES:,} are read", where=str(self))
            with archive.open(self.member) if archive else open_file(self.path) as file:
                return file.read(size)
        except (*DAMAGED, NOT_READ, KeyError):
            raise InputError("cannot be taken out of the zip file", where=str(self), fix="try unzip -t") from None
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from None


def members(path: Path) -> list[ImageFile]:
    """Lists the pictures in a zip file by name. Raises MissingError or InputError."""
    try:
        return [ImageFile(path, name) for name in sorted(open_archive(path).namelist()) if is_image(name)]
    except OSError as error:
        raise unreadable(path, error) from None


def is_image(name: str) -> bool:
    """Whether a name has the suffix of a picture; hidden files, which desktops put beside others, do not count."""
    last = name.rsplit("/", 1)[-1]
    return last.lower().endswith(SUFFIXES) and not last.startswith(".")


def read_image(file: ImageFile | Path | str, *, channels: int = 3) -> UInt8[Tensor, "N H W"]:
    """Reads a picture as it is meant to be seen: turned by its EXIF orientation, its palette applied, 16 bits reduced
    to 8 by their full range, transparency on white, the first of several frames.

    Raises MissingError, or InputError for a file that is not a picture, is damaged or truncated, or has more than 2^26
    pixels, or pixels outside 0 to 65,535, or floating-point pixels.
    """
    with _opened(file) as image:
        return to_tensor(_plain(image, channels))


def image_header(file: ImageFile) -> tuple[int, int, int]:
    """Returns channels, rows and columns of a picture without reading its pixels; raises errors as `read_image`."""
    opened = _opened(file)
    with opened as image:
        turned = image.format != "TIFF" and _orientation(image, opened.content) in (5, 6, 7, 8)
        width, height = image.size
        return (1 if image.mode in GREY else 3, *((width, height) if turned else (height, width)))


def _orientation(image: Image.Image, content: bytes) -> object:
    """As EXIF says it; Pillow itself applies that of a TIFF. What follows the pixels of a PNG it sees only after it has
    decoded them, so that it is given none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if image.format == "PNG":
            image = Image.open(io.BytesIO(without_pixels(content)), formats=("PNG",))
        return Image.Image.getexif(image).get(0x0112)


def common_shape(headers: Sequence[tuple[int, int, int]], channels: int | None) -> tuple[int, tuple[int, int]]:
    """Returns the channels for all pictures (`channels`, or the most that any has if None), and rows and columns of the
    median picture."""
    return channels or max(header[0] for header in headers), sorted(header[1:] for header in headers)[len(headers) // 2]


def read_numbers(file: ImageFile) -> Integer[Tensor, "H W"]:
    """Reads the numbers of a picture with one channel, for a palette the indices: uint8, or int32 for 16 bits; turned
    by its EXIF orientation. Raises errors as `read_image`, and InputError for colours and for JPEG."""
    with _opened(file) as image:
        if image.format == "JPEG":
            raise InputError("JPEG, in which numbers do not stay what they are", fix="save masks as PNG")
        if image.mode not in ("1", "L", "P", "I", "I;16", "I;16B", "I;16L"):
            what = f"colours ({image.mode}), expected palette numbers or grey values"
            raise InputError(what, fix="save masks as PNG with one channel, a number a pixel")
        numbers = numpy.asarray(_turned(image)).astype(numpy.int32)
        if numbers.min(initial=0) < 0 or numbers.max(initial=0) > 65535:
            raise InputError("numbers that are not from 0 to 65,535")
        return torch.from_numpy(numbers if image.mode.startswith("I") else numbers.astype(numpy.uint8))


class _opened:
    """Opens a picture, and raises errors in one line, when opening or while its pixels are read."""

    def __init__(self, file: ImageFile | Path | str) -> None:
        self.file = file if isinstance(file, ImageFile) else ImageFile(Path(file))

    def __enter__(self) -> Image.Image:
        self.content = content = self.file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of sizes (checked here) and damaged metadata
            try:
                reader = BoundedReader(content)
                self.image = Image.open(reader, formats=FORMATS)
            except InputError as error:
                raise InputError(error.what, where=str(self.file), fix=error.fix) from None
            except Exception as error:
                raise self._told(error) from None
        if self.image.format == "BMP":
            reader.reads_left += len(content)  # each run of equal pixels may be read alone
        width, height = self.image.size
        if width * height > MOST_PIXELS:
            what = f"{width:,} x {height:,} pixels, at most {MOST_PIXELS:,} are read"
            raise InputError(what, where=str(self.file), fix="make it smaller")
        return self.image

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.image.close()
        if isinstance(error, InputError) and not error.where:
            raise InputError(error.what, where=str(self.file), fix=error.fix) from None
        if isinstance(error, Exception) and not isinstance(error, HeedError | MemoryError):
            raise self._told(error) from None

    def _told(self, error: Exception) -> InputError:
        """Makes the error; Pillow raises exceptions of any kind for a damaged file."""
        if isinstance(error, Image.DecompressionBombError):
            what, fix = f"more than {MOST_PIXELS:,} pixels", "make it smaller"
        elif isinstance(error, Image.UnidentifiedImageError):
            what, fix = "not a picture", f"give {', '.join(FORMATS)}"
        else:
            said = " ".join(str(error).split())[:100]
            what, fix = f"a damaged picture ({said or type(error).__name__})", "copy it again, or take it out"
        return InputError(what, where=str(self.file), fix=fix)


def _turned(image: Image.Image) -> Image.Image:
    """Applies the EXIF orientation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image.load()
        return ImageOps.exif_transpose(image)


def _plain(image: Image.Image, channels: int) -> Image.Image:
    """Returns the picture with 8 bits a channel, and without transparency."""
    image = _turned(image)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if image.mode.startswith("I"):
            numbers = numpy.asarray(image)
            lowest, highest = int(numbers.min()), int(numbers.max())
            if lowest < 0 or highest > 65535:
                what = f"pixels of 32 bits from {lowest:,} to {highest:,}, and from 0 to 65,535 are read"
                raise InputError(what, fix=SCALE)
            image = Image.fromarray((numbers / 257).round().astype(numpy.uint8))
        if image.mode == "F":
            raise InputError("floating-point pixels, expected 8 or 16 bits", fix=SCALE)
        if "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
            image = image.convert("RGBA")
            ground = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(ground, image)
        return image.convert("L" if channels == 1 else "RGB")


def to_tensor(image: Image.Image) -> UInt8[Tensor, "N H W"]:
    """Converts a picture in mode L or RGB."""
    pixels = torch.from_numpy(numpy.array(image))
    return pixels[None] if pixels.dim() == 2 else pixels.permute(2, 0, 1).contiguous()


def to_image(pixels: UInt8[Tensor, "N H W"]) -> Image.Image:
    """The inverse of `to_tensor`."""
    return Image.fromarray((pixels[0] if len(pixels) == 1 else pixels.permute(1, 2, 0)).contiguous().numpy())


def resize(
    pixels: UInt8[Tensor, "N H W"],
    size: tuple[int, int],
    *,
    resample: Resample = "bilinear",
    box: tuple[float, float, float, float] | None = None,
) -> UInt8[Tensor, "N h w"]:
    """Resizes a picture, or the part of it in `box` (left, upper, right and lower edge), to `size` rows and columns,
    with antialiasing."""
    if box is None and pixels.shape[1:] == size:
        return pixels
    return to_tensor(to_image(pixels).resize((size[1], size[0]), RESAMPLE[resample], box=box))


@runtime_checkable
class Images(Protocol):
    """Pictures by index: all in one tensor, or read on demand."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Tensor: ...


@dataclass(frozen=True)
class SomeImages:
    """The pictures with these indices in `images`."""

    images: Images
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int, /) -> Tensor:
        return self.images[self.numbers[index]]


def where_of(images: Images, index: int) -> str:
    """Returns the file of a picture; "" for a picture in memory."""
    if isinstance(images, SomeImages):
        return where_of(images.images, images.numbers[index])
    return str(images.files[index]) if isinstance(images, ImageFiles) else ""


class ImageFiles:
    """Pictures in files. They are read on demand, and cached up to `most` bytes."""

    def __init__(self, files: Sequence[ImageFile], *, channels: int = 3, most: int = 4 * MOST_BYTES) -> None:
        self.files, self.channels, self.room = list(files), channels, most
        self._kept: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int, /) -> UInt8[Tensor, "N H W"]:
        if index in self._kept:
            return self._kept[index]
        pixels = read_image(self.files[index], channels=self.channels)
        if pixels.numel() <= self.room:
            self.room -= pixels.numel()
            self._kept[index] = pixels
        return pixels


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Turns a picture of any size into a model's input: resized, cropped at the centre, scaled, and each channel
    normalised to about mean 0 and standard deviation 1."""

    channels: int = 3
    resize: tuple[int, ...] = ()  # rows and columns; or the shorter edge; empty: unchanged
    longest: int | None = None  # the largest longer edge, if the shorter one is given
    crop: tuple[int, ...] = ()  # rows and columns of the centre crop; empty: no crop
    resample: Resample = "bilinear"
    factor: float = 1 / 255
    mean: tuple[float, ...] = ()  # of each channel, after scaling
    std: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.resize) > 2 or len(self.crop) not in (0, 2) or min((1, *self.resize, *self.crop)) < 1:
            raise InputError(f"pictures resized to {self.resize} and cut to {self.crop}", fix="give rows and columns")
        if self.longest is not None and (len(self.resize) != 1 or self.longest < 1):
            raise InputError(f"a longer edge of {self.longest}, and pictures resized to {self.resize}")
        if any(len(each) not in (0, self.channels) for each in (self.mean, self.std)):
            raise InputError(f"a mean {self.mean} and a deviation {self.std} for {self.channels} channels")

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the result. Raises InputError if they depend on the picture."""
        size = self.crop or self.resize
        if len(size) != 2:
            raise InputError("pictures come out in different sizes", fix="give a crop")
        return size[0], size[1]

    def fitted(self, pixels: UInt8[Tensor, "N H W"], *, where: str = "") -> UInt8[Tensor, "N h w"]:
        """Resizes and crops a picture. Raises InputError if it is smaller than the crop, or so narrow that the result
        would have more than 2^26 pixels; `where` is its file."""
        H, W = pixels.shape[1:]
        if len(self.resize) == 2:
            H, W = self.resize
        elif self.resize:
            H, W = self._by_edge(H, W)
        if H * W > MOST_PIXELS:
            what = f"a picture of {pixels.shape[1]:,} x {pixels.shape[2]:,} pixels, which would become {H:,} x {W:,}"
            raise InputError(what, where=where, fix="cut it into pieces that are less narrow, or take it out")
        pixels = resize(pixels, (H, W), resample=self.resample)
        if not self.crop:
            return pixels
        rows, columns = self.crop
        if min(H - rows, W - columns) < 0:
            what = f"a picture of {H} x {W} pixels, of which {rows} x {columns} are to be cut out"
            raise InputError(what, where=where, fix="give a larger one")
        top, left = (H - rows) // 2, (W - columns) // 2
        return pixels[:, top : top + rows, left : left + columns]

    def _by_edge(self, H: int, W: int) -> tuple[int, int]:
        """Returns rows and columns of about the same aspect ratio; unchanged if the shorter edge has the right number
        of pixels already. The sizes equal those of torchvision and of the authors of DETR."""
        shorter, longer = min(H, W), max(H, W)
        edge = float(self.resize[0])
        if self.longest is not None and longer / shorter * edge > self.longest:
            edge = self.longest * shorter / longer
        if round(edge) == shorter:
            return H, W
        short, long = max(1, round(edge)), max(1, int(edge * longer / shorter))
        return (short, long) if H <= W else (long, short)

    def scaled(self, pixels: UInt8[Tensor, "B N H W"]) -> Float[Tensor, "B N H W"]:
        return pixels.float() * self.factor

    def normalised(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B N H W"]:
        """Normalises scaled pixels."""
        if self.mean:
            pixels = pixels - torch.tensor(self.mean, device=pixels.device)[:, None, None]
        return pixels / torch.tensor(self.std, device=pixels.device)[:, None, None] if self.std else pixels

    def __call__(
        self, pictures: Sequence[UInt8[Tensor, "N _ _"]], where: Sequence[str] = ()
    ) -> Float[Tensor, "B N h w"]:
        """Prepares a batch for evaluation and use; `where` are its files."""
        both = zip(pictures, where or [""] * len(pictures), strict=True)
        return self.normalised(self.scaled(torch.stack([self.fitted(pixels, where=file) for pixels, file in both])))


@dataclass(frozen=True)
class Survey:
    """Statistics of pictures after reading all of them: the sha256 of all pixels, a hash of each picture, and each
    channel's mean and standard deviation, with black 0 and white 1; a deviation is 1 where nothing varies."""

    fingerprint: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    each: tuple[str, ...] = ()


def survey(images: Images) -> Survey:
    """Reads every picture. Raises InputError for one that cannot be read."""
    digest, counts, each = sha256(), torch.zeros(1, 256, dtype=torch.int64), list[str]()
    step = 512 if isinstance(images, Tensor) else 1
    for first in range(0, len(images), step):
        pixels = images[first : first + step] if isinstance(images, Tensor) else images[first][None]
        digest.update(repr(tuple(pixels.shape[1:])).encode() + pixels.contiguous().numpy().tobytes())
        each += map(_told, pixels)
        own = [torch.bincount(channel.flatten(), minlength=256) for channel in pixels.unbind(1)]
        counts = counts + torch.stack(own)
    shares = counts.double() / counts.sum(1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = shares @ values
    std = (shares @ values.square() - mean.square()).clamp(min=0).sqrt()
    deviation = tuple(s if s > 1e-6 else 1.0 for s in std.tolist())
    return Survey(digest.hexdigest(), tuple(mean.tolist()), deviation, tuple(each))


def each_of(images: Images) -> Iterator[str]:
    """Yields the hash of each picture, as in `survey`. Raises InputError for one that cannot be read."""
    return (_told(images[i]) for i in range(len(images)))


def _told(pixels: UInt8[Tensor, "N H W"]) -> str:
    return sha256(repr(tuple(pixels.shape)).encode() + pixels.contiguous().numpy().tobytes()).hexdigest()
