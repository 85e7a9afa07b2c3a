"""DETR's own laws; against Hugging Face's it stands in tests/parity."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.core.embed import sinusoidal_2d
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import config_of, model_from
from heedful.models.detr import DETR, grid_embeddings
from heedful.models.resnet import ResNetConfig
from heedful.models.vision_presets import DetrSize, detr_config

ROW = DetrSize(
    backbone=ResNetConfig(widths=(8, 16), depths=(1, 1), kind="basic", stem=8, norm="group"),
    d_model=16,
    n_heads=2,
    d_ff=24,
    encoder_layers=1,
    decoder_layers=2,
    n_queries=5,
    n_classes=3,
    dropout=0.0,
)


@pytest.fixture
def model() -> DETR:
    return DETR(detr_config(ROW)).eval()


def test_what_is_found_has_its_shapes(model: DETR) -> None:
    found = model(torch.randn(2, 3, 40, 56))
    assert found.logits.shape == (2, 2, 5, 4)
    assert found.boxes.shape == (2, 2, 5, 4)
    assert (found.boxes > 0).all()
    assert (found.boxes < 1).all()


def test_a_batch_is_its_pictures(model: DETR) -> None:
    pixels, valid = torch.randn(3, 3, 40, 56), torch.ones(3, 40, 56, dtype=torch.bool)
    valid[1, 20:], valid[2, :, 30:] = False, False
    whole = model(pixels, valid)
    for i in range(3):
        one = model(pixels[i : i + 1], valid[i : i + 1])
        torch.testing.assert_close(one.logits[:, 0], whole.logits[:, i], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(one.boxes[:, 0], whole.boxes[:, i], rtol=1e-4, atol=1e-5)


def test_nobody_looks_at_padding(model: DETR) -> None:
    """Features of padding are what they like: none arrives. (A convolution at a picture's edge does reach over it.)"""
    pixels, valid = torch.randn(1, 3, 32, 64), torch.ones(1, 32, 64, dtype=torch.bool)
    valid[:, :, 40:] = False
    features = model.backbone(pixels)
    _, own, _ = model.encode(pixels, valid)
    own = own.reshape(1, 4, 8)
    assert own.sum() == 4 * 5
    loud = torch.where(own[:, None], features, torch.randn_like(features) * 100)
    found = []
    for given in (features, loud):
        model.backbone.forward = lambda _, given=given: given
        found.append(model(pixels, valid))
    torch.testing.assert_close(found[0].logits, found[1].logits)
    assert not torch.allclose(model(pixels).logits, found[0].logits, atol=1e-3)


def test_places_end_at_a_full_turn_whatever_the_picture_s_size() -> None:
    valid = torch.zeros(2, 4, 6, dtype=torch.bool)
    valid[0], valid[1, :3, :2] = True, True
    at = grid_embeddings(valid, 8).reshape(2, 4, 6, 8)
    turn = torch.tensor([2 * math.pi], dtype=torch.float64)
    last = sinusoidal_2d(turn, turn, 8)[0]
    for own in (at[0, 3, 5], at[1, 2, 1]):
        torch.testing.assert_close(own, last, rtol=0, atol=1e-5)
    torch.testing.assert_close(at[0, 1, 2], sinusoidal_2d(turn / 2, turn / 2, 8)[0], rtol=0, atol=1e-5)


def test_queries_are_a_set(model: DETR) -> None:
    pixels, order = torch.randn(1, 3, 32, 32), torch.tensor([3, 1, 4, 0, 2])
    before = model(pixels)
    with torch.no_grad():
        model.queries.weight.copy_(model.queries.weight[order])
    after = model(pixels)
    torch.testing.assert_close(after.boxes, before.boxes[:, :, order], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(after.logits, before.logits[:, :, order], rtol=1e-4, atol=1e-5)


def test_where_a_query_looks_can_be_seen(model: DETR) -> None:
    valid = torch.ones(1, 32, 64, dtype=torch.bool)
    valid[:, :, 40:] = False
    with record(model, "decoder.*.cross_attention") as recording:
        model(torch.randn(1, 3, 32, 64), valid)
    weights = recording.weights("decoder.blocks.1.cross_attention").reshape(1, 2, 5, 4, 8)
    assert (weights[..., 5:] == 0).all()
    torch.testing.assert_close(weights.sum((-2, -1)), torch.ones(1, 2, 5))


def test_every_weight_that_learns_gets_a_gradient(model: DETR) -> None:
    found = model(torch.randn(2, 3, 40, 56))
    (found.logits.square().sum() + found.boxes.square().sum()).backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert still == []
    frozen = DETR(detr_config(replace(ROW, backbone=replace(ROW.backbone, norm="batch"))))
    stands = {name.rsplit(".", 2)[1] for name, weight in frozen.named_parameters() if not weight.requires_grad}
    assert stands == {"norm"}


def test_as_a_file(model: DETR) -> None:
    assert model_from(config_of(model)).config == model.config


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_places_must_be_added(part: str) -> None:
    config = detr_config(ROW)
    side = "decoder" if part == "cross" else part
    stack = getattr(config, side)
    attention = replace(stack.block.attention, position=replace(stack.block.attention.position, kind="none"))
    block = replace(stack.block, **{"cross" if part == "cross" else "attention": attention})
    with pytest.raises(InputError, match=f"{part}: object queries need added positions"):
        DETR(replace(config, **{side: replace(stack, block=block)}))
    with pytest.raises(InputError, match="cross: a query is told"):
        DETR(replace(config, decoder=replace(config.decoder, block=replace(config.decoder.block, cross=None))))


def test_one_scheme_of_places_is_enough() -> None:
    config = detr_config(ROW)
    shared = replace(config.decoder, shared_position=PositionConfig(kind="buckets"))
    with pytest.raises(InputError, match="a position bias that blocks share"):
        DETR(replace(config, decoder=shared))


def test_a_full_residual_network_has_a_place_for_32_pixels() -> None:
    with torch.device("meta"):
        model = DETR(detr_config(DetrSize(backbone=ResNetConfig(), encoder_layers=1, decoder_layers=1)))
        assert model.backbone(torch.empty(1, 3, 64, 96)).shape == (1, 2048, 2, 3)
    assert isinstance(model.encoder.norm, nn.Identity)
    assert isinstance(model.decoder.norm, nn.LayerNorm)
