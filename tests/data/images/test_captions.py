"""Captioned pictures in each of their layouts, and what is wrong with them in one line."""

import json
import zipfile

import pytest
import torch
from PIL import Image

from heedful.data.images.captions import pictures_in, read_captioned, read_test_captions, same_pictures
from heedful.data.images.files import ImageFile
from heedful.errors import InputError, MissingError


def picture(path, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 4), (shade,) * 3).save(path)


def told(part):
    """Shade and texts of each picture."""
    return [(int(part.images[i][0, 0, 0]), texts) for i, texts in enumerate(part.captions)]


def test_lines_of_a_picture_are_its_texts(tmp_path):
    for shade in (3, 7):
        picture(tmp_path / "own" / f"{shade}.png", shade)
    (tmp_path / "train.csv").write_text('File,Caption\nown/3.png,"dark, very"\nown/7.png,light\nown/3.png,black\n')
    (tmp_path / "valid.tsv").write_text("path\tother\ttext\nown/3.png\tx\tdim\n")
    (tmp_path / "test_a.jsonl").write_text(json.dumps({"file_name": "own/7.png", "text": "lit"}) + "\n\n")
    read = read_captioned(tmp_path)
    assert told(read.train) == [(3, ["dark, very", "black"]), (7, ["light"])]
    assert told(read.valid) == [(3, ["dim"])]
    assert told(read.tests["test_a"]) == [(7, ["lit"])]
    assert (read.channels, read.size, read.notes) == (3, (4, 6), ())
    assert told(read_test_captions(tmp_path, channels=3)["test_a"]) == [(7, ["lit"])]


def test_a_column_may_name_the_part_and_a_zip_file_hold_the_pictures(tmp_path):
    rows = ["image\ttext\tsplit"]
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as archive:
        for shade in range(24):
            picture(tmp_path / "x.png", shade)
            archive.write(tmp_path / "x.png", f"{shade}.png")
            rows.append(f"{shade}.png\tshade {shade}\t{'test' if shade < 4 else 'train'}")
    (tmp_path / "all.tsv").write_text("\n".join(rows))
    read = read_captioned(tmp_path / "all.tsv")
    assert told(read.tests["test"]) == [(shade, [f"shade {shade}"]) for shade in range(4)]
    assert (len(read.train), len(read.valid)) == (18, 2)
    both = told(read.train) + told(read.valid)
    assert sorted(both) == [(shade, [f"shade {shade}"]) for shade in range(4, 24)]
    assert told(read_captioned(tmp_path / "all.tsv").valid) == told(read.valid)
    assert "2 pictures held out" in read.notes[0]


def test_a_table_may_say_its_part_by_any_word(tmp_path):
    for name in ("captions_train", "captions_val", "captions_test"):
        picture(tmp_path / f"{name}.png")
        (tmp_path / f"{name}.csv").write_text(f"image,text\n{name}.png,{name}\n")
    read = read_captioned(tmp_path)
    assert (read.train.captions, read.valid.captions) == ([["captions_train"]], [["captions_val"]])
    assert read.tests["captions_test"].captions == [["captions_test"]]
    assert [*read_test_captions(tmp_path, channels=3)] == ["captions_test"]


def test_pictures_in_a_folder_or_a_zip_file(tmp_path):
    for name in ("b.png", "a/c.png"):
        picture(tmp_path / "in" / name)
    (tmp_path / "in" / "notes.txt").write_text("x")
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.write(tmp_path / "in" / "b.png", "b.png")
    assert [file.path.name for file in pictures_in(tmp_path / "in")] == ["c.png", "b.png"]
    assert [file.member for file in pictures_in(tmp_path / "p.zip")] == ["b.png"]
    assert pictures_in(tmp_path / "in" / "b.png") == [ImageFile(tmp_path / "in" / "b.png")]
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no picture in it"):
        pictures_in(tmp_path / "none")
    with pytest.raises(MissingError, match="no such file"):
        pictures_in(tmp_path / "absent")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.txt", 'image,caption\n3.png,"dark, very"\n7.png,light\n3.png,black\n'),
        ("a.csv", "image_name| comment_number| comment\n3.png| 0| dark, very\n7.png| 0| light\n3.png| 1| black\n"),
        ("a.csv", "title;filename\ndark, very;3.png\nlight;7.png\nblack;3.png\n"),
        ("a.tsv", "n\tdescription\timage_path\n1\tdark, very\t3.png\n2\tlight\t7.png\n3\tblack\t3.png\n"),
        ("a.tsv", "filename\tname\tcaption\n3.png\tx\tdark, very\n7.png\tx\tlight\n3.png\tx\tblack\n"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_public_layouts(tmp_path, name, text, zipped):
    """Pictures lie in a folder that is not named, or in one inside a zip file."""
    for shade in (3, 7):
        picture(tmp_path / "Images" / f"{shade}.png", shade)
        if zipped:
            with zipfile.ZipFile(tmp_path / "images.zip", "a") as archive:
                archive.write(tmp_path / "Images" / f"{shade}.png", f"flickr/{shade}.png")
            (tmp_path / "Images" / f"{shade}.png").unlink()
    (tmp_path / name).write_text(text)
    for path in (tmp_path, tmp_path / name):
        read = read_captioned(path)
        expected = [(3, ["dark, very", "black"]), (7, ["light"])]
        assert sorted(told(read.train) + told(read.valid)) == expected
        assert ("pictures from the column" in read.notes[0]) == (name != "captions.txt")


def test_a_name_of_two_pictures_is_asked_for(tmp_path):
    for folder in ("a", "b"):
        picture(tmp_path / folder / "x.png")
    (tmp_path / "t.csv").write_text("image,text\nx.png,x\na/x.png,y\n")
    with pytest.raises(InputError, match=r"t\.csv:2: there are 2 pictures called 'x\.png'"):
        read_captioned(tmp_path / "t.csv")


def test_same_pictures():
    images = torch.tensor([1, 2, 1, 3, 2], dtype=torch.uint8)[:, None, None, None].expand(5, 3, 2, 2)
    assert same_pictures(images) == [0, 1, 0, 3, 1]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.csv", "image,label\nx.png,cat\n", r"a\.csv:1: columns image, label, expected image"),
        ("a.csv", "sep=;\n", r"a\.csv:1: columns that have no name, expected image"),
        ("a.csv", "image,text\nx.png\n", r"a\.csv:2: 1 columns, expected 2"),
        ("a.csv", "image,text\nx.png,\n", r"a\.csv:2: no text"),
        ("a.csv", "image,text\ny.png,y\n", r"a\.csv:2: there is no picture 'y\.png'"),
        ("a.jsonl", '{"image": "x.png", "text": 3}\n', r"a\.jsonl:1: no text"),
        ("a.jsonl", "[1]\n", r"a\.jsonl:1: not an object"),
        ("a.csv", "image,text\n", r"no table of pictures"),
        ("a.csv", "image,text\nx.png,x\n", r"one picture alone"),
        ("test.csv", "image,text\nx.png,x\n", r"no picture to learn from"),
        ("a.xls", "image,text\n", r"not a kind of file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, text, what):
    picture(tmp_path / "x.png")
    (tmp_path / name).write_text(text)
    with pytest.raises((InputError, MissingError), match=what):
        read_captioned(tmp_path if name == "test.csv" else tmp_path / name)


def test_a_column_may_have_questions(tmp_path):
    for shade in (3, 7):
        picture(tmp_path / f"{shade}.png", shade)
    rows = "image,question,answer\n3.png,how dark?,very\n3.png,is it red?,no\n7.png,,light\n"
    (tmp_path / "train.csv").write_text(rows)
    (tmp_path / "valid.csv").write_text("image,text\n3.png,dim\n")
    read = read_captioned(tmp_path)
    assert told(read.train) == [(3, ["very", "no"]), (7, ["light"])]
    assert read.train.questions == [["how dark?", "is it red?"], [""]]
    assert read.valid.questions == []
    (tmp_path / "train.csv").unlink()
    (tmp_path / "train.jsonl").write_text(json.dumps({"image": "3.png", "question": 3, "text": "a"}) + "\n")
    with pytest.raises(InputError, match="a question that is no text"):
        read_captioned(tmp_path)


@pytest.mark.parametrize(("name", "size", "channels"), [("shapes", 64, 3), ("questions", 64, 3), ("lines", 144, 1)])
def test_generated_pictures(name, size, channels, monkeypatch):
    monkeypatch.setattr("heedful.data.made.shapes.TEST", 2)
    monkeypatch.setattr("heedful.data.made.shapes.VALID", 2)
    read = read_captioned(f"{name}:5")
    assert (len(read.train), len(read.valid), len(read.tests["test"])) == (5, 2, 2)
    assert (read.channels, read.size[1]) == (channels, size)
    assert bool(read.train.questions) == (name == "questions")
    again = read_test_captions(f"{name}:5", channels=channels)["test"]
    assert torch.equal(again.images, read.tests["test"].images)
    assert again.captions == read.tests["test"].captions
    with pytest.raises(InputError, match=f"(?s)'0' is no number of pictures.*{name}:2000"):
        read_captioned(f"{name}:0")
