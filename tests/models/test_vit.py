"""The Vision Transformer's own laws; against Hugging Face's it stands in tests/parity."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.core.config import from_json, to_json
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import config_of, model_from
from heedful.models.vision_presets import ViTSize, vit_config
from heedful.models.vit import ViT, ViTConfig
from loud import make_loud

ROW = ViTSize(d_model=16, n_layers=2, n_heads=4, patch=4, size=12, n_classes=5)
VARIANTS = {
    "cls": ROW,
    "mean": replace(ROW, readout="mean"),
    "teacher": replace(ROW, teacher=True),
    "sines": replace(ROW, position_embeddings="sinusoidal"),
    "no classes": replace(ROW, n_classes=0),
    "stem": replace(ROW, stem=(4, 6, 8)),
}


@pytest.fixture(params=sorted(VARIANTS))
def model(request: pytest.FixtureRequest) -> ViT:
    return loud(vit_config(VARIANTS[request.param]))


def loud(config: ViTConfig) -> ViT:
    model = ViT(config).eval()
    return make_loud(model)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_batch_is_its_pictures(model: ViT) -> None:
    pixels = torch.randn(3, 3, 12, 20)
    close(model(pixels), torch.cat([model(picture[None]) for picture in pixels]))


def test_what_is_read_out(model: ViT) -> None:
    config, pixels = model.config, torch.randn(2, 3, 12, 12)
    hidden = model.hidden(pixels)
    first = 0 if config.readout == "mean" else 1 + config.teacher
    assert hidden.shape == (2, first + 9, 16)
    read = hidden.mean(1) if config.readout == "mean" else hidden[:, 0]
    if config.n_classes == 0:
        close(model(pixels), read)
    elif config.teacher:
        close(model(pixels), (model.head(read) + model.teacher_head(hidden[:, 1])) / 2)
        close(model.each(pixels)[:, 1], model.teacher_head(hidden[:, 1]))
    else:
        close(model(pixels), model.head(read))


def test_without_places_the_order_of_patches_says_nothing(model: ViT) -> None:
    """And with them it does: the places are what tells."""
    pixels = torch.randn(2, 3, 12, 12)
    turned = pixels.roll(4, dims=-1)  # every row of patches starts one later
    assert not torch.allclose(model(pixels), model(turned), atol=1e-3)
    if model.position_embeddings.table is not None and not len(
        model.patches.stem
    ):  # convolutions see beyond their patch
        nn.init.zeros_(model.position_embeddings.table.weight[-9:].detach())
        close(model(pixels), model(turned))


def test_what_cls_attends_to_can_be_seen() -> None:
    model = loud(vit_config(ROW))
    with record(model, "stack.blocks.1.*") as recording:
        model(torch.randn(2, 3, 12, 20))
    weights = recording.weights("stack.blocks.1.self_attention")
    assert weights.shape == (2, 4, 16, 16)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 16))


def test_as_a_file(model: ViT) -> None:
    assert from_json(ViTConfig, to_json(model.config)) == model.config
    assert model_from(config_of(model)).config == model.config


def test_a_teacher_needs_its_token() -> None:
    with pytest.raises(InputError, match="a teacher's token beside the mean of the patches"):
        ViT(vit_config(replace(ROW, teacher=True, readout="mean")))
