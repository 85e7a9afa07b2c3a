"""Pictures with bounding boxes: COCO's .json files and Pascal VOC's .xml files.

A box is its left, upper, right and lower edge in pixels.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os.path import isfile  # unlike Path's, False for a name that is too long
from pathlib import Path, PureWindowsPath
from typing import Any
from xml.etree.ElementTree import Element

import torch

from heedful.data.images.files import ImageFile, ImageFiles, Images, common_shape, image_header, is_image
from heedful.data.lines import first_few, read_bytes
from heedful.data.made import shapes
from heedful.data.parts import PictureParts, entries, held_out, is_part, sorted_pictures, tests_in
from heedful.data.xml import tree_of
from heedful.errors import InputError, MissingError

Box = tuple[float, float, float, float]

BESIDE = ("captions_", "image_info_", "panoptic_", "person_keypoints_", "stuff_")  # COCO's own, beside instances_*.json
EXAMPLE = "give a COCO .json file, a folder with train.json and valid.json, or one with Pascal VOC's .xml files"


@dataclass(frozen=True)
class Thing:
    label: str
    box: Box


Things = tuple[Thing, ...]


@dataclass(frozen=True)
class BoxedPart:
    """Pictures, the objects in each, and their names. `crowds` (may be empty) are, for each picture, boxes around many
    objects at once, or around difficult ones: they need not be found, and detections in them are not wrong."""

    images: Images
    things: list[Things]
    names: list[str]
    crowds: list[Things] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.things)


BoxedImages = PictureParts[BoxedPart]  # for a detector


def read_boxed_images(path: str | Path, *, channels: int | None = None) -> BoxedImages:
    """Reads pictures with boxes for training; at first only the pictures' headers, the pixels when they are needed.

    - COCO: a .json file with images, annotations and categories (Lin et al. 2014); or a folder with several of them,
      or with a folder annotations/ of them, named train*, valid* (val, dev) and test* (also "instances_val2017";
      then "captions_val2017" and the like are left out, which a note says).
    - Pascal VOC: a folder with an .xml file a picture, in it or in Annotations/; ImageSets/Main/train.txt (or
      trainval.txt), val.txt and test.txt may list the parts (Everingham et al. 2010). The picture of an .xml file has
      its name, or the name in it.
    - a folder with folders train*, valid* and test*, each of them one of these.
    - "shapes" or "shapes:N": generated scenes (`heedful.data.made.shapes`).

    Pictures are searched beside the annotations, in the folders there, and beside annotations/. A box is clipped to its
    picture, and a box without an area is left out, with a note. Crowds (COCO's iscrowd) and difficult objects (Pascal
    VOC) are not trained on. Without validation data, a tenth of the pictures is held out, by a hash of the names.
    `channels`: 1, 3, or None for 1 if all pictures are grey. Raises InputError or MissingError.
    """
    count = shapes.asked(str(path))
    if count is not None:
        made = {name: _drawn(scenes) for name, scenes in shapes.parts(count).items()}
        size = (shapes.SIZE, shapes.SIZE)
        return PictureParts(made["train"], made["valid"], {"test": made["test"]}, str(path), channels=3, size=size)
    path = Path(path)
    reader = _Reader()
    train, valid, tests = sorted_pictures(reader.parts(path).items())
    if not any(row.things for row in train):
        raise MissingError("no box to learn from", where=str(path), fix=EXAMPLE)
    train, valid, notes = held_out(train, valid, lambda row: row.file.path.name, noun="picture", where=path)
    channels, size = common_shape([row.header for row in train], channels)
    own, other = _part(train, channels), _part(valid, channels)
    found = {name: _part(rows, channels) for name, rows in tests.items()}
    files, notes = tuple(reader.files), (*reader.notes(path), *notes)
    return PictureParts(own, other, found, str(path), files, notes, channels=channels, size=size)


def read_test_boxes(path: str | Path, *, channels: int) -> tuple[dict[str, BoxedPart], tuple[str, ...]]:
    """Reads the test sets of data for `read_boxed_images` by name, or all of them if no part is named test; and
    notes."""
    if shapes.asked(str(path)) is not None:
        return {"test": _drawn(shapes.scenes("test", shapes.TEST))}, ()
    reader = _Reader()
    tests = tests_in(reader.parts(Path(path)))
    for name, own in tests.items():
        if not own:
            raise MissingError(f"no picture in the part {name}", where=str(path), fix=EXAMPLE)
    return {name: _part(own, channels) for name, own in tests.items()}, tuple(reader.notes(Path(path)))


def thing_labels(part: BoxedPart) -> tuple[str, ...]:
    """Returns the different labels, sorted."""
    return tuple(sorted({thing.label for things in part.things for thing in things}))


def _drawn(scenes: Sequence[shapes.Scene]) -> BoxedPart:
    pixels = torch.stack([torch.from_numpy(scene.pixels).permute(2, 0, 1) for scene in scenes])
    things = [tuple(Thing(one.kind, one.box) for one in scene.shapes) for scene in scenes]
    return BoxedPart(pixels, things, [scene.caption for scene in scenes])


# Files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    file: ImageFile
    header: tuple[int, int, int]  # channels, rows, columns
    things: Things
    crowds: Things = ()


def _part(rows: Sequence[_Row], channels: int) -> BoxedPart:
    files = [row.file for row in rows]
    things, crowds = [row.things for row in rows], [row.crowds for row in rows]
    return BoxedPart(ImageFiles(files, channels=channels), things, [*map(str, files)], crowds if any(crowds) else [])


class _Reader:
    """Reads annotations, and records what was corrected in them."""

    def __init__(self) -> None:
        self.files: list[Path] = []  # annotation files
        self.clipped: list[str] = []
        self.empty: list[str] = []
        self.crowds: list[str] = []
        self.difficult: list[str] = []
        self.renamed: list[str] = []
        self.beside: list[str] = []

    def notes(self, path: Path) -> list[str]:
        told = [
            (
                self.clipped,
                "box reaches beyond its picture and is clipped",
                "boxes reach beyond theirs and are clipped",
            ),
            (self.empty, "box without an inside is left out", "boxes without an inside are left out"),
            (
                self.crowds,
                "crowd (iscrowd) is neither learnt nor scored",
                "crowds (iscrowd) are neither learnt nor scored",
            ),
            (
                self.difficult,
                "difficult object is neither learnt nor scored",
                "difficult objects are neither learnt nor scored",
            ),
            (
                self.renamed,
                "file names another picture than the one that is called as it is, which is taken",
                "files name other pictures than those that are called as they are, which are taken",
            ),
            (self.beside, "file beside instances_*.json is not read", "files beside instances_*.json are not read"),
        ]
        return [
            f"{path}: {len(names):,} {one if len(names) == 1 else several}: {first_few([*dict.fromkeys(names)])}"
            for names, one, several in told
            if names
        ]

    def parts(self, path: Path) -> dict[str, list[_Row]]:
        """Returns the pictures by the name of their part."""
        if not path.is_dir():
            read_bytes(path)  # raises an error if it does not exist
            if path.suffix == ".json":
                return {path.stem: self.coco(path)}
            raise InputError("not a kind of file that boxes are read from", where=str(path), fix=EXAMPLE)
        inside = entries(path)
        named = [entry for entry in inside if entry.is_dir() and is_part(entry.name) and _annotated(entry)]
        if named:
            return {one.name: [row for rows in self.parts(one).values() for row in rows] for one in named}
        below = [entry for entry in inside if entry.is_dir() and entry.name.lower() == "annotations"]
        folder = below[0] if below else path
        files = entries(folder)
        tables = [file for file in files if file.suffix == ".json"]
        if tables:
            published = any(file.name.startswith("instances_") for file in tables)
            beside = [file.name for file in tables if published and file.name.startswith(BESIDE)]
            self.beside += beside
            return {file.stem: self.coco(file) for file in tables if file.name not in beside}
        notes = {file.stem: file for file in files if file.suffix == ".xml"}
        if not notes:
            raise MissingError("no .json file and no .xml file with boxes", where=str(path), fix=EXAMPLE)
        lists = {name: path / "ImageSets" / "Main" / f"{name}.txt" for name in ("train", "val", "test")}
        if not lists["train"].is_file():
            lists["train"] = lists["train"].with_stem("trainval")
        if not lists["train"].is_file():
            return {"train": self.voc(notes.values())}
        chosen = {name: self._listed(file, notes) for name, file in lists.items() if file.is_file()}
        held = {*chosen.get("val", ())}  # trainval.txt lists these too
        chosen["train"] = [file for file in chosen["train"] if file not in held]
        return {name: self.voc(files) for name, files in chosen.items()}

    def _listed(self, file: Path, notes: Mapping[str, Path]) -> list[Path]:
        self.files.append(file)
        found = []
        for number, line in enumerate(read_bytes(file).decode("utf-8", errors="replace").splitlines(), 1):
            if line.strip():
                name = line.split()[0]
                if name not in notes:
                    raise MissingError(f"there is no {name}.xml", where=f"{file}:{number}", fix="add it")
                found.append(notes[name])
        return found

    def voc(self, files: Iterable[Path]) -> list[_Row]:
        files = [*files]
        if not files:
            return []
        find = _Finder(files[0].parent, "")
        rows = []
        for file in files:
            self.files.append(file)
            root = _annotation(file)
            name = root.findtext("filename") or f"{file.stem}.jpg"
            picture = find(name, stem=file.stem, where=str(file))
            if picture.path.stem == file.stem != PureWindowsPath(name).stem:
                self.renamed.append(str(file))
            header = _header(picture, [root.findtext(f"size/{key}") for key in ("width", "height")], where=str(file))
            things, hard = list[Thing](), list[Thing]()
            for number, one in enumerate(root.iter("object"), 1):
                where = f"{file}: object {number}"
                label = (one.findtext("name") or "").strip()
                edges = _numbers([one.findtext(f"bndbox/{key}") for key in ("xmin", "ymin", "xmax", "ymax")], where)
                if not label:
                    raise InputError("no name", where=where)
                left, upper, right, lower = edges
                # Pixels are counted from 1, and the last one belongs to the box; many programs count from 0.
                box = (max(0.0, left - 1), max(0.0, upper - 1), right, lower)
                empty = right <= left or lower <= upper
                thing = self._thing(label, (0.0, 0.0, 0.0, 0.0) if empty else box, header, where=str(file))
                if (one.findtext("difficult") or "").strip() == "1":
                    self.difficult.append(str(file))
                    hard += thing
                else:
                    things += thing
            rows.append(_Row(picture, header, tuple(things), tuple(hard)))
        return rows

    def coco(self, file: Path) -> list[_Row]:
        self.files.append(file)
        data = _json(file)
        categories = {each["id"]: each["name"] for each in _objects(data, "categories", ("id", "name"), file)}
        images = {each["id"]: each for each in _objects(data, "images", ("id", "file_name"), file)}
        if len(images) < len(data["images"]):
            raise InputError("two images have one id", where=str(file))
        own: dict[Any, list[tuple[str, Box]]] = {key: [] for key in images}
        crowds: dict[Any, list[tuple[str, Box]]] = {key: [] for key in images}
        for each in _objects(data, "annotations", ("image_id", "category_id", "bbox"), file):
            where = f"{file}: annotation {each.get('id', '?')}"
            if each["image_id"] not in images or each["category_id"] not in categories:
                key = "image_id" if each["image_id"] not in images else "category_id"
                raise InputError(f"{key} {each[key]!r} is none of those in this file", where=where)
            if not isinstance(each["bbox"], list) or len(each["bbox"]) != 4:
                raise InputError(f"bbox {each['bbox']!r:.80}", where=where, fix="write [left, upper, width, height]")
            left, upper, width, height = _numbers(each["bbox"], where)
            empty = width <= 0 or height <= 0
            box = (0.0, 0.0, 0.0, 0.0) if empty else (left, upper, left + width, upper + height)
            if each.get("iscrowd"):
                self.crowds.append(str(images[each["image_id"]]["file_name"]))
            boxes = crowds if each.get("iscrowd") else own
            boxes[each["image_id"]].append((str(categories[each["category_id"]]), box))
        find = _Finder(file.parent, file.stem)
        rows = []
        for key, image in images.items():
            where = f"{file}: image {key}"
            picture = find(str(image["file_name"]), where=where)
            header = _header(picture, [image.get("width"), image.get("height")], where=where)
            things, many = (
                tuple(chain.from_iterable(self._thing(*one, header, where=str(picture)) for one in boxes[key]))
                for boxes in (own, crowds)
            )
            rows.append(_Row(picture, header, things, many))
        return rows

    def _thing(self, label: str, box: Box, header: tuple[int, int, int], *, where: str) -> list[Thing]:
        """Returns an object with its box clipped to the picture; an empty list if no part of it is inside."""
        _, H, W = header
        left, upper, right, lower = box
        inside = (max(0.0, left), max(0.0, upper), min(float(W), right), min(float(H), lower))
        if inside[2] <= inside[0] or inside[3] <= inside[1]:
            self.empty.append(where)
            return []
        if max(abs(a - b) for a, b in zip(inside, box, strict=True)) > 1:  # one pixel may be due to counting
            self.clipped.append(where)
        return [Thing(label, inside)]


class _Finder:
    """Finds the pictures that annotations name: by the path from the folder of the annotations or from the one above
    annotations/, or in a folder there; folders whose names occur in `stem` come first, such as train2017 for
    instances_train2017."""

    def __init__(self, folder: Path, stem: str) -> None:
        root = folder.parent if folder.name.lower() == "annotations" else folder
        below = [entry for entry in entries(root) if entry.is_dir()]
        below += [entry for one in below if one.name == "images" for entry in entries(one) if entry.is_dir()]
        self.folders = [root, *sorted(below, key=lambda entry: entry.name not in stem)]
        self.root = root
        self.stems: dict[str, Path] | None = None

    def __call__(self, name: str, *, where: str, stem: str = "") -> ImageFile:
        """Returns the file of a picture. Raises MissingError."""
        # The name in an .xml file is often one of another machine, or of before the file was copied or renamed.
        own = self._called(stem) if stem and PureWindowsPath(name).stem != stem else None
        if own is None and not Path(name).is_absolute():
            named = (folder / name for folder in self.folders)
            own = next((file for file in named if isfile(file)), None)
        own = own or (self._called(stem) if stem else None)
        if own is not None:
            return ImageFile(own)
        raise MissingError(f"there is no picture {name!r}", where=where, fix=f"put it into {self.root}")

    def _called(self, stem: str) -> Path | None:
        """Returns the first picture with this name, whatever its suffix."""
        if self.stems is None:
            every = [file for folder in self.folders for file in entries(folder) if is_image(file.name)]
            self.stems = {file.stem: file for file in reversed(every)}
        return self.stems.get(stem)


def _header(picture: ImageFile, told: Sequence[object], *, where: str) -> tuple[int, int, int]:
    """Returns the header of a picture. Raises InputError if the annotation says another size."""
    header = image_header(picture)
    width, height = (int(str(each)) if str(each).isdecimal() else 0 for each in told)
    if width and height and (height, width) != header[1:]:
        what = f"says {width} x {height} pixels, but {picture} has {header[2]} x {header[1]}"
        raise InputError(what, where=where, fix="the boxes belong to another picture, or to one that was turned")
    return header


def _numbers(values: Sequence[object], where: str) -> tuple[float, ...]:
    try:
        found = tuple(float(value) for value in values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise InputError(f"a box of {', '.join(map(str, values)):.80}", where=where, fix="four numbers are expected")
    return found


def _annotation(file: Path) -> Element:
    root = tree_of(file)
    if root.tag != "annotation":
        raise InputError(f"<{root.tag:.40}>, expected Pascal VOC's <annotation>", where=str(file), fix=EXAMPLE)
    return root


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_bytes(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {' '.join(str(error).split()):.100}", where=str(file)) from None
    if not isinstance(data, dict):
        raise InputError("not an object", where=str(file), fix=EXAMPLE)
    return data


def _objects(data: Mapping[str, Any], key: str, needed: Sequence[str], file: Path) -> Iterator[dict[str, Any]]:
    listed = data.get(key)
    if not isinstance(listed, list):
        raise InputError(f'no "{key}", a list', where=str(file), fix="COCO has images, annotations and categories")
    for number, each in enumerate(listed):
        where = f"{file}: {key}[{number}]"
        if not isinstance(each, dict):
            raise InputError("not an object", where=where)
        for name in needed:
            if name not in each:
                raise InputError(f'no "{name}"', where=where)
            if name.endswith("id") and not isinstance(each[name], int | str):
                raise InputError(f'"{name}" is {each[name]!r:.40}', where=where)
        yield each


def _annotated(folder: Path) -> bool:
    """Whether there are boxes in this folder, or in its annotations/."""
    found = [folder, *(entry for entry in entries(folder) if entry.is_dir() and entry.name.lower() == "annotations")]
    return any(file.suffix in (".json", ".xml") for one in found for file in entries(one))
