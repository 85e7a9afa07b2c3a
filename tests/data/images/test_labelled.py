"""Labelled pictures in each of their layouts, and what is wrong with them in one line."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest
import torch
from PIL import Image

from heedful.data.images.labelled import label_names, read_labelled_images, read_test_images
from heedful.errors import InputError, MissingError


def picture(path, shade=0, mode="RGB", size=(6, 4)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, shade if mode == "L" else (shade,) * 3).save(path)


def idx(path, tensor):
    head = bytes((0, 0, 8, tensor.dim())) + b"".join(size.to_bytes(4, "big") for size in tensor.shape)
    data = head + tensor.numpy().tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def told(part):
    """Label and shade of each picture."""
    return [(label, int(part.images[i][0, 0, 0])) for i, label in enumerate(part.labels)]


def test_a_folder_for_each_label(tmp_path):
    for shade in range(40):
        picture(tmp_path / ["cat", "dog"][shade % 2] / f"{shade}.png", shade)
    (tmp_path / "cat" / ".DS_Store").write_bytes(b"x")
    read = read_labelled_images(tmp_path)
    assert (read.channels, read.size) == (3, (4, 6))
    assert (len(read.train), len(read.valid), read.tests) == (36, 4, {})
    assert sorted(read.valid.labels) == ["cat", "cat", "dog", "dog"]
    both = told(read.train) + told(read.valid)
    assert sorted(both, key=lambda one: one[1]) == [(["cat", "dog"][shade % 2], shade) for shade in range(40)]
    assert told(read_labelled_images(tmp_path).valid) == told(read.valid)
    assert "4 pictures held out" in read.notes[0]
    assert len(read_test_images(tmp_path, channels=3)["train"]) == 40


def test_parts_are_folders_or_zip_files(tmp_path):
    for number, name in enumerate(("train", "val", "test")):
        picture(tmp_path / name / "a" / "x.png", number, "L")
    read = read_labelled_images(tmp_path)
    assert (told(read.train), told(read.valid)) == ([("a", 0)], [("a", 1)])
    assert told(read.tests["test"]) == [("a", 2)]
    assert read.channels == 1
    assert read_labelled_images(tmp_path, channels=3).train.images[0].shape == (3, 4, 6)
    zipped = tmp_path / "zipped"
    zipped.mkdir()
    for name in ("train", "val", "test"):
        with zipfile.ZipFile(zipped / f"{name}.zip", "w") as archive:
            archive.write(tmp_path / name / "a" / "x.png", f"{name}/a/x.png")
    again = read_labelled_images(zipped)
    assert told(again.train) + told(again.valid) + told(again.tests["test"]) == [("a", 0), ("a", 1), ("a", 2)]
    assert told(read_test_images(zipped, channels=1)["test"]) == [("a", 2)]


@pytest.mark.parametrize(
    "names",
    [("Train", "Val", "Test"), ("Training", "validation", "Testing"), ("seg_train", "seg_dev", "seg_test")],
)
def test_parts_are_called_as_people_call_them(tmp_path, names):
    """None of them is taken for a label."""
    for number, name in enumerate(names):
        picture(tmp_path / name / "a" / "x.png", number)
    read = read_labelled_images(tmp_path)
    assert (told(read.train), told(read.valid), told(read.tests[names[2]])) == ([("a", 0)], [("a", 1)], [("a", 2)])
    assert told(read_test_images(tmp_path, channels=3)[names[2]]) == [("a", 2)]


def test_a_label_may_be_called_as_a_part(tmp_path):
    for shade in range(4):
        picture(tmp_path / ["bullet train", "tram"][shade % 2] / f"{shade}.png", shade)
    assert label_names([read_labelled_images(tmp_path).train]) == ("bullet train", "tram")


def test_what_is_not_read_in_a_folder_of_pictures_is_told(tmp_path):
    for shade in range(4):
        picture(tmp_path / "ab"[shade % 2] / f"{shade}.png", shade)
    (tmp_path / "a" / "IMG_1.HEIC").write_bytes(b"x")
    assert read_labelled_images(tmp_path).notes[0] == f"{tmp_path}: 1 file is not read: {Path('a', 'IMG_1.HEIC')}"
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("x")
    assert f"{tmp_path}: 5 files are not read: 0.txt, 1.txt, 2.txt, ..." in read_labelled_images(tmp_path).notes


def test_tables(tmp_path):
    for shade in (3, 4, 5):
        picture(tmp_path / f"{shade}.png", shade)
    (tmp_path / "train.csv").write_text("path,other,label\n3.png,x,a\n4.png,,b\n5.png,y,a\n")
    (tmp_path / "test.tsv").write_text(f"label\tfile\nb\t{tmp_path / '4.png'}\n")
    read = read_labelled_images(tmp_path)
    assert sorted(told(read.train) + told(read.valid)) == [("a", 3), ("a", 5), ("b", 4)]
    assert told(read.tests["test.tsv"]) == [("b", 4)]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "5.png", "in.png")
    (tmp_path / "only.csv").write_text("image,label\nin.png,c\n")
    assert told(read_test_images(tmp_path / "only.csv", channels=1)["train"]) == [("c", 5)]


def test_tables_written_by_windows_or_by_hand_and_what_macs_put_beside_files(tmp_path):
    for shade in range(4):
        picture(tmp_path / "ab"[shade % 2] / f"{shade}.png", shade)
    (tmp_path / "TRAIN.CSV").write_text("label, image\na, a\\0.png\nb, b\\1.png\na, a\\2.png\nb, b/3.png\n")
    for hidden in ("._TRAIN.CSV", "._a.zip", "._train-images-idx3-ubyte"):
        (tmp_path / hidden).write_bytes(b"\0\5\x16\7")
    read = read_labelled_images(tmp_path)
    assert sorted(told(read.train) + told(read.valid)) == [("a", 0), ("a", 2), ("b", 1), ("b", 3)]
    (tmp_path / "TRAIN.CSV").write_text("image,label\na\\9.png,a\n")
    with pytest.raises(MissingError, match=r"there is no picture 'a/9\.png'"):
        read_labelled_images(tmp_path)


def test_a_column_names_the_part_and_semicolons_separate(tmp_path):
    for shade in range(4):
        picture(tmp_path / f"{shade}.png", shade)
    rows = "".join(f"{shade}.png;a;{['train', 'train', 'Test', 'val'][shade]}\n" for shade in range(4))
    (tmp_path / "table.csv").write_text(f"image;label;split\n{rows}")
    for path in (tmp_path / "table.csv", tmp_path):
        read = read_labelled_images(path)
        assert (told(read.train), told(read.valid)) == ([("a", 0), ("a", 1)], [("a", 3)])
        assert told(read.tests["Test"]) == told(read_test_images(path, channels=3)["Test"]) == [("a", 2)]


def test_the_test_of_emnist(tmp_path):
    for part, count in (("train", 12), ("test", 3)):
        for name, shape in (("images-idx3", (count, 2, 2)), ("labels-idx1", (count,))):
            idx(tmp_path / f"emnist-letters-{part}-{name}-ubyte", torch.zeros(shape, dtype=torch.uint8))
    assert len(read_labelled_images(tmp_path).tests["test"]) == len(read_test_images(tmp_path, channels=1)["test"]) == 3


def test_objects(tmp_path):
    for shade in range(3):
        picture(tmp_path / "in" / f"{shade}.png", shade)
    rows = [{"image": f"in/{shade}.png", "label": shade % 2} for shade in range(3)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    (tmp_path / "val.jsonl").write_text(json.dumps(rows[2]))
    read = read_labelled_images(tmp_path)
    assert (told(read.train), told(read.valid)) == ([("0", 0), ("1", 1)], [("0", 2)])
    (tmp_path / "in" / "notes.jsonl").write_text("x")  # is beside pictures, and no table
    assert told(read_test_images(tmp_path / "in", channels=3, labelled=False)["train"])[0] == ("", 0)
    (tmp_path / "val.jsonl").write_text('{"file_name": "x", "label": 1}')
    with pytest.raises(InputError, match=r"val\.jsonl:1: no image"):
        read_labelled_images(tmp_path)


def test_folders_called_as_idx_files_are_passed_over(tmp_path):
    """As a well-known copy of MNIST has them."""
    for name in ("train-images", "train-labels"):
        shape = (12, 2, 2) if "images" in name else (12,)
        (tmp_path / f"{name}-{'idx3' if 'images' in name else 'idx1'}-ubyte").mkdir()
        idx(tmp_path / f"{name}.{'idx3' if 'images' in name else 'idx1'}-ubyte", torch.zeros(shape, dtype=torch.uint8))
    assert len(read_labelled_images(tmp_path).train) == 10


def test_idx_files(tmp_path):
    pixels, labels = torch.arange(24 * 6, dtype=torch.uint8).view(24, 2, 3), torch.arange(24, dtype=torch.uint8) % 11
    for name in ("train-{}-idx{}-ubyte.gz", "t10k-{}-idx{}-ubyte"):
        idx(tmp_path / name.format("images", 3), pixels)
        idx(tmp_path / name.format("labels", 1), labels)
    read = read_labelled_images(tmp_path / "train-images-idx3-ubyte.gz")
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (20, 4, 24)
    assert told(read.valid) == [(str(i % 11), 6 * i) for i in range(20, 24)]
    assert label_names([read.train]) == tuple(map(str, range(11)))
    assert len(read.files) == 4
    assert len(read_labelled_images(tmp_path).train) == 20
    assert [*read_test_images(tmp_path, channels=1)] == ["test"]
    assert (
        len(read_test_images(tmp_path / "train-images-idx3-ubyte.gz", channels=1)["train-images-idx3-ubyte.gz"]) == 24
    )
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(MissingError, match="no labels beside"):
        read_test_images(tmp_path / "t10k-images-idx3-ubyte", channels=1)
    whole = gzip.decompress((tmp_path / "train-images-idx3-ubyte.gz").read_bytes())
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(whole[:-1]))
    with pytest.raises(InputError, match="24 x 2 x 3 elements announced, 143 bytes there"):
        read_labelled_images(tmp_path)


def test_pictures_without_labels(tmp_path):
    for shade in range(10):
        picture(tmp_path / "flat" / f"{shade}.png", shade)
    picture(tmp_path / "flat" / "inside" / "deep" / "x.png", 10)
    read = read_labelled_images(tmp_path / "flat", labelled=False)
    assert (len(read.train), len(read.valid)) == (10, 1)
    assert sorted(told(read.train) + told(read.valid)) == [("", shade) for shade in range(11)]
    for part in ("train", "test"):
        picture(tmp_path / "parts" / part / "x.png", 1)
        picture(tmp_path / "parts" / part / "y.png", 2)
    assert told(read_labelled_images(tmp_path / "parts", labelled=False).tests["test"]) == [("", 1), ("", 2)]
    table = tmp_path / "flat" / "own.csv"
    table.write_text("image\n1.png\n2.png\n")
    assert told(read_test_images(table, channels=3, labelled=False)["train"]) == [("", 1), ("", 2)]
    idx(tmp_path / "a-images-idx3-ubyte", torch.zeros(12, 2, 2, dtype=torch.uint8))
    read = read_labelled_images(tmp_path / "a-images-idx3-ubyte", labelled=False)
    assert (len(read.train), read.valid.labels, len(read.files)) == (10, ["", ""], 1)


def wrong(tmp_path, kind):
    match kind:
        case "a label without a picture":
            picture(tmp_path / "a" / "x.png")
            (tmp_path / "b").mkdir()
        case "a picture without a label":
            picture(tmp_path / "a" / "x.png")
            picture(tmp_path / "y.png")
            return tmp_path
        case "nothing":
            pass
        case "no columns":
            (tmp_path / "a.csv").write_text("name,label\nx,y\n")
        case "no rows":
            (tmp_path / "a.csv").write_text("sep=;\n")
        case "a file that is not there":
            (tmp_path / "a.csv").write_text("image,label\nx.png,y\n")
        case "a long name":
            (tmp_path / "a.csv").write_text(f"image,label\n{'x' * 300},y\n")
        case "a blank label":
            picture(tmp_path / "x.png")
            (tmp_path / "a.csv").write_text("image, label\nx.png, \n")
        case "a folder beside parts":
            for part in ("train", "test", "unlabelled"):
                picture(tmp_path / part / "a" / "x.png")
        case "a folder beside parts by any word":
            for part in ("seg_train", "seg_test", "seg_pred"):
                picture(tmp_path / part / "a" / "x.png")
        case "too few":
            picture(tmp_path / "a" / "x.png")
            picture(tmp_path / "b" / "x.png")
        case "a link loop":
            picture(tmp_path / "a" / "x.png")
            (tmp_path / "a" / "a").symlink_to(tmp_path / "a", target_is_directory=True)
            picture(tmp_path / "a" / "y.png")
            (tmp_path / "b").symlink_to(tmp_path / "b")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("a label without a picture", "b: no picture in this folder"),
        ("nothing", "no picture to learn from"),
        ("no columns", r"a\.csv:1: columns name, label, expected image"),
        ("no rows", r"a\.csv:1: columns that have no name, expected image"),
        ("a file that is not there", r"a\.csv:2: there is no picture 'x\.png'"),
        ("a long name", r"a\.csv:2: there is no picture 'xxx"),
        ("a blank label", r"a\.csv:2: no label"),
        ("a folder beside parts", r"unlabelled.a.x\.png: the folder 'unlabelled' beside parts"),
        ("a folder beside parts by any word", r"seg_pred.a.x\.png: the folder 'seg_pred' beside parts"),
        ("too few", "one picture of each label"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, kind, message):
    with pytest.raises((InputError, MissingError), match=message):
        read_labelled_images(wrong(tmp_path, kind))


def test_what_has_no_picture_cannot_be_scored(tmp_path):
    with pytest.raises(MissingError, match="no picture to score"):
        read_test_images(tmp_path, channels=3)


def test_a_table_may_name_pictures_elsewhere(tmp_path):
    """By their whole path; blanks behind commas are no part of labels."""
    for shade in range(4):
        picture(tmp_path / "there" / f"{shade}.png", shade)
    rows = "".join(f"{tmp_path / 'there' / f'{shade}.png'}, {'ab'[shade % 2]}\n" for shade in range(4))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "table.csv").write_text(f"image, label\n{rows}")
    read = read_labelled_images(tmp_path / "here" / "table.csv")
    assert sorted(told(read.train) + told(read.valid)) == [("a", 0), ("a", 2), ("b", 1), ("b", 3)]


def test_links_that_lead_back_are_not_followed(tmp_path):
    assert len(read_labelled_images(wrong(tmp_path, "a link loop")).train) == 1
