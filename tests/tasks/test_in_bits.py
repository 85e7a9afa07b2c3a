"""Finished models with weights in fewer bits: nearly the same answers, where they can be had."""

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import heedful
from heedful.apply.inference import Int8Linear
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import TransformerSize, translator_config
from heedful.models.vision_presets import DETECTORS, SEGMENTERS, detr_config, segformer_config
from heedful.run.folder import parameters, write_model
from heedful.tasks.translate.use import Translator
from hub import LINES
from loud import make_loud
from saved import save_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = train_tokenizer(LINES, kind="bytes", size=300)
    size = TransformerSize(d_model=32, n_heads=2, d_ff=64, encoder_layers=2, decoder_layers=2, order="pre")
    torch.manual_seed(1)
    model = make_model(translator_config(size, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    make_loud(model, norm=1.0)
    about = {"task": "translate", "source": "en", "target": "de", "decode": {"beam": 1}}
    return save_run(tmp_path_factory.mktemp("bits") / "run", model, tokenizer, tokenizer, about)


@pytest.mark.filterwarnings("ignore:.*the translation is empty")
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_fewer_bits_say_nearly_the_same(run: Path, weights: str) -> None:
    whole, few = heedful.load(run, Translator), heedful.load(run, Translator, weights=weights)
    source, target = torch.randint(4, 100, (2, 3, 12))
    with torch.no_grad():
        expected, found = whole.model(source, target), few.model(source, target)
    distance = float((found - expected).norm() / expected.norm())
    assert 0 < distance < (0.1 if weights == "int8" else 0.6)
    assert any(isinstance(module, Int8Linear) for module in few.model.modules()) == (weights == "int8")
    assert len(few.translate(LINES)) == len(LINES)


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("vnni", [True, False])
def test_they_are_scored(run: Path, weights: str, vnni: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss too, which a model that learns has of its output matrix, also where a processor has no VNNI."""
    monkeypatch.setattr("heedful.apply.inference.VNNI", vnni and torch.cpu._is_vnni_supported())
    pairs = Pairs(LINES, LINES[::-1], "made")
    whole, few = (heedful.load(run, Translator, weights=each).loss(pairs) for each in ("float32", weights))
    assert 0 < abs(few - whole) < (0.05 if weights == "int8" else 0.5) * whole


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("task", ["detect", "segment"])
def test_models_of_pictures_have_them_too(task: str, weights: str, tmp_path: Path) -> None:
    about: dict[str, Any] = {"task": task, "preparation": {"resize": [32, 32]}}
    config: Any
    if task == "detect":
        config, about = detr_config(DETECTORS["detr-nano"], n_classes=2), about | {"labels": ["a", "b"]}
    else:
        config = segformer_config(SEGMENTERS["segformer-nano"], n_classes=2)
        about |= {"classes": {"labels": ["a", "b"], "values": [0, 1]}}
    torch.manual_seed(1)
    model: Any = make_model(config)
    write_model(tmp_path / "run", model, parameters(model), {"task.json": about})
    picture = tmp_path / "a.png"
    Image.effect_noise((40, 30), 80).convert("RGB").save(picture)
    model = heedful.load(tmp_path / "run", weights=weights)
    found = model.detect(picture, threshold=0.0) if task == "detect" else model.segment(picture)
    assert len(found) == (config.n_queries if task == "detect" else 30)


def test_what_cannot_be_had_is_said(run: Path) -> None:
    with pytest.raises(InputError, match="no weights 'int9'"):
        heedful.load(run, weights="int9")
    with pytest.raises(InputError, match="int8 weights by the engine 'ctranslate2'"):
        heedful.load(run, engine="ctranslate2", weights="int8")
    with pytest.raises(InputError, match="unknown key 'onnx'"):  # which is written for others, and not searched by
        heedful.load(run, engine="onnx")
