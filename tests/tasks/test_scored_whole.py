"""What a score of pictures is called: the file or folder that was given, or its part; and what is told beside it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from commands import heed
from heedful.data.images.files import Preparation
from heedful.data.parts import scored_by_name
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.picture_job import seen_as
from heedful.verbs.evaluate import evaluate

SMALL = ["--preset=vit-nano28", "--set=model.d_model=16", "--set=train.steps=2", "--set=images.size=8"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder a label, and a table of the same pictures beside it."""
    folder = tmp_path_factory.mktemp("pictures")
    rows = ["label,image"]
    for number in range(24):
        file = folder / "own" / "ab"[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 10 * number).save(file)
        rows.append(f"{'ab'[number % 2]},{file.relative_to(folder)}")
    (folder / "own.csv").write_text("\n".join(rows))
    return folder


def test_all_of_a_file_or_folder_is_called_as_that_is(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--data", data / "own.csv", "--out", tmp_path / "run", *SMALL, "--json"]
    assert heed("train", "classify-images", *words) == 0
    assert [*json.loads(capsys.readouterr().out.splitlines()[-1])["scores"]] == ["valid"]
    (table,) = evaluate(tmp_path / "run", DataOptions(data=str(data / "own.csv")))
    assert table.name == "own.csv"
    assert "has learnt from it" in table.notes[0]
    assert "the middle 8 x 8 pixels are seen, grey." in (tmp_path / "run" / "README.md").read_text()
    (folder,) = evaluate(tmp_path / "run", DataOptions(data=str(data / "own")))
    assert folder.name == "own"
    assert folder.scores == pytest.approx(table.scores)


def test_a_part_is_called_as_it_is(data: Path):
    assert scored_by_name({"train": 1}, data) == {data.name: 1}
    assert scored_by_name({"train": 1, "valid": 2}, data) == {"train": 1, "valid": 2}
    assert scored_by_name({"test": 1}, data) == {"test": 1}
    assert scored_by_name({"own": 1}, data / "own.csv") == {"own.csv": 1}
    assert scored_by_name({"test": 1}, data / "own.csv") == {"test": 1}


def test_a_card_says_that_a_picture_is_cut() -> None:
    square = Preparation(resize=(16,), crop=(16, 16))
    assert (
        seen_as(square) == "Of each picture, its shorter edge resized to 16 pixels, the middle 16 x 16 pixels are seen"
    )
    assert seen_as(Preparation(resize=(48, 64))) == "Pictures are resized to 48 x 64 pixels"


def test_what_of_boxes_is_not_scored_is_told_once(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    for number in range(2):
        Image.new("RGB", (64, 64)).save(tmp_path / f"{number}.png")
    (label, *_) = json.loads((run_of("detect") / "task.json").read_text())["labels"]
    boxes = [{"image_id": 0, "category_id": 1, "bbox": [1, 1, 9, 9], "iscrowd": crowd} for crowd in (0, 1)]
    images = [{"id": number, "file_name": f"{number}.png"} for number in range(2)]
    data = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": label}]}
    for name in ("test_a", "test_b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    one, other = evaluate(run_of("detect"), DataOptions(data=str(tmp_path)))
    assert [found.notes for found in (one, other)] == [
        (f"{tmp_path}: 2 crowds (iscrowd) are neither learnt nor scored: 0.png",),
        (),
    ]
