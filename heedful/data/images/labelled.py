"""Pictures with one label each: folders named by labels, tables of files, and idx files such as MNIST's."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch import Tensor

from heedful.data.images.files import ImageFile, ImageFiles, Images, common_shape, image_header, is_image, members
from heedful.data.images.tables import Finder, PictureColumns, picture_rows
from heedful.data.lines import first_few, read_bytes, read_lines
from heedful.data.parts import (
    PictureParts,
    are_parts,
    entries,
    held_out,
    is_part,
    kind_of,
    part_within,
    sorted_pictures,
    tests_in,
)
from heedful.data.tables import IMAGE_COLUMNS
from heedful.errors import InputError, MissingError, are, counted

TABLES = (".csv", ".tsv", ".jsonl")
HIDDEN = (".", "__")  # the beginnings of the names of a system's own files
IDX_SHARE = 6  # the last sixth of idx files is held out: 10,000 of 60,000
EXAMPLE = "give a folder with a folder of pictures for each label, a .csv with columns image,label, or idx files"


@dataclass(frozen=True)
class Part:
    """Pictures, and the label of each."""

    images: Images
    labels: list[str]

    def __len__(self) -> int:
        return len(self.labels)


LabelledImages = PictureParts[Part]  # for a classifier of pictures


def read_labelled_images(path: str | Path, *, channels: int | None = None, labelled: bool = True) -> LabelledImages:
    """Reads pictures with labels for training; of pictures in files only the headers, the pixels when they are needed.

    - a folder with a folder of pictures for each label; or with folders train*, valid* (val, dev) and test* like that;
      a zip file may replace a folder.
    - a .csv or .tsv file whose first line names the columns "image" (or "file", "path") and "label", and perhaps
      "split" (train, valid or test), with any separator; a .jsonl file of objects with the same keys; or a folder with
      several, named likewise. Files are found relative to the table, or in a folder or a zip file beside it.
    - an idx file of pictures (or a folder with one) with its labels beside it, whose name has "labels" in place of
      "images"; "t10k", or "test", is the test.

    `channels`: 1, 3, or None for 1 if all pictures are grey. Without validation data, a tenth of each label is held
    out, by a hash of the names; of idx files the last sixth. If `labelled` is false, no folder, column or file of
    labels is needed, and each label is "". Raises InputError or MissingError.
    """
    path = Path(path)
    idx = _idx_images(path)
    return _from_idx(path, idx, labelled) if idx is not None else _from_files(path, channels, labelled)


def read_test_images(path: str | Path, *, channels: int, labelled: bool = True) -> dict[str, Part]:
    """Reads the test sets of data for `read_labelled_images` by name, or all of them if no part is named test."""
    path = Path(path)
    idx = _idx_images(path)
    if idx is not None:
        test = _test_beside(idx) if path.is_dir() else None
        return {idx.name: _read_idx(idx, labelled)} if test is None else {"test": _read_idx(test, labelled)}
    rows = {name: part for name, part in _rows(path, labelled, []).items() if part}
    if not rows:
        raise MissingError("no picture to score", where=str(path), fix=EXAMPLE)
    return {name: _part(part, channels) for name, part in tests_in(rows).items()}


# Pictures in files -----------------------------------------------------------------------------------------------

Row = tuple[ImageFile, str]  # a picture, and its label


def _from_files(path: Path, channels: int | None, labelled: bool) -> LabelledImages:
    beside: list[Path] = []
    train, valid, tests = sorted_pictures(_rows(path, labelled, beside).items())
    if not train:
        raise MissingError("no picture to learn from", where=str(path), fix=EXAMPLE)
    train, valid, notes = held_out(
        train, valid, lambda row: _name(row[0], path), noun="picture", where=path, within=lambda row: row[1]
    )
    if beside:
        left = f"{counted(len(beside), 'file')} {are(len(beside))} not read"
        notes = (f"{path}: {left}: {first_few([str(file.relative_to(path)) for file in beside])}", *notes)
    channels, size = common_shape([image_header(file) for file, _ in train], channels)
    own, other = (_part(rows, channels) for rows in (train, valid))
    tested = {name: _part(rows, channels) for name, rows in tests.items()}
    return PictureParts(own, other, tested, str(path), (path,), notes, channels=channels, size=size)


def _part(rows: Sequence[Row], channels: int) -> Part:
    return Part(ImageFiles([file for file, _ in rows], channels=channels), [label for _, label in rows])


def _rows(path: Path, labelled: bool, beside: list[Path]) -> dict[str, list[Row]]:
    """Returns pictures and labels by the name of their part: from the table or the folder, or "train". Appends other
    files in the folders to `beside`."""
    if not path.is_dir():
        if kind_of(path) in TABLES:
            return _table(path, labelled, "train")
        if kind_of(path) == ".zip":
            return _by_folder(_inside(members(path), str(path)), labelled)
        read_bytes(path)  # raises an error if it does not exist
        raise InputError("not a kind of file that labelled pictures are read from", where=str(path), fix=EXAMPLE)
    inside = entries(path, hidden=HIDDEN)
    tables = [file for file in inside if file.is_file() and _is_table(file)]
    if tables:
        rows: dict[str, list[Row]] = {}
        for file in tables:
            for name, own in _table(file, labelled, file.name).items():
                rows.setdefault(name, []).extend(own)
        return rows
    named: list[tuple[tuple[str, ...], ImageFile]] = []
    for entry in inside:
        if entry.is_dir():
            named += [(file.relative_to(path).parts, ImageFile(file)) for file in _walk(entry, beside)]
        elif kind_of(entry) == ".zip":
            named += [((entry.stem, *words), file) for words, file in _inside(members(entry), str(entry))]
        elif not labelled and is_image(entry.name):
            named.append(((entry.name,), ImageFile(entry)))
        else:
            beside.append(entry)
    return _by_folder(named, labelled)


def _is_table(file: Path) -> bool:
    """A .jsonl file must be named like a part: others are sometimes beside pictures."""
    return kind_of(file) in TABLES and (kind_of(file) != ".jsonl" or is_part(file.name))


def _walk(folder: Path, beside: list[Path]) -> Iterator[Path]:
    """Yields the pictures in a folder and its subfolders, by name, and appends other files to `beside`. Links to
    folders are not followed, as they may be cyclic."""
    found = False
    for entry in entries(folder, hidden=HIDDEN):
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, beside)
            found = True
        elif is_image(entry.name):
            yield entry
            found = True
        else:
            beside.append(entry)
    if not found:
        raise InputError("no picture in this folder", where=str(folder), fix="add some, or take the folder away")


def _inside(files: Sequence[ImageFile], where: str) -> list[tuple[tuple[str, ...], ImageFile]]:
    if not files:
        raise InputError("no picture in it", where=where, fix=EXAMPLE)
    named = [(tuple(Path(file.member).parts), file) for file in files]
    whole = len({words[0] for words, _ in named}) == 1  # train.zip may have a single top folder train
    return [(words[1:] if whole and len(words) > 2 else words, file) for words, file in named]


def _by_folder(named: Sequence[tuple[tuple[str, ...], ImageFile]], labelled: bool) -> dict[str, list[Row]]:
    """Groups pictures: the first folder is the part if all are named like parts, and the next folder is the label.
    Raises InputError if some folders are named like parts, for training and for others, and one is not."""
    first = {words[0] for words, _ in named if len(words) > 1}
    split = are_parts(first)
    parts = set(map(part_within, first))
    rows: dict[str, list[Row]] = {}
    for words, file in named:
        if labelled and not split and "train" in parts and parts & {"valid", "test"} and part_within(words[0]) is None:
            what = f"the folder {words[0]!r} beside parts to train and to test on is none of them"
            raise InputError(what, where=str(file), fix="move it away, or call it train*, valid* or test*")
        folders = list(words[:-1])
        part = folders.pop(0) if split and folders else "train"
        if labelled and not folders:
            raise InputError("a picture that is in no label's folder", where=str(file), fix=EXAMPLE)
        rows.setdefault(part, []).append((file, folders[0] if labelled else ""))
    return rows


def _table(path: Path, labelled: bool, part: str) -> dict[str, list[Row]]:
    """Returns pictures and labels by the part in the column "split", or else as `part`."""
    find = Finder(path.parent)
    found: dict[str, list[Row]] = {}
    for where, row in picture_rows(path, read_lines(path), _columns(labelled)):
        image, label = next((row[name] for name in IMAGE_COLUMNS if name in row), None), row.get("label", "")
        if not isinstance(image, str):
            raise InputError("no image", where=where, fix='write {"image": "...", "label": "..."}')
        label = str(label).strip() if labelled and isinstance(label, str | int) else ""
        if labelled and not label:
            raise InputError("no label", where=where)
        found.setdefault(str(row.get("split") or part), []).append((find(image, where=where), label))
    if not found:
        raise InputError("no picture", where=str(path), fix="write image,label and then a picture on each line")
    return found


def _columns(labelled: bool) -> PictureColumns:
    def enough(names: Sequence[str]) -> bool:
        return any(name in names for name in IMAGE_COLUMNS) and (not labelled or "label" in names)

    expected = f"image (or file, path){' and label' if labelled else ''}"
    return PictureColumns(enough, expected, "image,label", '{"image": "...", "label": "..."}')


def _name(file: ImageFile, path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    outside = not file.path.is_relative_to(folder)
    return file.member or (file.path.name if outside else file.path.relative_to(folder).as_posix())


# idx files -------------------------------------------------------------------------------------------------------


def _idx_images(path: Path) -> Path | None:
    """Returns the idx file of pictures that `path` is, or that the folder holds, preferably the one for training."""
    if path.is_dir():
        there = (file for file in entries(path) if file.is_file())
        found = sorted(file for file in there if "idx3" in file.name and "images" in file.name)
        return min(found, key=lambda file: "train" not in file.name) if found else None
    return path if "idx3" in path.name else None


def _from_idx(path: Path, file: Path, labelled: bool) -> LabelledImages:
    whole = _read_idx(file, labelled)
    cut = len(whole) - len(whole) // IDX_SHARE
    if cut == len(whole):
        raise InputError(f"{len(whole)} pictures are too few to hold any out", where=str(file))
    assert isinstance(whole.images, Tensor)
    train, valid = (Part(whole.images[rows], whole.labels[rows]) for rows in (slice(cut), slice(cut, None)))
    files, tests = [file], {}
    test = _test_beside(file)
    if test is not None:
        tests["test"] = _read_idx(test, labelled)
        files.append(test)
    files += [_labels_of(each) for each in files if labelled]
    notes = (f"{file}: the last {counted(len(valid), 'picture')} held out for validation",)
    _, N, H, W = whole.images.shape
    return PictureParts(train, valid, tests, str(path), tuple(files), notes, channels=N, size=(H, W))


def _read_idx(file: Path, labelled: bool) -> Part:
    images = _idx(file, axes=3)
    if not labelled:
        return Part(images[:, None], [""] * len(images))
    labels = _idx(_labels_of(file), axes=1)
    if len(images) != len(labels):
        raise InputError(f"{len(images):,} pictures, and {len(labels):,} labels beside them", where=str(file))
    return Part(images[:, None], [str(label) for label in labels.tolist()])


def _labels_of(file: Path) -> Path:
    name = file.name.replace("images", "labels").replace("idx3", "idx1")
    found = _packed_or_not(file.with_name(name))
    if found is None:
        raise MissingError("no labels beside these pictures", where=str(file), fix=f"put {name} into the same folder")
    return found


def _test_beside(file: Path) -> Path | None:
    """Finds the test file, named as in MNIST or EMNIST."""
    names = [file.name.replace("train", word) for word in ("t10k", "test")] if "train" in file.name else []
    return next(filter(None, (_packed_or_not(file.with_name(name)) for name in names)), None)


def _packed_or_not(file: Path) -> Path | None:
    """Returns the file if it exists, gzipped or not."""
    name = file.name.removesuffix(".gz")
    return next((found for found in (file.with_name(name), file.with_name(f"{name}.gz")) if found.is_file()), None)


def _idx(path: Path, *, axes: int) -> Tensor:
    """Reads the bytes of a file as http://yann.lecun.com/exdb/mnist describes: two zeros, 8 for bytes, the number of
    axes, the size of each as 4 bytes, big-endian; then all elements."""
    data = read_bytes(path)
    head = 4 + 4 * axes
    if len(data) < head or data[:4] != bytes((0, 0, 8, axes)):
        raise InputError(f"not an idx file of bytes with {axes} axes", where=str(path), fix=EXAMPLE)
    sizes = [int.from_bytes(data[i : i + 4], "big") for i in range(4, head, 4)]
    if math.prod(sizes) != len(data) - head or not math.prod(sizes):
        what = f"{' x '.join(map(str, sizes))} elements announced, {len(data) - head:,} bytes there"
        raise InputError(what, where=str(path), fix="copy it again")
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=head).copy()).view(sizes)


def label_names(parts: Mapping[str, Part] | Sequence[Part]) -> tuple[str, ...]:
    """Returns the different labels, `in_order`."""
    each = parts.values() if isinstance(parts, Mapping) else parts
    return in_order(label for part in each for label in part.labels)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns the different labels, sorted: by value if all are numbers, else alphabetically."""
    different = {*labels}
    numbers = all(label.isdecimal() for label in different)
    return tuple(sorted(different, key=int if numbers else None))
