"""How weights begin: every scheme sets everything, to what its paper says."""

import math

import pytest
import torch
from torch import nn

from heedful.core import init
from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, Stack, StackConfig
from heedful.core.norm import OffsetRMSNorm
from heedful.core.position import PositionConfig

C, LAYERS, V = 64, 3, 500


class Model(nn.Module):
    def __init__(self, norm: str, shared: PositionConfig | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(V, C)
        attention = AttentionConfig(n_heads=4)
        block = BlockConfig(attention=attention, cross=attention, d_ff=4 * C, norm=norm, order="pre")
        position = shared or PositionConfig()
        self.stack = Stack(C, StackConfig(n_layers=LAYERS, block=block, final_norm=True, shared_position=position))
        for weight in self.parameters():
            nn.init.constant_(weight, 77.0)  # what no scheme leaves behind


def check(model: Model, linear: dict[str, float], embedding: float) -> None:
    """`linear`: the standard deviation for names that end so; "" for the others."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            std = next(value for end, value in linear.items() if name.endswith(end))
            if math.isnan(std):
                std = math.sqrt(2 / sum(module.weight.shape))
            assert float(module.weight.detach().std()) == pytest.approx(std, rel=0.05), name
            assert abs(float(module.weight.detach().mean())) < std / 10
            assert (module.bias == 0).all()
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            assert (module.weight == (0 if isinstance(module, OffsetRMSNorm) else 1)).all()
            assert not isinstance(module, nn.LayerNorm) or (module.bias == 0).all()
    assert float(model.tokens.weight.detach().std()) == pytest.approx(embedding, rel=0.05)
    assert not any((weight == 77).any() for weight in model.parameters())


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_xavier(norm: str) -> None:
    model = Model(norm)
    init.xavier(model)
    check(model, {"": math.nan}, C**-0.5)
    up = model.stack.blocks[0].mlp.up.weight.detach()
    bound = math.sqrt(6 / sum(up.shape))
    assert 0.99 * bound < float(up.abs().max()) <= bound


@pytest.mark.parametrize("norm", ["layer", "rms", "rms_offset"])
def test_normal(norm: str) -> None:
    model = Model(norm)
    init.normal(model)
    check(model, {"": 0.02}, 0.02)
    init.normal(model, std=0.1)
    check(model, {"": 0.1}, 0.1)


def test_gpt2_makes_what_ends_a_branch_smaller() -> None:
    model = Model("layer")
    init.gpt2(model, n_layers=LAYERS)
    small = 0.02 / math.sqrt(2 * LAYERS)
    check(model, {"self_attention.out": small, "mlp.down": small, "": 0.02}, 0.02)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_t5(norm: str) -> None:
    """A linear map keeps the size of what goes in, and the product of a query and a key is of size 1."""
    model = Model(norm, shared=PositionConfig(kind="buckets"))
    init.t5(model, d_model=C)
    check(model, {"attention.query": (C * 16) ** -0.5, "mlp.down": (4 * C) ** -0.5, "": C**-0.5}, 1.0)
    assert float(model.stack.position.table.weight.detach().std()) == pytest.approx(C**-0.5, rel=0.1)
    attention, x = model.stack.blocks[0].self_attention, torch.randn(4, 200, C)
    query, key = (part(x).unflatten(-1, (4, 16)).transpose(1, 2) for part in (attention.query, attention.key))
    assert float((query @ key.mT).detach().std()) == pytest.approx(1.0, rel=0.1)


def test_a_matrix_without_bias_or_weight() -> None:
    model = nn.Sequential(
        nn.Linear(3, 4, bias=False), nn.LayerNorm(4, elementwise_affine=False), nn.LayerNorm(4, bias=False)
    )
    nn.init.constant_(model[0].weight, 77.0)
    init.xavier(model)
    assert float(model[0].weight.detach().abs().max()) <= math.sqrt(6 / 7)


def test_a_convolution_is_a_linear_map() -> None:
    model = nn.Sequential(nn.Conv2d(30, 50, 4), nn.GroupNorm(2, 50))
    for weight in model.parameters():
        nn.init.constant_(weight, 77.0)
    init.normal(model, std=0.1)
    assert float(model[0].weight.detach().std()) == pytest.approx(0.1, rel=0.05)
    init.xavier(model)
    assert float(model[0].weight.detach().std()) == pytest.approx(math.sqrt(2 / ((30 + 50) * 16)), rel=0.05)
    assert (model[0].bias == 0).all()
    assert (model[1].weight == 1).all()
    assert (model[1].bias == 0).all()


def test_a_seed_makes_it_again() -> None:
    first, second = Model("layer"), Model("layer")
    for model in (first, second):
        torch.manual_seed(3)
        init.xavier(model)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_he_keeps_what_leaves_a_convolution_as_large_as_what_enters() -> None:
    """In the mean of its gradient, by fan out: 2 / (kernel * outputs), which each group has for itself."""
    wide, grouped = nn.Conv2d(40, 60, 3), nn.Conv2d(60, 60, 5, groups=60)
    untouched = nn.Linear(3, 3)
    before = untouched.weight.detach().clone()
    init.he(nn.Sequential(wide, grouped, untouched))
    assert float(wide.weight.detach().std()) == pytest.approx(math.sqrt(2 / (9 * 60)), rel=0.05)
    assert float(grouped.weight.detach().std()) == pytest.approx(math.sqrt(2 / 25), rel=0.05)
    assert (wide.bias == 0).all()
    assert torch.equal(untouched.weight, before)
