"""Runs made of folders of the Hub with ViT and DeiT in them, and folders made of runs: the pixels and the logits are
those of transformers. Weights are loud (see `pictures.py`)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    AutoModelForImageClassification,
    CLIPImageProcessorPil,
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    DeiTImageProcessorPil,
    SwinConfig,
    SwinForImageClassification,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
)

import heedful
from heedful.data.images.files import Preparation, read_image
from heedful.errors import HeedError, InputError
from heedful.exchange.preprocessor import PREPROCESSOR, preprocessor, read_preparation
from heedful.models import make_model
from heedful.models.vision_presets import ViTSize, vit_config
from heedful.run.folder import parameters, write_model
from heedful.store.model import read_model
from heedful.verbs.exchange import export_model, import_model
from nearly import close
from pictures import loud

PICTURES: dict[str, Any] = {"image_size": 24, "id2label": {0: "cat", 1: "crane", 2: "dog"}}
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "patch_size": 6,
    **PICTURES,
}
CROP = {"size": {"shortest_edge": 30}, "crop_size": {"height": 24, "width": 24}}
MAKERS: dict[str, Any] = {
    "vit": lambda: (ViTForImageClassification(ViTConfig(**SIZES)), ViTImageProcessorPil(size=24)),
    "deit": lambda: (
        DeiTForImageClassificationWithTeacher(DeiTConfig(**SIZES)),
        DeiTImageProcessorPil(size={"height": 27, "width": 27}, crop_size=24),
    ),
    "swin": lambda: (
        SwinForImageClassification(
            SwinConfig(embed_dim=8, depths=[2, 1], num_heads=[2, 4], window_size=3, patch_size=2, **PICTURES)
        ),
        ViTImageProcessorPil(size=24),
    ),
    "vit, cut out": lambda: (ViTForImageClassification(ViTConfig(**SIZES)), CLIPImageProcessorPil(**CROP)),
}


class Pair(NamedTuple):
    theirs: Any
    processor: Any
    run: Path
    files: list[Path]


@pytest.fixture(scope="module", params=sorted(MAKERS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub")
    theirs, processor = MAKERS[request.param]()
    loud(theirs)
    theirs.eval().save_pretrained(folder / "theirs")
    processor.save_pretrained(folder / "theirs")
    import_model(folder / "theirs", folder / "run")
    draw, files = numpy.random.default_rng(0), []
    for rows, columns in ((24, 24), (50, 31), (17, 80)):
        files.append(folder / f"{rows}.png")
        Image.fromarray(draw.integers(0, 256, (rows, columns, 3), dtype=numpy.uint8)).save(files[-1])
    return Pair(theirs, processor, folder / "run", files)


def seen(processor: Any, files: list[Path]) -> torch.Tensor:
    return processor(images=[Image.open(file) for file in files], return_tensors="pt")["pixel_values"]


def test_pictures_are_seen_and_told_as_by_them(pair: Pair) -> None:
    ours = heedful.load(pair.run)
    pixels = seen(pair.processor, pair.files)
    own = ours.spec.preparation([read_image(file) for file in pair.files])
    torch.testing.assert_close(own, pixels, rtol=0, atol=1e-5)
    with torch.no_grad():
        logits = pair.theirs(pixels).logits
        close(ours.model(own), logits)
    for told, row in zip(ours.classify(pair.files), logits.softmax(1), strict=True):
        assert dict(told) == pytest.approx(dict(zip(["cat", "crane", "dog"], row.tolist(), strict=True)), abs=1e-4)


def test_what_is_exported_is_what_was_imported(pair: Pair, tmp_path: Path) -> None:
    made = export_model(pair.run, tmp_path / "hub")
    assert set(made.files) == {"config.json", "model.safetensors", PREPROCESSOR}
    theirs = AutoModelForImageClassification.from_pretrained(tmp_path / "hub").eval()
    assert type(theirs) is type(pair.theirs)
    assert theirs.config.id2label == SIZES["id2label"]
    pixels = seen(AutoImageProcessor.from_pretrained(tmp_path / "hub", backend="pil"), pair.files)
    torch.testing.assert_close(pixels, seen(pair.processor, pair.files), rtol=0, atol=1e-6)
    with torch.no_grad():
        close(theirs(pixels).logits, pair.theirs(pixels).logits)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(pair.run), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == heedful.load(pair.run).about


def a_run(folder: Path, prepared: Preparation, *, mirrored: bool = False, **row: Any) -> Path:
    model = make_model(vit_config(ViTSize(d_model=16, n_layers=1, n_heads=2, patch=4, size=12, n_classes=2, **row)))
    about = {"task": "classify-images", "labels": ["a", "b"], "preparation": prepared.__dict__, "mirrored": mirrored}
    write_model(folder, model, parameters(model), {"task.json": about})
    return folder


def test_a_model_trained_here_is_exported(tmp_path: Path) -> None:
    prepared = Preparation(resize=(12,), crop=(12, 12), mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    run = a_run(tmp_path / "run", prepared)
    export_model(run, tmp_path / "hub")
    pixels = torch.randint(0, 256, (3, 20, 33), dtype=torch.uint8)
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    theirs = AutoImageProcessor.from_pretrained(tmp_path / "hub", backend="pil")(images=image, return_tensors="pt")
    ours = heedful.load(run)
    torch.testing.assert_close(ours.spec.preparation([pixels]), theirs["pixel_values"], rtol=0, atol=1e-5)
    model = AutoModelForImageClassification.from_pretrained(tmp_path / "hub").eval()
    with torch.no_grad():
        close(ours.model(theirs["pixel_values"]), model(**theirs).logits)
    with pytest.raises(InputError, match=r"cannot hold model\.patches\.stem"):
        export_model(a_run(tmp_path / "stem", prepared, stem=(4,)), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_mirror_image_is_looked_at_again(tmp_path: Path) -> None:
    prepared = Preparation(resize=(12, 12), mean=(0.5,) * 3, std=(0.5,) * 3)
    for mirrored in (True, False):
        folders = [tmp_path / f"{name}, {mirrored}" for name in ("run", "hub", "again")]
        notes = export_model(a_run(folders[0], prepared, mirrored=mirrored), folders[1]).notes
        told = "there a picture is looked at once: the run itself averages over its mirror image"
        assert notes == ((told,) if mirrored else ())
        AutoModelForImageClassification.from_pretrained(folders[1])
        import_model(folders[1], folders[2])
        assert heedful.load(folders[2]).spec == heedful.load(folders[0]).spec


@pytest.mark.parametrize(
    "prepared",
    [
        Preparation(resize=(9, 12), mean=(0.5,) * 3, std=(0.5,) * 3),
        Preparation(resize=(14, 14), crop=(9, 12), resample="lanczos", factor=0.01),
        Preparation(channels=1, resize=(14,), crop=(9, 12), resample="nearest", mean=(0.3,), std=(2.0,)),
    ],
)
def test_preparations_come_back(prepared: Preparation, tmp_path: Path) -> None:
    (tmp_path / PREPROCESSOR).write_text(json.dumps(preprocessor(prepared)))
    assert read_preparation(tmp_path, channels=prepared.channels) == prepared


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_processor_type": "DonutImageProcessor"}, "unknown key 'Donut'"),
        ({"do_flip_channel_order": True}, "unknown key 'do_flip_channel_order'"),
        ({"resample": 9}, "resample is 9"),
        ({"size": {"longest_edge": 9}}, "is no size"),
        ({"size": 20, "crop_size": 24, "do_center_crop": True}, "are cut to"),
        ({"image_mean": [0.5]}, "a mean"),
        ({"rescale_factor": "x"}, "expected float"),
    ],
)
def test_what_cannot_be_followed_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    base = {"image_processor_type": "ViTImageProcessor", "size": 24}
    (tmp_path / PREPROCESSOR).write_text(json.dumps(base | changes))
    with pytest.raises(HeedError, match=message):
        read_preparation(tmp_path, channels=3)


def test_what_a_file_leaves_out_depends_on_its_kind(tmp_path: Path) -> None:
    for kind, size in (
        ("ViTFeatureExtractor", (224, 224)),
        ("CLIPImageProcessorFast", (224,)),
        ("DeiTImageProcessor", (256, 256)),
    ):
        (tmp_path / PREPROCESSOR).write_text(json.dumps({"feature_extractor_type": kind}))
        assert read_preparation(tmp_path, channels=3).resize == size
    assert replace(read_preparation(tmp_path, channels=3), resize=(1, 1)).crop == (224, 224)
