"""Pictures with captions, or with other texts, such as answers to questions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.images.files import (
    ImageFile,
    ImageFiles,
    Images,
    common_shape,
    each_of,
    image_header,
    is_image,
    members,
)
from heedful.data.images.tables import Finder, PictureColumns, picture_rows, plain
from heedful.data.lines import read_lines
from heedful.data.made import lines, questions, shapes
from heedful.data.parts import PictureParts, entries, held_out, kind_of, sorted_pictures, tests_in
from heedful.data.tables import FILE_COLUMNS, IMAGE_COLUMNS, LOOKED_AT, table_cells
from heedful.errors import InputError, MissingError

TABLES = (".tsv", ".csv", ".jsonl")
TEXT = ".txt"  # also a table, such as Flickr8k's; in a folder, only if there is no other
TEXT_COLUMNS = ("text", "caption", "title", "comment", "sentence", "description", "name", "answer")
QUESTION = "question"  # the column of what is asked
EXAMPLE = "give a .csv whose first line is image,text, or a folder with train.csv, valid.csv and test.csv"


_Texts = list[tuple[str, str]]  # each with its question, or ""
_Own = tuple[ImageFile, _Texts]
_Grouped = dict[ImageFile, _Texts]


@dataclass(frozen=True)
class Captioned:
    """Pictures, and the captions of each. `questions`: what each caption answers, or "" for nothing; empty where no
    picture has a question."""

    images: Images
    captions: list[list[str]]
    questions: list[list[str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.captions)


CaptionedImages = PictureParts[Captioned]


def read_captioned(path: str | Path, *, channels: int | None = None) -> CaptionedImages:
    """Reads tables of pictures and texts, a text a line; at first only the pictures' headers, the pixels when they are
    needed.

    A .csv, .tsv or .txt file whose first line names the columns "image" (or "file", "path", "filename" ...) and "text"
    (or "caption", "title", "comment" ...), and perhaps "question" and "split" (train, valid or test), with any
    separator; a .jsonl file of objects with the same keys; or a folder of such files, named train*, valid* (val, dev)
    and test*. A picture with several lines has several texts. Pictures are found as in `read_labelled_images`: relative
    to the table, or in a folder or a zip file beside it. Generated pictures, N of them: "shapes" or "shapes:N" of
    coloured shapes, "questions:N" of such with a question and its answer, and for training also with all that is there,
    "lines:N" of printed text.

    `channels`: 1, 3, or None for 1 if all pictures are grey. Without validation data, a tenth of the pictures is held
    out, by a hash of their names. Raises InputError or MissingError.
    """
    if (generated := _generated(str(path))) is not None:
        draw, count = generated
        train, valid, test = draw("train", count), draw("valid", shapes.VALID), draw("test", shapes.TEST)
        depth, height, width = train.images[0].shape
        return PictureParts(train, valid, {"test": test}, str(path), channels=depth, size=(height, width))
    path = Path(path)
    files, rows = _rows(path)
    learnt, checked, tests = sorted_pictures((name, [*part.items()]) for name, part in rows.items())
    if not learnt:
        raise MissingError("no picture to learn from", where=str(path), fix=EXAMPLE)
    learnt, checked, notes = held_out(_merged(learnt), _merged(checked), _name, noun="picture", where=path)
    notes = (*_told(files), *notes)
    channels, size = common_shape([image_header(file) for file, _ in learnt], channels)
    own, other = (_captioned(part, channels) for part in (learnt, checked))
    tested = {name: _captioned(part, channels) for name, part in tests.items()}
    return PictureParts(own, other, tested, str(path), files, notes, channels=channels, size=size)


def read_test_captions(path: str | Path, *, channels: int) -> dict[str, Captioned]:
    """Reads the test sets of data for `read_captioned` by name, or all of them if no part is named test."""
    if (generated := _generated(str(path))) is not None:
        return {"test": generated[0]("test", shapes.TEST)}
    _, rows = _rows(Path(path))
    return {name: _captioned([*part.items()], channels) for name, part in tests_in(rows).items()}


def pictures_in(path: str | Path) -> list[ImageFile]:
    """Returns the pictures in a folder and its subfolders, or in a zip file, by name; or a single picture. Raises
    MissingError or InputError."""
    path = Path(path)
    if path.is_file() and is_image(path.name):
        return [ImageFile(path)]
    if path.is_dir():
        found = [ImageFile(file) for file in sorted(path.rglob("*")) if is_image(file.name)]
    else:
        found = members(path)
    if not found:
        raise InputError("no picture in it", where=str(path), fix="give a folder with pictures")
    return found


def same_pictures(images: Images) -> list[int]:
    """Returns for each picture the index of the first picture with the same pixels."""
    first: dict[str, int] = {}
    return [first.setdefault(told, i) for i, told in enumerate(each_of(images))]


def _scenes(part: str, count: int) -> Captioned:
    scenes = shapes.scenes(part, count)
    return Captioned(_pixels(scene.pixels for scene in scenes), [[scene.caption] for scene in scenes])


def _questions(part: str, count: int) -> Captioned:
    pixels, asked = [], []
    for number in range(count):  # a scene at a time: their masks are not kept
        scene = shapes.scene(part, number)
        pixels.append(scene.pixels)
        asked.append([questions.question(scene, part, number)])
        if part == "train":
            asked[-1] += [questions.everything(scene), questions.what_is_at(scene, part, number)]
    texts, answers = ([[pair[side] for pair in pairs] for pairs in asked] for side in (0, 1))
    return Captioned(_pixels(pixels), answers, texts)


def _lines(part: str, count: int) -> Captioned:
    drawn = [lines.line(part, number) for number in range(count)]
    return Captioned(_pixels(each.pixels[..., None] for each in drawn), [[each.text] for each in drawn])


def _pixels(pictures: Iterable[NDArray[numpy.uint8]]) -> UInt8[Tensor, "I N H W"]:
    return torch.from_numpy(numpy.stack([*pictures])).permute(0, 3, 1, 2)


MADE = {"shapes": _scenes, "questions": _questions, "lines": _lines}  # of a part, so many pictures


def _generated(path: str) -> tuple[Callable[[str, int], Captioned], int] | None:
    """What draws the generated pictures of this name, and how many of them; None for another name."""
    counts = {name: shapes.asked(path, name) for name in MADE}
    return next(((MADE[name], count) for name, count in counts.items() if count is not None), None)


def _name(own: _Own) -> str:
    return own[0].member or own[0].path.name


def _merged(rows: Iterable[_Own]) -> list[_Own]:
    """Returns each picture once, with all its texts."""
    found = _Grouped()
    for file, texts in rows:
        found.setdefault(file, []).extend(texts)
    return [*found.items()]


def _captioned(rows: Sequence[_Own], channels: int) -> Captioned:
    images = ImageFiles([file for file, _ in rows], channels=channels)
    asked, texts = ([[pair[side] for pair in texts] for _, texts in rows] for side in (0, 1))
    return Captioned(images, texts, asked if any(map(any, asked)) else [])


def _rows(path: Path) -> tuple[tuple[Path, ...], dict[str, _Grouped]]:
    """Returns the tables, and their rows by the name of the part: from the column "split", or else from the name of the
    file."""
    files: tuple[Path, ...] = (path,)
    if path.is_dir():
        there = [file for file in entries(path) if file.is_file()]
        files = tuple(file for file in there if kind_of(file) in TABLES)
        files = files or tuple(file for file in there if kind_of(file) == TEXT and COLUMNS.are_named(_first(file)))
    rows: dict[str, _Grouped] = {}
    for file in files:
        name = file.name.split(".")[0] if path.is_dir() else "train"
        for image, question, text, split in _table(file):
            rows.setdefault(split or name, {}).setdefault(image, []).append((question, text))
    if not rows:
        raise MissingError("no table of pictures and texts", where=str(path), fix=EXAMPLE)
    return files, rows


def _table(path: Path) -> Iterator[tuple[ImageFile, str, str, str]]:
    """Yields a picture, what is asked about it ("": nothing), one of its texts, and its part ("" if the table does not
    say it)."""
    find, lines = Finder(path.parent), read_lines(path)
    if kind_of(path) not in (*TABLES, TEXT):
        raise InputError("not a kind of file that pictures and texts are read from", where=str(path), fix=EXAMPLE)
    for where, row in picture_rows(path, lines, COLUMNS):
        image, text = (next((row[key] for key in keys if row.get(key)), "") for keys in (FILE_COLUMNS, TEXT_COLUMNS))
        if not isinstance(image, str) or not image.strip():
            raise InputError("no image", where=where, fix="write image,text on each line")
        if not isinstance(text, str) or not text.strip():
            raise InputError("no text for this picture", where=where, fix="write image,text on each line")
        question = row.get(QUESTION) or ""
        if not isinstance(question, str):
            raise InputError("a question that is no text", where=where, fix="write it in quotes, or leave it out")
        yield find(image, where=where), question.strip(), text, str(row.get("split") or "")


def _enough(names: Sequence[str]) -> bool:
    return bool({*FILE_COLUMNS} & {*names} and {*TEXT_COLUMNS} & {*names})


COLUMNS = PictureColumns(
    _enough, "image (or file, path) and text (or caption)", "image,text", '{"image": ..., "text": ...}'
)


def _told(files: Iterable[Path]) -> Iterator[str]:
    """Yields notes on tables whose columns have other names than image (or file, path) and text (or caption): which are
    read."""
    for file in files:
        if kind_of(file) != ".jsonl":
            header = plain(_first(file))
            image, text = (next(name for name in names if name in header) for names in (FILE_COLUMNS, TEXT_COLUMNS))
            if image not in IMAGE_COLUMNS or text not in TEXT_COLUMNS[:2]:
                yield f"{file}: pictures from the column {image!r}, texts from {text!r}"


def _first(path: Path) -> list[str]:
    rows = table_cells(path, read_lines(path)[:LOOKED_AT], COLUMNS.are_named)[1]
    return next((cells for _, cells in rows if cells), [])
