"""A residual network as what DETR reads; against Hugging Face's it stands in tests/parity/test_detr.py."""

import pytest
import torch
from torch import nn

from heedful.models.resnet import BatchNorm, ResNet, ResNetConfig, make_map_norm

SMALL = ResNetConfig(widths=(8, 16), depths=(1, 2), kind="basic", stem=4, norm="group")


def test_fixed_statistics_are_those_of_batch_normalization() -> None:
    theirs, ours, x = nn.BatchNorm2d(6).eval(), BatchNorm(6, learned=True), torch.randn(2, 6, 3, 5)
    values = [torch.randn(6), torch.randn(6), torch.randn(6), torch.rand(6) + 0.5]
    for tensors in (
        (theirs.weight, theirs.bias, theirs.running_mean, theirs.running_var),
        (ours.weight, ours.bias, ours.mean, ours.variance),
    ):
        for tensor, value in zip(tensors, values, strict=True):
            tensor.data.copy_(value)
    torch.testing.assert_close(ours.train()(x), theirs(x))
    assert torch.equal(ours.mean, values[2])


@pytest.mark.parametrize(("learned", "names"), [(True, {"weight", "bias"}), (False, set())])
def test_what_of_a_norm_learns(learned: bool, names: set[str]) -> None:
    norm = BatchNorm(6, learned=learned)
    assert {name for name, weight in norm.named_parameters() if weight.requires_grad} == names
    assert set(norm.state_dict()) == {"weight", "bias", "mean", "variance"}


def test_groups_are_of_many_channels_and_divide_them() -> None:
    assert [make_map_norm("group", C).num_groups for C in (64, 48, 40, 50, 10)] == [4, 3, 2, 1, 1]


@pytest.mark.parametrize("kind", ["basic", "bottleneck"])
@pytest.mark.parametrize("norm", ["batch", "group"])
def test_a_batch_is_its_pictures_also_in_training(kind: str, norm: str) -> None:
    model = ResNet(ResNetConfig(widths=(8, 16), depths=(1, 2), kind=kind, stem=4, norm=norm)).train()
    pixels = torch.randn(3, 3, 32, 47)
    whole = model(pixels)
    assert whole.shape == (3, 16, 4, 6)
    torch.testing.assert_close(whole, torch.cat([model(one[None]) for one in pixels]), rtol=1e-4, atol=1e-4)


def test_a_map_keeps_its_size_at_the_begin() -> None:
    """He et al. 2015: what comes in with variance 1 goes through many maps without dying or growing beyond measure."""
    model = ResNet(ResNetConfig(widths=(32, 64), depths=(4, 4), stem=32))
    out = model(torch.randn(2, 3, 64, 64)).detach()
    assert 0.1 < float(out.std()) < 100
