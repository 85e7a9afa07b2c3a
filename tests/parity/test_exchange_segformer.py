"""Runs made of folders of the Hub with SegFormer in them, and folders made of runs: masks are those of transformers."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    AutoModelForSemanticSegmentation,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SegformerImageProcessorPil,
)

import heedful
from heedful.errors import InputError
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.store.model import read_model, save_model
from heedful.verbs.exchange import export_model, import_model
from pictures import loud

SIZES: dict[str, Any] = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "hidden_sizes": [8, 16],
    "num_attention_heads": [1, 2],
    "mlp_ratios": [2, 2],
    "patch_sizes": [7, 3],
    "strides": [4, 2],
    "sr_ratios": [2, 1],
    "decoder_hidden_size": 16,
    "id2label": {0: "road", 1: "tree", 2: "sky", 3: "tree"},
}
Made = tuple[Path, Any, list[Path]]


@pytest.fixture(scope="module", params=[False, True])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub")
    theirs = SegformerForSemanticSegmentation(SegformerConfig(**SIZES)).eval()
    loud(theirs)
    theirs.save_pretrained(folder / "theirs")
    size = {"height": 32, "width": 48}
    SegformerImageProcessorPil(size=size, do_reduce_labels=request.param).save_pretrained(folder / "theirs")
    import_model(folder / "theirs", folder / "run")
    draw, files = numpy.random.default_rng(0), []
    for rows, columns in ((32, 48), (50, 31)):
        files.append(folder / f"{rows}.png")
        Image.fromarray(draw.integers(0, 256, (rows, columns, 3), dtype=numpy.uint8)).save(files[-1])
    return folder, theirs, files


def masks(folder: Path, files: list[Path]) -> list[torch.Tensor]:
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    model = AutoModelForSemanticSegmentation.from_pretrained(folder).eval()
    pictures = [Image.open(file) for file in files]
    with torch.no_grad():
        out = model(**processor(images=pictures, return_tensors="pt"))
    return processor.post_process_semantic_segmentation(out, [picture.size[::-1] for picture in pictures])


def test_masks_are_theirs(made: Made) -> None:
    folder, _, files = made
    for ours, theirs in zip(heedful.load(folder / "run").segment(files), masks(folder / "theirs", files), strict=True):
        assert ours.shape == theirs.shape
        assert float((ours == theirs).float().mean()) > 0.999
        assert len(theirs.unique()) > 1


def test_there_and_back(made: Made, tmp_path: Path) -> None:
    folder, _, files = made
    assert set(export_model(folder / "run", tmp_path / "hub").files) == {
        "config.json",
        "model.safetensors",
        PREPROCESSOR,
    }
    _, told = SegformerForSemanticSegmentation.from_pretrained(tmp_path / "hub", output_loading_info=True)
    assert not told["missing_keys"], "they are told of as parts that are to be trained"
    for own, theirs in zip(masks(tmp_path / "hub", files), masks(folder / "theirs", files), strict=True):
        assert torch.equal(own, theirs)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(folder / "run"), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    says = heedful.load(tmp_path / "again").spec
    assert says == heedful.load(folder / "run").spec
    assert says.labels == ("road", "tree (1)", "sky", "tree (3)")
    first = int(json.loads((folder / "theirs" / PREPROCESSOR).read_text())["do_reduce_labels"])
    assert says.classes.values == tuple(range(first, first + 4))


def test_pictures_that_are_cropped_are_refused(made: Made, tmp_path: Path) -> None:
    folder, *_ = made
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for file in (folder / "theirs").iterdir():
        (theirs / file.name).write_bytes(file.read_bytes())
    said = json.loads((theirs / PREPROCESSOR).read_text())
    crop = {"height": 16, "width": 16}
    (theirs / PREPROCESSOR).write_text(json.dumps(said | {"do_center_crop": True, "crop_size": crop}))
    with pytest.raises(InputError, match="every pixel has a class"):
        import_model(theirs, tmp_path / "run")


@pytest.mark.parametrize("other", [{"values": [0, 7, 9, 255]}, {"values": [1, 0, 2, 3]}, {"things": True}])
def test_what_masks_mean_is_kept(made: Made, tmp_path: Path, other: dict[str, Any]) -> None:
    """Numbers that do not count from 0 or 1: measured by others, the same masks would be others."""
    folder, *_ = made
    about = json.loads((folder / "run" / "task.json").read_text())
    about["classes"] |= other
    save_model(tmp_path / "run", *read_model(folder / "run"), {"task.json": about})
    export_model(tmp_path / "run", tmp_path / "hub")
    SegformerForSemanticSegmentation.from_pretrained(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "again")
    assert json.loads((tmp_path / "again" / "task.json").read_text()) == about
    said = json.loads((tmp_path / "hub" / "config.json").read_text())
    said["task_specific_params"] = {"image-segmentation": {"values": [3]}}
    (tmp_path / "hub" / "config.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="as many labels as"):
        import_model(tmp_path / "hub", tmp_path / "wrong")
