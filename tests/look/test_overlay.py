"""Attention over pictures: the rollout by hand, overlays where the weights are, and a page that runs nothing."""

import re

import pytest
import torch

from heedful.look.draw import to_bytes
from heedful.look.overlay import Maps, heat_overlay, picture_page, rollout, sheet


def test_a_rollout_by_hand():
    one = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])  # mean: even
    two = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    first = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    second = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    torch.testing.assert_close(rollout([one, two]), second @ first)
    last = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])  # the order of layers counts
    torch.testing.assert_close(rollout([one, last]), torch.tensor([[0.5, 0.5], [0.0, 1.0]]) @ first)
    attention = torch.rand(4, 3, 7, 7).softmax(-1)
    torch.testing.assert_close(rollout([*attention]).sum(1), torch.ones(7))


def test_an_overlay_is_bright_where_the_weights_are():
    picture, weights = torch.zeros(1, 16, 24, dtype=torch.uint8), torch.zeros(4, 6)
    weights[1, 4] = 0.3
    drawn = heat_overlay(picture, weights).float().sum(0)
    assert drawn.shape == (96, 144)
    assert divmod(int(drawn.argmax()), 144)[0] // 24 == 1
    assert divmod(int(drawn.argmax()), 144)[1] // 24 == 4
    assert not drawn[72:].any()
    assert heat_overlay(torch.zeros(3, 300, 300, dtype=torch.uint8), weights).shape == (3, 300, 300)


@pytest.mark.parametrize("channels", [1, 3])
def test_all_maps_are_shown(channels):
    heads = torch.rand(3, 2, 2)
    layers = {"stack.blocks.0.self_attention": heads, "stack.blocks.1.self_attention": heads}
    maps = Maps(torch.zeros(channels, 8, 8, dtype=torch.uint8), layers, heads[0])
    page = picture_page(maps, title="<script>alert(1)</script>", said=[("<b>", 0.5)])
    assert page.count("<img") == 2 + 2 * 4
    assert "<script" not in page
    assert "color-scheme: light dark" in page
    assert "width=device-width" in page
    assert "<b>" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert to_bytes(sheet(maps, title="$x$"), "png") == to_bytes(sheet(maps, title="$x$"), "png")
