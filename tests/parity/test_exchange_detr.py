"""Runs made of folders of the Hub with DETR in them, and folders made of runs: the pixels, the logits and the boxes are
those of transformers. Weights are loud (see `test_detr.py`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoImageProcessor,
    AutoModelForObjectDetection,
    DetrConfig,
    DetrForObjectDetection,
    DetrImageProcessorPil,
    ResNetConfig,
)
from transformers.image_transforms import get_size_with_aspect_ratio

import heedful
from commands import heed
from heedful.data.images.boxes import BoxedImages, BoxedPart, Thing
from heedful.data.images.files import Preparation, read_image
from heedful.errors import InputError
from heedful.exchange.hf import detr
from heedful.exchange.preprocessor import PREPROCESSOR, preprocessor, read_preparation
from heedful.models import make_model
from heedful.models.vision_presets import DETECTORS, detr_config
from heedful.run.events import Finished
from heedful.run.folder import parameters, write_model
from heedful.run.recipe import override
from heedful.store.model import read_model
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from nearly import close
from pictures import loud

RESNET: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [2, 1], "layer_type": "basic"}
TINY: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "num_queries": 6,
    "id2label": {0: "N/A", 1: "person", 2: "N/A", 3: "cat"},
}
SIZE = {"shortest_edge": 40, "longest_edge": 64}


class Made(NamedTuple):
    folder: Path  # "theirs", and "run" made of it
    model: DetrForObjectDetection
    processor: DetrImageProcessorPil
    files: list[Path]


@pytest.fixture(scope="module", params=["transformers", "authors"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """As transformers writes it, and as the folder of the authors' weights is written: with timm's names, and old
    words for the rest."""
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub")
    resnet = ResNetConfig(**RESNET, out_features=["stage2"])
    model = DetrForObjectDetection(DetrConfig(use_timm_backbone=False, backbone_config=resnet, **TINY)).eval()
    loud(model)
    for module in model.model.backbone.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
    processor = DetrImageProcessorPil(size=SIZE)
    model.save_pretrained(folder / "theirs")
    processor.save_pretrained(folder / "theirs")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "authors":
            patch.setitem(detr.TIMM, "resnet18", {"kind": "basic", "widths": [8, 12], "depths": [2, 1], "stem": 8})
            as_the_authors_have_it(folder / "theirs")
        import_model(folder / "theirs", folder / "run")
        draw, files = numpy.random.default_rng(0), []
        for rows, columns in ((48, 36), (36, 120)):
            files.append(folder / f"{rows}.png")
            Image.fromarray(draw.integers(0, 256, (rows, columns, 3), dtype=numpy.uint8)).save(files[-1])
        yield Made(folder, model, processor, files)


def as_the_authors_have_it(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {"use_timm_backbone": True, "backbone": "resnet18"}
    del config["backbone_config"]
    (folder / "config.json").write_text(json.dumps(config))
    old = {"feature_extractor_type": "DetrFeatureExtractor", "size": 40, "max_size": 64, "format": "coco_detection"}
    (folder / PREPROCESSOR).write_text(json.dumps(old | {"do_resize": True, "do_normalize": True}))
    names = {
        "embedder.embedder.convolution": "conv1",
        "embedder.embedder.normalization": "bn1",
        "shortcut.convolution": "downsample.0",
        "shortcut.normalization": "downsample.1",
        "encoder.stages.0.layers": "layer1",
        "encoder.stages.1.layers": "layer2",
        "layer.0.convolution": "conv1",
        "layer.0.normalization": "bn1",
        "layer.1.convolution": "conv2",
        "layer.1.normalization": "bn2",
    }
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        head, here, tail = name.partition("conv_encoder.model.")
        for theirs, timm in names.items():
            tail = tail.replace(theirs, timm)
        tensors[head + here + tail] = tensor
    assert "model.backbone.conv_encoder.model.layer2.0.downsample.1.running_var" in tensors
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def told(model: Any, processor: Any, file: Path) -> tuple[Tensor, Any]:
    """The pixels, and what is found in them."""
    seen = processor(images=[Image.open(file)], return_tensors="pt")
    with torch.no_grad():
        return seen["pixel_values"], model(**seen)


def test_pictures_are_seen_and_told_as_by_them(made: Made) -> None:
    ours, sizes = heedful.load(made.folder / "run"), []
    together = ours.detect(made.files, threshold=0.0)
    for file, found in zip(made.files, together, strict=True):
        pixels, theirs = told(made.model, made.processor, file)
        sizes.append(tuple(pixels.shape[2:]))
        picture = read_image(file)
        own = ours.spec.preparation([picture])
        torch.testing.assert_close(own, pixels, rtol=0, atol=1e-5)
        with torch.no_grad():
            logits, boxes = ours.model(own)
        assert float(theirs.logits.abs().max()) > 2, "weights are loud"
        close(logits[-1], theirs.logits)
        close(boxes[-1], theirs.pred_boxes)
        H, W = picture.shape[1:]
        (said,) = made.processor.post_process_object_detection(theirs, threshold=0.0, target_sizes=[(H, W)])
        order = said["scores"].argsort(descending=True)
        assert [one.score for one in found] == pytest.approx(said["scores"][order].tolist(), abs=1e-4)
        assert [one.label for one in found] == [
            ("N/A (0)", "person", "N/A (2)", "cat")[i] for i in said["labels"][order].tolist()
        ]
        edges = said["boxes"][order].clamp(min=torch.zeros(4), max=torch.tensor([W, H, W, H]))
        torch.testing.assert_close(torch.tensor([one.box for one in found]), edges, rtol=0, atol=1e-3)
        assert ours.detect([file], threshold=0.0) == [found], "each picture is seen alone"
    assert sizes == [(53, 40), (19, 64)]


def test_there_and_back(made: Made, tmp_path: Path) -> None:
    exported = export_model(made.folder / "run", tmp_path / "hub")
    assert set(exported.files) == {"config.json", "model.safetensors", PREPROCESSOR}
    assert "AutoModelForObjectDetection" in exported.loads
    theirs = AutoModelForObjectDetection.from_pretrained(tmp_path / "hub").eval()
    assert type(theirs) is DetrForObjectDetection
    assert theirs.config.id2label == TINY["id2label"]
    processor = AutoImageProcessor.from_pretrained(tmp_path / "hub", backend="pil")
    for file in made.files:
        (pixels, found), (others, before) = told(theirs, processor, file), told(made.model, made.processor, file)
        torch.testing.assert_close(pixels, others, rtol=0, atol=1e-6)
        close(found.logits, before.logits)
        close(found.pred_boxes, before.pred_boxes)
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(made.folder / "run"), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == heedful.load(made.folder / "run").about


def test_commands_drive_it(made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def printed(*words: object) -> str:
        assert heed(*words) == 0
        return capsys.readouterr().out

    run, picture = made.folder / "run", made.files[1]
    words = [run, picture, "--threshold", 0, "--json", "--out", tmp_path / "x.png"]
    found = json.loads(printed("detect", *words))["boxes"]
    assert [tuple(one["box"]) for one in found] == [
        tuple(round(edge, 2) for edge in one.box) for one in heedful.load(run).detect([picture], threshold=0.0)[0]
    ]
    assert (tmp_path / "x.png").is_file()
    assert "edges of 40 to 64 pixels" in printed("info", run)
    printed("check", run)


def test_what_is_trained_from_it_is_exported(made: Made, tmp_path: Path) -> None:
    """On pictures that all have one size, in which batches are seen."""
    pixels = torch.randint(0, 256, (3, 3, 40, 56), dtype=torch.uint8)
    things = [(Thing("car", (4.0, 5.0, 30.0, 20.0)),), (), (Thing("bus", (20.0, 5.0, 30.0, 40.0)),)]
    part = BoxedPart(pixels, things, ["0", "1", "2"])
    plan = heedful.recipe("detect", start_from=str(made.folder / "run"))
    plan = override(plan, ["train.steps=1", "train.lr=0.001", "train.precision=fp32", "images.batch=3"])
    run = tmp_path / "run"
    *_, done = train(plan, run, corpus=BoxedImages(part, part, {}, "made", channels=3, size=(40, 56)))
    assert isinstance(done, Finished)
    export_model(run, tmp_path / "hub")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "hub", backend="pil")
    model, ours = AutoModelForObjectDetection.from_pretrained(tmp_path / "hub").eval(), heedful.load(run)
    assert model.config.id2label == {0: "bus", 1: "car"}
    for file in made.files:
        pixels, theirs = told(model, processor, file)
        assert pixels.shape[2:] == (40, 56)
        with torch.no_grad():
            logits, boxes = ours.model(ours.spec.preparation([read_image(file)]))
        close(logits[-1], theirs.logits)
        close(boxes[-1], theirs.pred_boxes)


def test_another_residual_network_is_refused(tmp_path: Path) -> None:
    model = make_model(detr_config(DETECTORS["detr-nano"], n_classes=2))
    about = {"task": "detect", "labels": ["a", "b"], "preparation": Preparation(resize=(40, 56)).__dict__}
    write_model(tmp_path / "run", model, parameters(model), {"task.json": about})
    with pytest.raises(InputError, match=r"norms of groups of channels .* where DETR on the Hub has batch norms"):
        export_model(tmp_path / "run", tmp_path / "hub")
    assert not (tmp_path / "hub").exists()


def test_sizes_by_the_edges_are_theirs() -> None:
    """Also where a picture fits as it is, or nearly, and of very long ones."""
    draw = numpy.random.default_rng(0)
    for _ in range(2000):
        H, W, shorter, longer = (int(n) for n in draw.integers(8, [150, 150, 90, 140]))
        found = Preparation(resize=(shorter,), longest=longer)._by_edge(H, W)
        assert found == get_size_with_aspect_ratio((H, W), shorter, longer), (H, W, shorter, longer)
    assert Preparation(resize=(8,), longest=20).fitted(torch.zeros(3, 1, 90, dtype=torch.uint8)).shape == (3, 1, 20)
    for resize in ((), (8, 8)):
        with pytest.raises(InputError, match="a longer edge of 9"):
            Preparation(resize=resize, longest=9)


def test_a_longest_edge_comes_back(tmp_path: Path) -> None:
    seen = Preparation(resize=(40,), longest=64, mean=(0.5,) * 3, std=(0.5,) * 3)
    (tmp_path / PREPROCESSOR).write_text(json.dumps(preprocessor(seen)))
    assert read_preparation(tmp_path, channels=3) == seen


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (PREPROCESSOR, {"size": {"shortest_edge": 40}}, "a shortest_edge without the longest_edge"),
        (PREPROCESSOR, {"size": {"max_height": 40, "max_width": 40}}, "is no size"),
        (PREPROCESSOR, {"pad_size": {"height": 80, "width": 80}}, "unknown key 'pad_size'"),
        (PREPROCESSOR, {"do_center_crop": True, "crop_size": 20}, "boxes may be anywhere"),
        ("config.json", {"n_anchors": 3}, "unknown key 'n_anchors'"),
        ("config.json", {"num_queries": 7}, "has shape"),
    ],
)
def test_what_cannot_be_followed_is_named(
    made: Made, file: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for own in (made.folder / "theirs").iterdir():
        (theirs / own.name).write_bytes(own.read_bytes())
    (theirs / file).write_text(json.dumps(json.loads((theirs / file).read_text()) | change))
    with pytest.raises(InputError, match=message):
        import_model(theirs, tmp_path / "run")
    assert not (tmp_path / "run").exists()
