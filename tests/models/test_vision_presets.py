"""Every row of the presets of models that see is guarded by its parameter count, and by Hugging Face's of the model
that its configuration makes there: no weight is allocated."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    CLIPConfig,
    CLIPModel,
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    DetrConfig,
    DetrForObjectDetection,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SwinConfig,
    SwinForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from heedful.exchange.hf import clip, detr, segformer, swin, vit
from heedful.models import make_model
from heedful.models.resnet import ResNetConfig
from heedful.models.vision_presets import (
    DETECTORS,
    PAIRS,
    SEGMENTERS,
    VISION_TRANSFORMERS,
    ClipSize,
    DetrSize,
    SegformerSize,
    ViTSize,
    clip_config,
    detr_config,
    segformer_config,
    vit_config,
)


def count(theirs: nn.Module) -> int:
    return sum(weight.numel() for weight in theirs.parameters())


def counted(config: Any) -> int:
    """What is learned: what of a norm stands still is no parameter there."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in make_model(config).parameters() if weight.requires_grad)


def names(n: int) -> list[str]:
    return [str(i) for i in range(n)]


VIT = {
    "vit-nano28": 205_066,
    "vit-micro32": 2_693_578,
    "vit-small64": 14_372_936,
    "vit-b32": 88_224_232,
    "vit-b16": 86_567_656,
    "vit-l16": 304_326_632,
    "vit-h14": 632_045_800,
    "deit-tiny": 5_717_416,  # the paper: 5 million
    "deit-small": 22_050_664,  # 22
    "deit-base": 86_567_656,  # 86
    "deit-tiny-distilled": 5_910_800,
    "deit-small-distilled": 22_436_432,
    "deit-base-distilled": 87_338_192,
    "swin-tiny": 28_288_354,  # the paper: 29 million
    "swin-small": 49_606_258,  # 50
    "swin-base": 87_768_224,  # 88
}


@pytest.mark.parametrize("name", sorted(VISION_TRANSFORMERS))
def test_vision_transformers(name: str) -> None:
    config = vit_config(VISION_TRANSFORMERS[name])
    assert counted(config) == VIT[name]
    family = swin if config.stages else vit
    theirs = family.config_to_hf(config, labels=names(config.n_classes))
    with torch.device("meta"):
        if config.stages:
            model = SwinForImageClassification(SwinConfig.from_dict(theirs))
        elif config.teacher:
            model = DeiTForImageClassificationWithTeacher(DeiTConfig.from_dict(theirs))
        else:
            model = ViTForImageClassification(ViTConfig.from_dict(theirs))
    assert count(model) == VIT[name]


def test_every_field_of_a_vision_row_changes_the_model() -> None:
    row = ViTSize(d_model=8, n_layers=1, n_heads=2, patch=4)
    other = ViTSize(
        d_model=16,
        n_layers=2,
        n_heads=4,
        patch=8,
        patch_rows=2,
        d_ff=5,
        size=32,
        channels=1,
        n_classes=9,
        readout="mean",
        position_embeddings="sinusoidal",
        window=4,
        depths=(1,),
        stem=(8,),
        teacher=True,
        dropout=0.2,
    )
    changed = [dataclasses.replace(row, **{f.name: getattr(other, f.name)}) for f in dataclasses.fields(ViTSize)]
    assert len({vit_config(row), *map(vit_config, changed)}) == 1 + len(changed)


def test_data_replace_what_was_published() -> None:
    config = vit_config(VISION_TRANSFORMERS["vit-b16"], n_classes=0, size=(32, 64))
    assert (config.n_classes, config.patches.size) == (0, (32, 64))


CLIP = {
    "clip-nano32": 1_679_745,
    "clip-b32": 151_277_313,
    "clip-b16": 149_620_737,
    "clip-l14": 427_616_513,
}


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_two_towers(name: str) -> None:
    config = clip_config(PAIRS[name])
    assert counted(config) == CLIP[name]
    with torch.device("meta"):
        assert count(CLIPModel(CLIPConfig.from_dict(clip.config_to_hf(config, start=0, pad=0)))) == CLIP[name]


def test_every_field_of_a_row_of_towers_changes_the_model() -> None:
    row = PAIRS["clip-b32"]
    changed = [dataclasses.replace(row, **{f.name: 2 * getattr(row, f.name)}) for f in dataclasses.fields(ClipSize)]
    assert len({clip_config(row), *map(clip_config, changed)}) == 1 + len(changed)
    config = clip_config(row, vocab_size=30, end=7, context_length=9, size=(64, 32))
    assert (config.text.embed.vocab_size, config.text.end, config.text.embed.context_length) == (30, 7, 9)
    assert config.image.patches.size == (64, 32)
    assert clip_config(row, vocab_size=30).text.end == 29


SEGFORMER = {
    "segformer-nano": 781_269,
    "segformer-micro": 1_113_557,
    "segformer-b0": 3_752_694,  # the paper, with 150 classes: 3.8 million
    "segformer-b1": 13_715_798,  # 13.7
    "segformer-b2": 27_461_974,  # 27.5
    "segformer-b3": 47_337_814,  # 47.3
    "segformer-b4": 64_108_374,  # 64.1
    "segformer-b5": 84_708_694,  # 84.7
}


@pytest.mark.parametrize("name", sorted(SEGMENTERS))
def test_segformers(name: str) -> None:
    config = segformer_config(SEGMENTERS[name])
    assert counted(config) == SEGFORMER[name]
    theirs = segformer.config_to_hf(dataclasses.replace(config, head_norm="batch"), labels=names(config.n_classes))
    with torch.device("meta"):
        assert count(SegformerForSemanticSegmentation(SegformerConfig.from_dict(theirs))) == SEGFORMER[name]


def test_every_field_of_a_mix_row_changes_the_model() -> None:
    row = SEGMENTERS["segformer-b0"]
    four = {f.name: (3, 3, 3, 3) for f in dataclasses.fields(SegformerSize) if isinstance(getattr(row, f.name), tuple)}
    others = four | {"d_head": 9, "n_classes": 9, "head_norm": "group", "head_dropout": 0.5, "drop_path": 0.5}
    assert set(others) == {f.name for f in dataclasses.fields(SegformerSize)}
    changed = [dataclasses.replace(row, **{key: value}) for key, value in others.items()]
    assert len({segformer_config(row), *map(segformer_config, changed)}) == 1 + len(changed)
    assert segformer_config(row, n_classes=3, channels=1).channels == 1
    assert segformer_config(row, n_classes=3).n_classes == 3


DETR = {
    "detr-nano": 1_734_959,
    "detr-nano-affine": 1_734_959,
    "detr-r50": 41_524_768,  # the paper: 41 million
    "detr-r101": 60_464_672,  # 60
}


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_detectors(name: str) -> None:
    """Theirs has no scale and shift in a norm by groups."""
    config = detr_config(DETECTORS[name])
    assert counted(config) == DETR[name]
    fixed = dataclasses.replace(config, backbone=dataclasses.replace(config.backbone, norm="batch"))
    with torch.device("meta"):
        theirs = DetrForObjectDetection(DetrConfig.from_dict(detr.config_to_hf(fixed, labels=names(config.n_classes))))
    assert count(theirs) == counted(fixed)


def test_every_field_of_a_detector_changes_the_model() -> None:
    row = DETECTORS["detr-r50"]
    changed = [
        dataclasses.replace(row, **{f.name: 2 * getattr(row, f.name)})
        for f in dataclasses.fields(DetrSize)
        if f.name != "backbone"
    ]
    changed.append(dataclasses.replace(row, backbone=ResNetConfig(stem=5)))
    assert len({detr_config(row), *map(detr_config, changed)}) == 1 + len(dataclasses.fields(DetrSize))
    config = detr_config(row, n_classes=4, n_queries=7)
    assert (config.n_classes, config.n_queries) == (4, 7)
