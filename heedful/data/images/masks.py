"""Pictures with segmentation masks, which give the class of every pixel.

B pictures of N channels and H x W pixels.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from heedful.data.images.files import ImageFile, ImageFiles, Images, common_shape, image_header, is_image, read_numbers
from heedful.data.lines import read_bytes, read_lines
from heedful.data.made import shapes
from heedful.data.parts import PictureParts, entries, held_out, sorted_pictures, tests_in
from heedful.errors import InputError, MissingError

IGNORE = 255  # in a mask: the class is unknown
IMAGES, MASKS = ("images", "image", "img", "imgs", "JPEGImages"), ("masks", "mask", "labels", "SegmentationClass")
EXAMPLE = "give a folder with images/ and masks/, whose files have the same names, or with train/ and valid/ like that"


class MaskFiles:
    """Masks in files, as class indices: where a mask has the number `values[i]`, the class is i."""

    def __init__(self, files: Sequence[ImageFile], classes: "Classes") -> None:
        self.files, self.classes = list(files), classes

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int, /) -> UInt8[Tensor, "1 H W"]:
        """Raises InputError for a number that is not a class."""
        return self.classes.of(self.files[index])


@dataclass(frozen=True)
class Classes:
    """The meaning of the numbers in masks; 255, unless it is one of them, means unknown."""

    labels: tuple[str, ...]
    values: tuple[int, ...]
    things: bool = False  # masks number objects from 1, all of class 1; 0 is background

    def __post_init__(self) -> None:
        if len({*self.values} & {*range(256)}) != len(self.labels) or len(self.values) != len(self.labels):
            raise InputError("expected as many labels as different numbers from 0 to 255")

    def of(self, file: ImageFile) -> UInt8[Tensor, "1 H W"]:
        numbers = read_numbers(file).long()
        if self.things:
            return (numbers > 0).to(torch.uint8)[None]
        table = torch.full((65536,), -1, dtype=torch.int16)
        table[IGNORE] = IGNORE
        table[list(self.values)] = torch.arange(len(self.values), dtype=torch.int16)
        found = table[numbers]
        if (found < 0).any():
            number = int(numbers[found < 0][0])
            what = f"a mask with the number {number}, which is none of {', '.join(map(str, self.values))}"
            raise InputError(what[:200], where=str(file), fix="name all numbers in labels.txt, or train on such a mask")
        return found[None].to(torch.uint8)


@dataclass(frozen=True)
class MaskedPart:
    """Pictures, the mask of each, and their names."""

    images: Images
    masks: Images
    names: list[str]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class MaskedImages(PictureParts[MaskedPart]):
    """The data that a segmenter is trained and measured on, and the classes of its masks."""

    classes: Classes = field(kw_only=True)


def read_masked_images(path: str | Path, *, channels: int | None = None) -> MaskedImages:
    """Reads pictures with masks for training; at first only the pictures' headers, the pixels when they are needed.

    - a folder with images/ and masks/: a mask has the name of its picture, and is a .png (or .bmp, .gif, .tif) of
      palette numbers or grey values; or a folder with folders train*, valid* (val, dev) and test* like that.
    - "shapes" or "shapes:N": generated scenes (`heedful.data.made.shapes`).

    The classes are the numbers in the training masks, in order; 255 is not a class, unless 0 and 255 are all numbers.
    labels.txt, a name on each line from number 0, or labels.json, a list or {"0": "name", ...}, names them: two names
    are those of 0 and 255 if these are all. Masks of 16 bits number objects: these are one class, and 0 is background.
    Without validation data, a tenth of the pictures is held out, by a hash of the names. Raises InputError or
    MissingError.
    """
    count = shapes.asked(str(path))
    if count is not None:
        made = [_drawn(scenes) for scenes in shapes.parts(count).values()]
        size = (shapes.SIZE, shapes.SIZE)
        return MaskedImages(made[0], made[1], {"test": made[2]}, str(path), channels=3, size=size, classes=SHAPES)
    path = Path(path)
    train, valid, tests = sorted_pictures(_parts(path).items())
    if not train:
        raise MissingError("no picture to learn from", where=str(path), fix=EXAMPLE)
    train, valid, notes = held_out(train, valid, lambda row: row.image.path.name, noun="picture", where=path)
    classes, unknown = _classes(path, train)
    if classes.things:
        notes = (*notes, f"{path}: masks of 16 bits number things; all of them are {classes.labels[1]!r}")
    elif unknown and IGNORE not in classes.values:
        what = f"{unknown:.2%} of the pixels are {IGNORE}, which says that it is not known: neither learnt nor scored"
        notes = (*notes, f"{path}: {what}")
    channels, size = common_shape([row.header for row in train], channels)
    own, other = (_part(rows, classes, channels) for rows in (train, valid))
    found = {name: _part(rows, classes, channels) for name, rows in tests.items()}
    return MaskedImages(own, other, found, str(path), (), notes, channels=channels, size=size, classes=classes)


def read_test_masks(path: str | Path, classes: Classes, *, channels: int) -> dict[str, MaskedPart]:
    """Reads the test sets of data for `read_masked_images` by name, or all of them if no part is named test."""
    if shapes.asked(str(path)) is not None:
        return {"test": _drawn(shapes.scenes("test", shapes.TEST))}
    return {name: _part(own, classes, channels) for name, own in tests_in(_parts(Path(path))).items()}


def doubt(part: MaskedPart, classes: Classes) -> tuple[str, ...]:
    """Returns a warning if the masks have only one number besides 255, and 255 is not a class."""
    found = {number for index in range(len(part)) for number in part.masks[index].unique().tolist()}
    if IGNORE not in found or len(found) != 2:
        return ()
    own = min(found)
    others = ", ".join(str(value) for value in classes.values if value != classes.values[own])
    return (
        f"masks of {classes.values[own]} and {IGNORE} alone, and {IGNORE} says that it is not known: nothing but "
        f"{classes.labels[own]!r} is scored; where {IGNORE} is a class, write its number ({others}) in its place",
    )


SHAPES = Classes(("ground", *shapes.KINDS), tuple(range(1 + len(shapes.KINDS))))


def _drawn(scenes: Sequence[shapes.Scene]) -> MaskedPart:
    pixels = torch.stack([torch.from_numpy(scene.pixels).permute(2, 0, 1) for scene in scenes])
    masks = torch.stack([torch.from_numpy(scene.mask)[None] for scene in scenes])
    return MaskedPart(pixels, masks, [scene.caption for scene in scenes])


# Files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    image: ImageFile
    mask: ImageFile
    header: tuple[int, int, int]  # channels, rows, columns


def _part(rows: Sequence[_Row], classes: Classes, channels: int) -> MaskedPart:
    images = ImageFiles([row.image for row in rows], channels=channels)
    return MaskedPart(images, MaskFiles([row.mask for row in rows], classes), [str(row.image) for row in rows])


def _parts(path: Path) -> dict[str, list[_Row]]:
    if not path.is_dir():
        read_bytes(path)  # raises an error if it does not exist
        raise InputError("a file, expected a folder", where=str(path), fix=EXAMPLE)
    folders = {entry.name: entry for entry in entries(path) if entry.is_dir()}
    if any(name in folders for name in IMAGES):
        return {"train": _rows(path, folders)}
    inside = {name: {one.name: one for one in entries(entry) if one.is_dir()} for name, entry in folders.items()}
    parts = {name: below for name, below in inside.items() if any(key in below for key in IMAGES)}
    if not parts:
        raise MissingError("no folder images/", where=str(path), fix=EXAMPLE)
    return {name: _rows(folders[name], below) for name, below in parts.items()}


def _rows(path: Path, folders: Mapping[str, Path]) -> list[_Row]:
    pictures = next(folders[name] for name in IMAGES if name in folders)
    masks = next((folders[name] for name in MASKS if name in folders), None)
    if masks is None:
        raise MissingError(f"no folder masks/ beside {pictures.name}/", where=str(path), fix=EXAMPLE)
    by_stem = {file.stem: file for file in entries(masks) if is_image(file.name)}
    rows = []
    for file in entries(pictures):
        if is_image(file.name):
            if file.stem not in by_stem:
                raise MissingError(f"no mask for {file}", where=str(masks), fix=f"add {file.stem}.png")
            row = _Row(ImageFile(file), ImageFile(by_stem.pop(file.stem)), image_header(ImageFile(file)))
            size = image_header(row.mask)[1:]
            if size != row.header[1:]:
                what = f"a mask of {size[1]} x {size[0]} pixels, but {file} has {row.header[2]} x {row.header[1]}"
                raise InputError(what, where=str(row.mask), fix="make them the same size")
            rows.append(row)
    if not rows:
        raise MissingError("no picture in this folder", where=str(pictures), fix=EXAMPLE)
    if by_stem:
        raise MissingError(f"no picture for {next(iter(by_stem.values()))}", where=str(pictures), fix="add it")
    return rows


def _classes(path: Path, rows: Sequence[_Row]) -> tuple[Classes, float]:
    """Reads all training masks; returns their classes, and the share of pixels that are 255."""
    found, deep, unknown, pixels = set[int](), False, 0, 0
    for row in rows:
        numbers = read_numbers(row.mask)
        found, deep = found | set(numbers.unique().tolist()), deep or numbers.dtype != torch.uint8
        unknown, pixels = unknown + int((numbers == IGNORE).sum()), pixels + numbers.numel()
    return _named(path, found, deep), unknown / pixels


def _named(path: Path, found: set[int], deep: bool) -> Classes:
    """Returns the classes of these numbers, with the names beside the masks if there are any."""
    names = _names(path)
    if deep:
        labels = tuple(names.values()) if len(names) == 2 else ("ground", "thing")
        return Classes(labels, (0, 1), things=True)
    if found == {0, IGNORE} and len(names) in (0, 2):
        return Classes(tuple(names.values()) or ("0", "255"), (0, IGNORE))
    found -= {IGNORE}
    if names:
        strange = found - names.keys()
        if strange:
            what = f"masks have the number {min(strange)}, which has no name"
            raise InputError(what, where=str(path), fix=f"name it in labels.txt: line {min(strange) + 1} is its own")
        return Classes(tuple(names.values()), tuple(names))
    if len(found) < 2:
        raise InputError(f"all masks are {min(found, default=IGNORE)}: nothing to tell apart", where=str(path))
    return Classes(tuple(map(str, sorted(found))), tuple(sorted(found)))


def _names(path: Path) -> dict[int, str]:
    """Returns the names in labels.txt or labels.json, by number."""
    text, data = path / "labels.txt", path / "labels.json"
    if text.is_file():
        names: dict[int, str] = {i: line.strip() for i, line in enumerate(read_lines(text)) if line.strip()}
    elif data.is_file():
        try:
            read = json.loads(read_bytes(data))
            names = {int(i): str(name) for i, name in (read.items() if isinstance(read, dict) else enumerate(read))}
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise InputError('expected a list, or {"0": "name", ...}', where=str(data)) from None
    else:
        return {}
    beyond = bool(names) and max(names) >= IGNORE and names.keys() != {0, IGNORE}
    if len(names) < 2 or min(names) < 0 or beyond or len(set(names.values())) < len(names):
        where = str(text if text.is_file() else data)
        raise InputError("expected two or more different names, of numbers from 0 to 254", where=where)
    return dict(sorted(names.items()))
