"""Boxes in each of their layouts, what is put right in them, and what is wrong with them in one line."""

import json
import re

import pytest
from PIL import Image

from heedful.data.images.boxes import Thing, read_boxed_images, read_test_boxes, thing_labels
from heedful.errors import InputError, MissingError

W, H = 20, 10


def picture(path, mode="RGB", size=(W, H)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(path)


def coco(path, boxes, *, names=None, **changes):
    """One picture a box, by itself."""
    names = names or [f"{i}.png" for i in range(len(boxes))]
    data = {
        "images": [{"id": i, "file_name": name, "width": W, "height": H} for i, name in enumerate(names)],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 7, "bbox": box, "iscrowd": 0} for i, box in enumerate(boxes)
        ],
        "categories": [{"id": 7, "name": "cell"}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data | changes))


def voc(path, *boxes, name="x.png"):
    objects = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax>"
        "</bndbox></object>"
        for label, a, b, c, d in boxes
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<annotation><filename>{name}</filename>{objects}</annotation>")


def test_coco_beside_its_pictures(tmp_path):
    for i in range(20):
        picture(tmp_path / f"{i}.png")
    coco(tmp_path / "boxes.json", [[i / 2, 1, 5, 4] for i in range(20)])
    read = read_boxed_images(tmp_path / "boxes.json")
    assert (len(read.train), len(read.valid), read.size, read.channels) == (18, 2, (H, W), 3)
    assert "2 pictures held out" in read.notes[0]
    boxes = sorted(one.box for part in (read.train, read.valid) for (one,) in part.things)
    assert boxes == sorted((i / 2, 1, i / 2 + 5, 5) for i in range(20))
    assert read.train.images[0].shape == (3, H, W)
    assert [*read_test_boxes(tmp_path, channels=3)[0]] == ["boxes"]


def test_coco_as_it_was_published(tmp_path):
    """annotations/instances_*.json, pictures in folders that are called as they are, some names in both."""
    for name, mode in (("train2017", "L"), ("val2017", "RGB")):
        picture(tmp_path / name / "0.png", mode)
        coco(tmp_path / "annotations" / f"instances_{name}.json", [[1, 1, 5, 4]])
    read = read_boxed_images(tmp_path)
    assert (len(read.train), len(read.valid), read.channels) == (1, 1, 1)
    assert "val2017" in read.valid.names[0]
    assert "train2017" in read.train.names[0]
    coco(tmp_path / "annotations" / "person_keypoints_train2017.json", [[2, 2, 3, 3]])  # the same pictures
    (tmp_path / "annotations" / "captions_val2017.json").write_text('{"images": [], "annotations": []}')
    again = read_boxed_images(tmp_path)
    assert (again.train.things, again.valid.things) == (read.train.things, read.valid.things)
    assert "2 files beside instances_*.json are not read: captions_val2017.json, person_" in again.notes[0]


def test_a_folder_for_each_part(tmp_path):
    for part in ("train", "valid", "test"):
        picture(tmp_path / part / "0.png")
        coco(tmp_path / part / "_annotations.coco.json", [[1, 1, 5, 4]])
    read = read_boxed_images(tmp_path)
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (1, 1, 1)
    assert [*read_test_boxes(tmp_path, channels=1)[0]] == ["test"]


def test_pascal_voc(tmp_path):
    for i in range(4):
        picture(tmp_path / "JPEGImages" / f"{i}.png")
        voc(tmp_path / "Annotations" / f"{i}.xml", ("cell", 1, 2, 5, 6), ("dot", 3, 3, 4, 4), name=f"{i}.jpg")
    for part, names in {"train": "0\n1\n", "val": "2\n", "trainval": "0\n1\n2\n", "test": "3\n"}.items():
        file = tmp_path / "ImageSets" / "Main" / f"{part}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(names)
    read = read_boxed_images(tmp_path)
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (2, 1, 1)
    assert read.train.things[0] == (Thing("cell", (0.0, 1.0, 5.0, 6.0)), Thing("dot", (2.0, 2.0, 4.0, 4.0)))
    assert thing_labels(read.train) == ("cell", "dot")
    assert len(read_boxed_images(tmp_path / "Annotations").train) == 4 - 1


def test_pascal_voc_without_a_list_to_train_on_alone(tmp_path):
    for i in range(5):
        picture(tmp_path / "JPEGImages" / f"{i}.png")
        voc(tmp_path / "Annotations" / f"{i}.xml", ("cell", 1, 2, 5, 6), name=f"{i}.png")
    (tmp_path / "ImageSets" / "Main").mkdir(parents=True)
    for part, names in {"trainval": "0\n1\n2\n", "test": "3\n4\n"}.items():
        (tmp_path / "ImageSets" / "Main" / f"{part}.txt").write_text(names)
    read = read_boxed_images(tmp_path)
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (2, 1, 2)
    (tmp_path / "ImageSets" / "Main" / "val.txt").write_text("1\n")
    read = read_boxed_images(tmp_path)
    assert [name[-5:] for name in (*read.train.names, *read.valid.names)] == ["0.png", "2.png", "1.png"]


def test_an_xml_file_is_of_the_picture_that_is_called_as_it_is(tmp_path):
    """What it names is that of before it was called otherwise, and another one now."""
    for i in range(4):
        picture(tmp_path / f"{i}.png")
        voc(tmp_path / f"{i}.xml", ("cell", 1, 2, 5 + i, 6), name=f"C:\\old\\{i}.png" if i < 2 else "0.png")
    parts, notes = read_test_boxes(tmp_path, channels=3)
    (read,) = parts.values()
    assert read.names == [str(tmp_path / f"{i}.png") for i in range(4)]
    assert [one.box[2] for (one,) in read.things] == [5, 6, 7, 8]
    what = "2 files name other pictures than those that are called as they are, which are taken"
    assert notes == (f"{tmp_path}: {what}: {tmp_path / '2.xml'}, {tmp_path / '3.xml'}",)


def test_what_is_difficult_in_pascal_voc_is_neither_learnt_nor_wrong(tmp_path):
    for i in range(4):
        picture(tmp_path / f"{i}.png")
        voc(tmp_path / f"{i}.xml", ("cell", 1, 2, 5, 6), ("dot", 3, 3, 4, 4), name=f"{i}.png")
    text = (tmp_path / "2.xml").read_text()
    (tmp_path / "2.xml").write_text(text.replace("<name>dot</name>", "<name>dot</name><difficult>1</difficult>"))
    third = text.replace("2.png", "3.png")
    (tmp_path / "3.xml").write_text(third.replace("<name>dot</name>", "<name>dot</name><difficult>0</difficult>"))
    parts, notes = read_test_boxes(tmp_path, channels=3)
    (read,) = parts.values()
    cell, dot = Thing("cell", (0.0, 1.0, 5.0, 6.0)), Thing("dot", (2.0, 2.0, 4.0, 4.0))
    assert read.things == [(cell, dot), (cell, dot), (cell,), (cell, dot)]
    assert read.crowds == [(), (), (dot,), ()]
    assert notes == (f"{tmp_path}: 1 difficult object is neither learnt nor scored: {tmp_path / '2.xml'}",)


def test_boxes_are_clipped_and_empty_ones_left_out(tmp_path):
    for i in range(5):
        picture(tmp_path / f"{i}.png")
    boxes = [[-4, 1, 9, 100], [3, 3, 0, 2], [30, 1, 5, 5], [1, 1, 4, 4], [2, 2, 9, 9]]
    coco(tmp_path / "train.json", boxes)
    data = json.loads((tmp_path / "train.json").read_text())
    data["annotations"][4]["iscrowd"] = 1
    (tmp_path / "train.json").write_text(json.dumps(data))
    coco(tmp_path / "valid.json", [[1, 1, 2, 2]])
    read = read_boxed_images(tmp_path)
    assert [[one.box for one in own] for own in read.train.things] == [[(0, 1, 5, 10)], [], [], [(1, 1, 5, 5)], []]
    assert read.train.crowds == [(), (), (), (), (Thing("cell", (2.0, 2.0, 11.0, 10.0)),)]
    assert read.valid.crowds == []
    told = (
        r"1 box reaches beyond .*0\.png",
        "2 boxes without",
        r"1 crowd \(iscrowd\) is neither learnt nor scored: 4\.png",
    )
    for note, what in zip(read.notes, told, strict=True):
        assert re.search(what, note)
    assert read_test_boxes(tmp_path / "train.json", channels=3)[1] == tuple(
        note.replace(str(tmp_path), str(tmp_path / "train.json"), 1) for note in read.notes
    )


def wrong(folder, kind):
    picture(folder / "0.png")
    file = folder / "train.json"
    match kind:
        case "no files":
            (folder / "0.png").unlink()
        case "cut short":
            file.write_text('{"images": [')
        case "a list":
            file.write_text("[]")
        case "no annotations":
            coco(file, [[1, 1, 2, 2]], annotations=None)
        case "no picture":
            coco(file, [[1, 1, 2, 2]], names=["../y.png"])
        case "a long name":
            coco(file, [[1, 1, 2, 2]], names=["y" * 300])
        case "a large number":
            coco(file, [[1, 1, 2, 10**400]])
        case "no image":
            coco(file, [[1, 1, 2, 2]], images=[])
        case "no id":
            coco(file, [[1, 1, 2, 2]], images=[{"file_name": "0.png"}])
        case "twice":
            coco(file, [[1, 1, 2, 2]], images=[{"id": 0, "file_name": "0.png"}] * 2)
        case "three numbers":
            coco(file, [[1, 1, 2]])
        case "a word":
            coco(file, [[1, 1, 2, "x"]])
        case "not a number":
            coco(file, [[1, 1, 2, float("nan")]])
        case "another size":
            picture(folder / "0.png", size=(H, W))
            coco(file, [[1, 1, 2, 2]])
        case "a damaged picture":
            (folder / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n")
            coco(file, [[1, 1, 2, 2]])
        case "no box":
            coco(file, [[30, 30, 2, 2]])
        case "damaged xml":
            (folder / "0.xml").write_text("<annotation><object>")
        case "another encoding":
            text = '<?xml version="1.0" encoding="gb2312"?><annotation/>'
            (folder / "0.xml").write_text(text, encoding="gb2312")
        case "entities":
            (folder / "0.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>')
        case "entities in UTF-16":
            text = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>'
            (folder / "0.xml").write_text(text, encoding="utf-16")
        case "other xml":
            (folder / "0.xml").write_text("<html/>")
        case "no edge":
            voc(folder / "0.xml", ("cell", 1, 2, 3, ""))
        case "no name":
            voc(folder / "0.xml", ("", 1, 2, 3, 4), name="0.png")
        case "one picture":
            coco(file, [[1, 1, 2, 2]])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("no files", r"no \.json file and no \.xml file"),
        ("cut short", r"train\.json: not JSON"),
        ("a list", r"train\.json: not an object"),
        ("no annotations", 'no "annotations", a list'),
        ("no picture", r"train\.json: image 0: there is no picture '\.\./y\.png'"),
        ("a long name", r"train\.json: image 0: there is no picture 'yyy"),
        ("a large number", r"annotation 0: a box of 1, 1, 2, 1000"),
        ("no image", r"annotation 0: image_id 0 is none of those"),
        ("no id", r'images\[0\]: no "id"'),
        ("twice", "two images have one id"),
        ("three numbers", r"annotation 0: bbox \[1, 1, 2\]"),
        ("a word", "annotation 0: a box of 1, 1, 2, x"),
        ("not a number", "annotation 0: a box of 1, 1, 2, nan"),
        ("another size", "says 20 x 10 pixels, but .* has 10 x 20"),
        ("a damaged picture", r"0\.png: "),
        ("no box", "no box to learn from"),
        ("damaged xml", r"0\.xml:1: not well-formed XML"),
        ("another encoding", r"0\.xml:1: its encoding cannot be read"),
        ("entities", "entities"),
        ("entities in UTF-16", "entities"),
        ("other xml", "<html>, expected"),
        ("no edge", r"0\.xml: object 1: a box of 1, 2, 3"),
        ("no name", "object 1: no name"),
        ("one picture", "one picture alone"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, kind, message):
    wrong(tmp_path, kind)
    with pytest.raises((InputError, MissingError), match=message):
        read_boxed_images(tmp_path)


def test_what_is_not_there(tmp_path):
    coco(tmp_path / "none.json", [])
    with pytest.raises(MissingError, match=r"none\.json: no picture in the part none"):
        read_test_boxes(tmp_path / "none.json", channels=3)
    with pytest.raises(MissingError):
        read_boxed_images(tmp_path / "x.json")
    with pytest.raises(InputError, match="'many' is no number of pictures"):
        read_boxed_images("shapes:many")
