"""Every row of the presets of models that see is guarded by its parameter count, and by Hugging Face's of the model
that its configuration makes there: no weight is allocated."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    ViTConfig,
    ViTForImageClassification,
)

from heedful.models import make_model
from heedful.models.vision_presets import CLASSIFIERS, Vision, classifier
from heedful.store.hf import vit


def count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def counted(config: Any) -> int:
    with torch.device("meta"):
        return count(make_model(config))


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
}


@pytest.mark.parametrize("name", sorted(CLASSIFIERS))
def test_vision_transformers(name: str) -> None:
    config = classifier(CLASSIFIERS[name])
    assert counted(config) == VIT[name]
    theirs = vit.config_to_hf(config, labels=names(config.n_classes))
    with torch.device("meta"):
        if config.teacher:
            model = DeiTForImageClassificationWithTeacher(DeiTConfig.from_dict(theirs))
        else:
            model = ViTForImageClassification(ViTConfig.from_dict(theirs))
    assert count(model) == VIT[name]


def test_every_field_of_a_vision_row_changes_the_model() -> None:
    row = Vision(d_model=8, n_layers=1, n_heads=2, patch=4)
    other = Vision(
        d_model=16,
        n_layers=2,
        n_heads=4,
        patch=8,
        d_ff=5,
        size=32,
        channels=1,
        n_classes=9,
        readout="mean",
        places="sinusoidal",
        teacher=True,
        dropout=0.2,
    )
    changed = [dataclasses.replace(row, **{f.name: getattr(other, f.name)}) for f in dataclasses.fields(Vision)]
    assert len({classifier(row), *map(classifier, changed)}) == 1 + len(changed)


def test_data_replace_what_was_published() -> None:
    config = classifier(CLASSIFIERS["vit-b16"], n_classes=0, size=(32, 64))
    assert (config.n_classes, config.patches.size) == (0, (32, 64))
