"""`heed detect` and `heed segment`: from pictures in files to boxes and masks, as a person and a program use them."""

import json
from pathlib import Path
from unittest import mock

import numpy
import pytest
from PIL import Image

from commands import heed, standard_input
from heedful.data.made import shapes
from heedful.errors import InputError
from heedful.tasks.shared.terminal import OutputFiles

SIZES = {"detect": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}}
SIZES["segment"] = {"widths": [8, 16], "depths": [1, 1], "heads": [1, 2], "patches": [3, 3], "strides": [4, 2]}
SIZES["segment"] |= {"shorten": [2, 1], "d_head": 16}


@pytest.fixture(scope="module", params=["detect", "segment"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "VALID", 2)
        patch.setattr(shapes, "TEST", 3)
        plan = {"train.steps": 1, "train.precision": "fp32", "images.size": 32, "images.batch": 4}
        words = [f"--set={key}={value}" for key, value in plan.items()]
        words += [f"--set=model.{key}={json.dumps(value)}" for key, value in SIZES[request.param].items()]
        assert heed("train", request.param, "--data", "shapes:20", "--out", folder / "run", *words) == 0
    for i in range(2):
        Image.fromarray(shapes.scene("test", i).pixels).resize((80, 48)).save(folder / f"{i}.png")
    return request.param, folder


def test_pictures_in_answers_out(run, capsys, tmp_path):
    task, folder = run
    pictures = [folder / "0.png", folder / "1.png"]
    more = ["--threshold", 0] if task == "detect" else ["--overlay"]
    assert heed(task, folder / "run", *pictures, "--out", tmp_path / "made", "--json", *more) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["input"] for one in answers] == [str(file) for file in pictures]
    for one, file in zip(answers, pictures, strict=True):
        with Image.open(tmp_path / "made" / file.name) as made:
            if task == "detect":
                assert all(len(each["box"]) == 4 for each in one["boxes"])
                assert one["boxes"][0].keys() == {"label", "score", "box"}
                assert made.size == (480, 288)
            else:
                assert one["mask"] == str(tmp_path / "made" / file.name)
                assert (made.mode, made.size) == ("P", (80, 48))
                said = numpy.asarray(made)
                assert {each["value"]: each["share"] for each in one["labels"]} == pytest.approx(
                    {int(value): float((said == value).mean()) for value in numpy.unique(said)}, abs=1e-3
                )
                with Image.open(tmp_path / "made" / f"{file.stem}.overlay.png") as over:
                    assert (over.mode, over.size) == ("RGB", (80, 48))


def test_a_name_is_in_its_column(run, capsys, tmp_path):
    task, folder = run
    picture = tmp_path / "a\tb.png"
    picture.write_bytes((folder / "0.png").read_bytes())
    more = ["--threshold", 0] if task == "detect" else ["--out", tmp_path / "made"]
    assert heed(task, folder / "run", picture, *more) == 0
    lines = capsys.readouterr().out.splitlines()
    columns = 4 if task == "detect" else 3
    assert {len(line.split("\t")) for line in lines} == {columns}
    assert lines[0].endswith("\ta\\tb.png") or lines[0].endswith("/a\\tb.png")


def test_eval_info_and_check(run, capsys, monkeypatch):
    task, folder = run
    monkeypatch.setattr(shapes, "TEST", 3)
    assert heed("eval", folder / "run", "--data", "shapes", "--json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found.keys() >= ({"loss", "map", "map50"} if task == "detect" else {"loss", "miou", "iou", "pixel_accuracy"})
    assert heed("info", folder / "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["task"] == task
    assert heed("check", folder / "run") == 0


def test_what_cannot_be_done_is_one_line(run, capsys, tmp_path):
    task, folder = run
    (tmp_path / "x.png").write_bytes(b"x")
    other = {"detect": "segment", "segment": "detect"}[task]
    assert heed(task, folder / "run", tmp_path / "x.png", "--out", tmp_path) == 2
    assert heed(task, folder / "run", tmp_path / "y.png", "--out", tmp_path) == 3
    assert heed(other, folder / "run", folder / "0.png") == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(told) == 3
    assert f"a model for '{task}'" in told[-1]
    before = (folder / "0.png").read_bytes()
    assert heed(task, folder / "run", folder / "0.png", "--out", folder) == 2
    assert "written over" in capsys.readouterr().err
    assert (folder / "0.png").read_bytes() == before
    if task == "detect":
        assert heed("detect", folder / "run", folder / "0.png", "--out", tmp_path / "x.txt") == 2
        assert heed("detect", folder / "run", folder / "0.png", folder / "1.png", "--out", tmp_path / "one.png") == 2


def test_a_folder_that_is_there_may_have_a_dot_in_its_name(tmp_path):
    (tmp_path / "found.v2").mkdir()
    assert OutputFiles(["a.png", "b.png"], tmp_path / "found.v2")("b.png") == tmp_path / "found.v2" / "b.png"
    with pytest.raises(InputError, match="not a folder's name"):
        OutputFiles(["a.png", "b.png"], tmp_path / "found.png")


@pytest.mark.parametrize(("task", "more"), [("classify-images", []), ("match", ["--text", "a"]), ("paint", [])])
def test_a_picture_that_is_too_narrow_is_named(task, more, run_of, tmp_path, capsys):
    verb = {"classify-images": "classify"}.get(task, task)
    Image.new("RGB", (1 << 20, 1)).save(tmp_path / "thin.png")
    Image.new("RGB", (40, 40)).save(tmp_path / "square.png")
    out = ["--out", tmp_path / "made"] if task == "paint" else []
    files = [tmp_path / "square.png", tmp_path / "thin.png"]
    capsys.readouterr()
    with mock.patch("heedful.data.images.files.MOST_PIXELS", 1 << 21):
        assert heed(verb, run_of(task), *files, *more, *out) == 2
    told = "error" if task == "paint" else "warning"
    assert f"{told}: {files[1]}: a picture of 1 x 1,048,576 pixels" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["classify-images", "match", "detect", "segment", "describe"])
@pytest.mark.parametrize("way", ["words", "lines"])
def test_a_picture_that_cannot_be_read_does_not_end_the_work(task, way, run_of, tmp_path, capsys):
    verb = {"classify-images": "classify"}.get(task, task)
    more = {"match": ["--text", "a", "--text", "b"], "segment": ["--out", tmp_path / "masks"]}.get(task, [])
    files = [str(tmp_path / name) for name in ("a.png", "damaged.png", "absent.png", "b.png", "c.png", "d.png")]
    for name in "abcd":
        Image.new("RGB", (40, 40), "red").save(tmp_path / f"{name}.png")
    Path(files[1]).write_bytes(Path(files[0]).read_bytes()[:60])
    given, lines = (files, "") if way == "words" else ([], "".join(f"{file}\n" for file in files))
    run = run_of(task)
    capsys.readouterr()
    with standard_input(lines):
        assert heed(verb, run, *given, *more, "--json") == 2
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    assert [one["input"] for one in found] == files
    assert ["error" in one for one in found] == [False, True, True, False, False, False]
    assert f"warning: {files[1]}: a damaged picture" in said.err
    assert f"warning: {files[2]}: no such file" in said.err
    assert "error: 2 of 6 pictures have no answer" in said.err
    for file, status in ((files[1], 2), (files[2], 3)):  # one alone
        assert heed(verb, run, file, *more) == status
        assert f"error: {file}: " in capsys.readouterr().err
