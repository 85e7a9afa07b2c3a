"""One block and a stack of them: the formulas by hand, and two laws: padding never changes what is valid, and
nothing comes from the future."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.core.attention import AttentionConfig
from heedful.core.block import ACTIVATIONS, MLP, Block, BlockConfig, Context, Memory, Residual, Stack, StackConfig
from heedful.core.mask import EVERYONE, Mask
from heedful.core.norm import make_norm
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from loud import make_loud

B, T, S, C, H = 3, 6, 5, 16, 4
ORDERS = ["post", "pre", "sandwich"]
POSITIONS = ["none", "rotary", "alibi", "buckets", "shaw"]


def config(order: str = "pre", position: str = "none", cross: bool = False, **more: object) -> BlockConfig:
    scheme = PositionConfig(kind=position, buckets=8, furthest=20)
    attention = AttentionConfig(n_heads=H, position=scheme)
    other = AttentionConfig(n_heads=H) if cross else None
    return BlockConfig(attention=attention, cross=other, d_ff=24, order=order, **more)


def stack(order: str = "pre", position: str = "none", cross: bool = False) -> Stack:
    return make_loud(Stack(C, StackConfig(n_layers=2, block=config(order, position, cross), final_norm=True)))


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """Layer normalisation (Ba et al. 2016), spelled out."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


@pytest.mark.parametrize("order", ORDERS)
def test_where_the_norms_stand(order: str) -> None:
    residual, x, inner = make_loud(Residual(C, config(order, norm_eps=0.1))), torch.randn(B, T, C), nn.Linear(C, C)
    out = residual(x, inner)
    match order:
        case "post":
            expected = normed(residual.out_norm, x + inner(x))
        case "pre":
            expected = x + inner(normed(residual.in_norm, x))
        case "sandwich":
            expected = x + normed(residual.branch_norm, inner(normed(residual.in_norm, x)))
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    norms = [module for module in residual.modules() if isinstance(module, nn.LayerNorm)]
    assert len(norms) == {"post": 1, "pre": 1, "sandwich": 2}[order]


def test_norms_are_of_the_kind_and_size_asked_for() -> None:
    x = torch.randn(B, T, C)
    rms = make_norm("rms", C, 0.1)
    assert rms.eps == 0.1
    torch.testing.assert_close(rms(x), x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt())
    assert make_norm("layer", C, 0.1).eps == 0.1
    offset = make_norm("rms_offset", C, 0.1)
    nn.init.normal_(offset.weight)
    torch.testing.assert_close(offset(x), rms(x) * (1 + offset.weight))


@pytest.mark.parametrize("cross", [False, True])
def test_a_block_is_attention_then_memory_then_mlp(cross: bool) -> None:
    """Post-norm, as in figure 1 of Vaswani et al. 2017, from its parts."""
    block, x, memory = make_loud(Block(C, config("post", cross=cross))), torch.randn(B, T, C), torch.randn(B, S, C)
    mask, memory_mask = Mask(causal=True), Mask(valid=torch.arange(S) < torch.tensor([[5], [2], [3]]))
    out, cache = block(x, Context(mask=mask, memory=Memory(memory, memory_mask)))
    y = x + block.self_attention(block.self_attention.queries(x), block.self_attention.keys_values(x), mask=mask)
    y = normed(block.self_residual.out_norm, y)
    if cross:
        y = y + block.cross_attention(
            block.cross_attention.queries(y), block.cross_attention.keys_values(memory), mask=memory_mask
        )
        y = normed(block.cross_residual.out_norm, y)
    y = normed(block.mlp_residual.out_norm, y + block.mlp(y))
    torch.testing.assert_close(out, y, rtol=1e-5, atol=1e-5)
    assert cache is None


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_mlp_by_hand(activation: str) -> None:
    x = torch.randn(B, T, C)
    formulas = {
        "relu": lambda y: y.clamp(min=0),
        "gelu": lambda y: y * 0.5 * (1 + torch.erf(y / 2**0.5)),
        "gelu_tanh": lambda y: y * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y**3))),
        "quick_gelu": lambda y: y / (1 + (-1.702 * y).exp()),
        "silu": lambda y: y / (1 + (-y).exp()),
    }
    plain = MLP(C, config(activation=activation))
    expected = plain.down(formulas[activation](plain.up(x)))
    torch.testing.assert_close(plain(x), expected, rtol=1e-5, atol=1e-5)
    gated = MLP(C, config(activation=activation, gated=True, bias=False))
    expected = gated.down(formulas[activation](gated.gate(x)) * gated.up(x))
    torch.testing.assert_close(gated(x), expected, rtol=1e-5, atol=1e-5)
    assert all(linear.bias is None for linear in (gated.up, gated.gate, gated.down))


def test_a_stack_is_its_blocks_and_a_final_norm() -> None:
    layers, x = stack(), torch.randn(B, T, C)
    context = Context(mask=Mask(causal=True))
    y = x
    for block in layers.blocks:
        y, _ = block(y, context)
    torch.testing.assert_close(layers(x, context), normed(layers.norm, y), rtol=1e-5, atol=1e-5)
    bare = Stack(C, StackConfig(n_layers=1, block=config()))
    assert not any(name.startswith("norm") for name, _ in bare.named_parameters())


def test_a_shared_position_bias_is_given_to_every_block() -> None:
    scheme = PositionConfig(kind="buckets", buckets=8, furthest=20)
    shared = make_loud(Stack(C, StackConfig(n_layers=2, block=config(), shared_position=scheme)))
    x, places = torch.randn(B, T, C), torch.arange(T)[None]
    own = Stack(C, StackConfig(n_layers=2, block=config(position="buckets")))
    weights = shared.state_dict()
    table = weights.pop("position.table.weight")
    own.load_state_dict(weights | {f"blocks.{i}.self_attention.position.table.weight": table for i in range(2)})
    context = Context(mask=EVERYONE, positions=places)
    torch.testing.assert_close(shared(x, context), own(x, context))


@pytest.mark.parametrize("kind", ["rotary", "added", "shaw"])
def test_only_a_bias_can_be_shared(kind: str) -> None:
    with pytest.raises(InputError, match=f"cannot share the position scheme '{kind}'"):
        Stack(C, StackConfig(n_layers=1, block=config(), shared_position=PositionConfig(kind=kind)))


def test_a_shared_position_needs_positions() -> None:
    layers = Stack(C, StackConfig(n_layers=1, block=config(), shared_position=PositionConfig(kind="alibi")))
    with pytest.raises(InputError, match="relative positions need"):
        layers(torch.randn(B, T, C), Context(mask=EVERYONE))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_padding_never_changes_what_is_valid(order: str, position: str) -> None:
    """Neither what stands in the padding, nor how much of it there is, in the input or in the memory."""
    layers, x, memory = stack(order, position, cross=True), torch.randn(1, 4, C), torch.randn(1, 3, C)

    def run(places: int, memory_places: int) -> Tensor:
        padded = torch.cat([x, 9 * torch.randn(1, places - 4, C)], 1)
        padded_memory = torch.cat([memory, 9 * torch.randn(1, memory_places - 3, C)], 1)
        context = Context(
            mask=Mask(valid=torch.arange(places)[None] < 4),
            positions=torch.arange(places)[None],
            memory=Memory(padded_memory, Mask(valid=torch.arange(memory_places)[None] < 3)),
        )
        return layers(padded, context)[:, :4]

    alone = run(4, 3)
    for sizes in ((4, 5), (6, 3), (9, 8)):
        torch.testing.assert_close(run(*sizes), alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_nothing_comes_from_the_future(order: str, position: str) -> None:
    """The gradient of output i by input j is exactly 0 where j > i, and is not 0 elsewhere."""
    layers, x = stack(order, position, cross=True), torch.randn(1, T, C, requires_grad=True)
    context = Context(
        mask=Mask(causal=True), memory=Memory(torch.randn(1, S, C), EVERYONE), positions=torch.arange(T)[None]
    )
    out = layers(x, context)
    pull = torch.randn(C)
    for i in range(T):
        (gradient,) = torch.autograd.grad(out[0, i] @ pull, x, retain_graph=True)
        assert (gradient[0, i + 1 :] == 0).all()
        assert (gradient[0, : i + 1] != 0).any(-1).all()


def test_segments_in_one_row_are_as_if_alone() -> None:
    layers, x = stack("post", "rotary"), torch.randn(1, T, C)
    segments = torch.tensor([[1, 1, 2, 2, 2, 0]])
    at = torch.tensor([[0, 1, 0, 1, 2, 0]])
    packed = layers(x, Context(mask=Mask(causal=True, segments=(segments, segments)), positions=at))
    for places in (slice(0, 2), slice(2, 5)):
        alone = layers(x[:, places], Context(mask=Mask(causal=True), positions=at[:, places]))
        torch.testing.assert_close(packed[:, places], alone, rtol=1e-5, atol=1e-5)


def test_a_row_of_padding_stays_finite() -> None:
    layers, x = stack("post"), torch.randn(2, T, C, requires_grad=True)
    out = layers(x, Context(mask=Mask(valid=torch.tensor([[True], [False]]).expand(2, T))))
    assert out.isfinite().all()
    assert torch.autograd.grad(out.sum(), x)[0].isfinite().all()


def test_rows_of_a_batch_do_not_meet() -> None:
    layers, x, memory = stack(cross=True), torch.randn(B, T, C), torch.randn(B, S, C)
    together = layers(x, Context(mask=Mask(causal=True), memory=Memory(memory, EVERYONE)))
    for b in range(B):
        alone = layers(x[b : b + 1], Context(mask=Mask(causal=True), memory=Memory(memory[b : b + 1], EVERYONE)))
        torch.testing.assert_close(together[b : b + 1], alone, rtol=1e-5, atol=1e-5)


def test_positions_of_the_memory_reach_its_keys() -> None:
    """Rotary cross-attention sees how far a memory token stands from the query, and nothing else of where."""
    block = config()
    block = dataclasses.replace(block, cross=AttentionConfig(n_heads=H, position=PositionConfig(kind="rotary")))
    layers, x, memory = (
        make_loud(Stack(C, StackConfig(n_layers=1, block=block))),
        torch.randn(B, T, C),
        torch.randn(B, S, C),
    )

    def run(first: int, memory_first: int) -> Tensor:
        places, memory_places = torch.arange(T)[None] + first, torch.arange(S)[None] + memory_first
        context = Context(mask=EVERYONE, memory=Memory(memory, EVERYONE, memory_places), positions=places)
        return layers(x, context)

    torch.testing.assert_close(run(3, 3), run(0, 0), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(run(3, 0), run(0, 0), rtol=1e-2, atol=1e-2)


def test_dropout_of_a_branch_is_for_training() -> None:
    residual, x = Residual(C, config(dropout=0.5)), torch.randn(B, T, C)
    dropped = residual(x, torch.ones_like) - x
    assert set(dropped.unique().round(decimals=3).tolist()) == {0.0, 2.0}
    torch.testing.assert_close(residual.eval()(x, torch.ones_like), x + 1)


@pytest.mark.parametrize("gated", [False, True])
def test_dropout_inside_the_mlp_is_before_its_last_map(gated: bool) -> None:
    mlp, x = make_loud(MLP(C, config(mlp_dropout=0.5, gated=gated))), torch.randn(B, T, C)
    inner: list[Tensor] = []
    mlp.down.register_forward_hook(lambda module, inputs, out: inner.append(inputs[0]))
    mlp.eval()(x)
    mlp.train()(x)
    plain, dropped = inner
    kept = dropped != 0
    assert 0.2 < ((plain != 0) & ~kept).float().mean() / (plain != 0).float().mean() < 0.8
    torch.testing.assert_close(dropped[kept], 2 * plain[kept])


def test_dropout_of_a_stack_is_after_its_norm() -> None:
    layers = make_loud(Stack(C, StackConfig(n_layers=1, block=config(), final_norm=True, dropout=0.5)))
    x, context = torch.randn(B, T, C), Context(mask=EVERYONE)
    plain, dropped = layers.eval()(x, context), layers.train()(x, context)
    assert 0.2 < (dropped == 0).float().mean() < 0.8
    torch.testing.assert_close(dropped, torch.where(dropped == 0, dropped, 2 * plain))


def test_activations_are_those_of_torch() -> None:
    x = torch.linspace(-4, 4, 99)
    named = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": nn.GELU("tanh"), "silu": F.silu}
    assert all(torch.equal(ACTIVATIONS[name](x), function(x)) for name, function in named.items())
    assert {*named, "quick_gelu"} == set(ACTIVATIONS)  # which torch has no name for
