"""The Vision Transformer's own laws; against Hugging Face's it stands in tests/parity."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.core.config import from_json, to_json
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import config_of, model_from
from heedful.models.patches import Patches, PatchesConfig
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
    "tall": replace(ROW, patch=4, patch_rows=12),
    "tall stem": replace(ROW, patch=2, patch_rows=12, stem=(4, 6, 8)),
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
    rows, columns = config.patches.shape
    assert hidden.shape == (2, first + (12 // rows) * (12 // columns), 16)
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
        nn.init.zeros_(model.position_embeddings.table.weight[model.position_embeddings.first :].detach())
        close(model(pixels), model(turned))


@pytest.mark.parametrize("stem", [(), (4, 6, 8), (5,)])
def test_patches_of_more_rows_than_columns(stem: tuple[int, ...]) -> None:
    """Each is read alone, row by row, where no convolution sees beyond it; and a row of pixels that fills none is left
    out."""
    config = PatchesConfig(size=(16, 12), patch=4, patch_rows=8, stem=stem)
    assert (config.shape, config.grid, config.grid_of((30, 9))) == ((8, 4), (2, 3), (3, 2))
    patches, pixels = Patches(6, config), torch.randn(2, 3, 17, 12)
    x, grid = patches(pixels)
    assert (x.shape, grid) == ((2, 6, 6), (2, 3))
    close(x, patches(pixels[:, :, :16])[0])
    if not stem:
        close(x[:, 5], patches(pixels[:, :, 8:16, 8:12])[0][:, 0])
        close(x[:, 5], pixels[:, :, 8:16, 8:12].flatten(1) @ patches.map.weight.flatten(1).mT + patches.map.bias)
    with pytest.raises(InputError, match="a picture of 7 x 12 pixels has no patch of 8 x 4"):
        patches(pixels[:, :, :7])


@pytest.mark.parametrize(
    ("patch", "patch_rows", "strides"),
    [(8, None, [(2, 2), (2, 2), (2, 2)]), (4, None, [(1, 1), (2, 2), (2, 2)]), (2, 12, [(1, 1), (2, 1), (2, 2)])],
)
def test_convolutions_halve_rows_and_columns_as_patches_allow(
    patch: int, patch_rows: int | None, strides: list[tuple[int, int]]
) -> None:
    patches = Patches(6, PatchesConfig(size=(24, 24), patch=patch, patch_rows=patch_rows, stem=(4, 6, 8)))
    assert [layer.stride for layer in patches.stem if isinstance(layer, nn.Conv2d)] == strides


@pytest.mark.parametrize(("patch", "patch_rows"), [(4, 0), (0, 4), (4, 13), (13, 4)])
def test_a_patch_is_within_the_picture(patch: int, patch_rows: int) -> None:
    with pytest.raises(InputError, match=rf"pictures of \(12, 12\) pixels in patches of {patch_rows} x {patch}"):
        PatchesConfig(size=(12, 12), patch=patch, patch_rows=patch_rows)


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
