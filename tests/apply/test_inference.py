"""Linear maps for inference: the same numbers by another kernel; in fewer bits as near as their steps allow, alone as
together, and swapped everywhere but in embeddings."""

import copy
import itertools
import math
import platform
import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.apply import inference
from heedful.apply.inference import (
    FEWEST_ROWS_FOR_MKL,
    Float32Linear,
    Int4Linear,
    Int8Linear,
    JointPart,
    PackedLinear,
    QuickRMSNorm,
    draft_model,
    for_inference,
)
from heedful.core.attention import Attention, AttentionConfig
from heedful.core.block import Block, BlockConfig
from heedful.core.kernels import onednn_knows
from heedful.core.norm import OffsetRMSNorm
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models.detr import DETR
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config
from heedful.models.vision_presets import DETECTORS, detr_config
from heedful.run.folder import parameters

GPT = LMSize(n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=24)
LLAMA = LMSize(style="llama", n_layers=2, d_model=64, n_heads=4, kv_heads=2, d_ff=96, vocab_size=50, context_length=24)
WIDE = LMSize(n_layers=2, d_model=512, n_heads=8, vocab_size=600, context_length=24)


def linear(K: int, N: int, bias: bool = True) -> nn.Linear:
    made = nn.Linear(K, N, bias=bias)
    nn.init.normal_(made.weight, std=0.4)
    return made


@pytest.mark.parametrize("kind", [Float32Linear, PackedLinear])
@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3), (1, 1), (0,), (40, 10)])
@pytest.mark.parametrize(("K", "N"), [(20, 37), (400, 501), (400, 500), (1024, 1024)])
@pytest.mark.parametrize("bias", [False, True])
def test_thirty_two_bits(kind: type[Float32Linear], shape: tuple[int, ...], K: int, N: int, bias: bool) -> None:
    """The same in value and in the gradient of what comes in, by the same numbers."""
    full = linear(K, N, bias)
    full.weight.data.mul_(min(1.0, 8 * K**-0.5))  # what comes out is of the same size for all
    weight = full.weight.detach().clone()
    made, x = kind(full), torch.randn(*shape, K)
    with torch.inference_mode():
        expected = nn.functional.linear(x, weight, full.bias)
        torch.testing.assert_close(made(x), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(made(x.mT.contiguous().mT), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(made(x), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(made(x), expected) or getattr(made, "twice", False), "but for another layout, to the last bit"
    assert torch.equal(made.weight.to_dense(), weight)
    assert made.weight.shape == weight.shape
    assert made.weight.is_mkldnn == (kind is PackedLinear and K == 1024), "small ones are kept as they are too"
    assert made.bias is full.bias
    x.requires_grad_()
    one = torch.autograd.grad(made(x).square().sum(), x)[0]
    other = torch.autograd.grad(nn.functional.linear(x, weight, full.bias).square().sum(), x)[0]
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * other.abs().amax().item() if len(other) else 0.0)
    assert torch.equal(one, other) or getattr(made, "twice", False)


def test_what_is_not_fixed_keeps_its_parameters() -> None:
    full = linear(600, 500)
    made = for_inference(nn.Sequential(full), fixed=False)[0]
    assert made.weight is full.weight
    x = torch.randn(40, 600)
    with torch.inference_mode():
        before = made(x)
        full.weight.mul_(2)
        full.bias.mul_(2)
        torch.testing.assert_close(made(x), 2 * before)
    (one,), (other,) = (torch.autograd.grad(m(x).square().sum(), m.weight) for m in (made, full))
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("fixed", "rows", "size", "other"),
    [
        (True, 1, 2200, True),
        (True, 40, 2200, True),
        (False, 40, 2200, True),
        (True, 40, 600, True),
        (True, 1, 600, False),
        (True, 1, 100, False),
        (True, 50, 100, True),
    ],
)
def test_the_kernel_of_thirty_two_bits_is_another(fixed: bool, rows: int, size: int, other: bool) -> None:
    """Else the swap would be for nothing; but one row of small weights has torch's own."""
    made = for_inference(nn.Sequential(linear(size, 500)), fixed=fixed)
    assert isinstance(made[0], PackedLinear) == (fixed and size > 100), "tiny ones are not worth the layout"
    assert made[0].weight.is_mkldnn == (fixed and size == 2200), "small ones are kept as they are too"
    with torch.profiler.profile() as seen, torch.no_grad():
        made(torch.randn(rows, size))
    names = {event.key for event in seen.key_averages()}
    assert ("mkldnn::_linear_pointwise" in names) == other
    assert ("aten::linear" in names) != other


@pytest.mark.parametrize("avx2", [False, True])
@pytest.mark.parametrize("size", [600, 2200])
@pytest.mark.parametrize("rows", [FEWEST_ROWS_FOR_MKL - 1, FEWEST_ROWS_FOR_MKL])
@pytest.mark.parametrize("fixed", [False, True])
def test_many_rows_are_for_mkl_without_avx512(
    fixed: bool, rows: int, size: int, avx2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "AVX2", avx2)
    full, x = linear(size, 500), torch.randn(rows, size)
    expected = full(x).detach()
    made = for_inference(nn.Sequential(full), fixed=fixed)
    with torch.profiler.profile() as seen, torch.no_grad():
        torch.testing.assert_close(made(x), expected, rtol=1e-5, atol=1e-4)
    names = {event.key for event in seen.key_averages()}
    assert ("mkldnn::_linear_pointwise" in names) != (avx2 and rows == FEWEST_ROWS_FOR_MKL)


@pytest.mark.parametrize("known", [False, True])
def test_bfloat16_is_laid_out_where_the_processor_knows_it(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "onednn_knows", lambda dtype: known and onednn_knows(dtype))
    full = linear(600, 500).bfloat16()
    x = torch.randn(3, 600).bfloat16()
    made = for_inference(nn.Sequential(copy.deepcopy(full)))
    assert made[0].weight.is_mkldnn == (known and onednn_knows(torch.bfloat16))
    with torch.no_grad():
        torch.testing.assert_close(made(x), full(x))


@pytest.fixture
def threads() -> Iterator[None]:
    """A test may choose how many there are."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize(("K", "N"), [(400, 500), (500, 402), (300, 301)])
@pytest.mark.parametrize("bias", [False, True])
def test_one_row_is_shared_by_threads(count: int, K: int, N: int, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each multiplies a part of the weights, in either layout of them, and the products are the same."""
    full, x = linear(K, N, bias), torch.randn(1, 1, K)
    torch.set_num_threads(count)
    for avx2 in (True, False):
        monkeypatch.setattr(inference, "AVX2", avx2)
        made = PackedLinear(full)
        with torch.inference_mode(), torch.profiler.profile() as told:
            torch.testing.assert_close(made(x), full(x), rtol=1e-5, atol=1e-4)
        divided = N if made.weight.is_contiguous() else K
        assert any(event.name == "aten::bmm" for event in told.events()) == (math.gcd(count, divided) > 1)


@pytest.mark.parametrize("kind", [nn.RMSNorm, OffsetRMSNorm])
@pytest.mark.parametrize("eps", [None, 1e-6, 0.5])
def test_root_mean_squares_by_fewer_operations(kind: type[nn.RMSNorm], eps: float | None) -> None:
    full = kind(24, eps=eps)
    nn.init.normal_(full.weight)
    made, x = QuickRMSNorm(full), torch.randn(2, 3, 24)
    x[0, 0], x[0, 1], x[1, 0, 3] = 0, 1e-4, torch.nan
    x.requires_grad_()
    with torch.no_grad():
        torch.testing.assert_close(made(x), full(x), equal_nan=True)
    (own,) = torch.autograd.grad(made(x).nansum(), x, retain_graph=True)
    (want,) = torch.autograd.grad(full(x).nansum(), x)
    torch.testing.assert_close(own, want, equal_nan=True)


@pytest.fixture(params=[True, False], ids=["vnni", "fbgemm"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of weights in eight bits: both kernels run on any x86."""
    monkeypatch.setattr(inference, "VNNI", request.param)
    return 127 if request.param or platform.machine() not in ("x86_64", "AMD64") else 63


@pytest.mark.parametrize(("K", "N", "bias"), [(32, 16, True), (64, 37, False), (96, 100, True), (20, 3, True)])
def test_eight_bits(K: int, N: int, bias: bool, steps: int) -> None:
    """What comes out is the product of the rounded numbers, and these are within half a step."""
    full = linear(K, N, bias)
    made, x = Int8Linear(full), torch.randn(5, 3, K)
    x[0, 0] = 0
    step = full.weight.detach().abs().amax(1, keepdim=True) / steps
    if steps == 127:
        assert made.weight.abs().amax(0).eq(127).all(), "all of the range is used"
        weight = made.weight.t() * made.scale[:, None] * 127
    else:
        weight = made(torch.eye(K)).T - (0 if made.bias is None else made.bias[:, None])
        weight = (weight / step).round() * step
        assert weight.abs().amax(1, keepdim=True).allclose(63 * step), "all of the range is used"
    assert ((weight - full.weight).abs() <= step * 0.501).all()
    peak = x.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    rounded = (x / peak * 127).round() * peak / 127
    expected = nn.functional.linear(
        rounded.double(), weight.double(), None if full.bias is None else full.bias.double()
    )
    torch.testing.assert_close(made(x).double(), expected, rtol=1e-5, atol=1e-5)
    error = (made(x) - full(x)).square().mean().sqrt() / full(x).square().mean().sqrt()
    assert 1e-4 < error < 0.02


def test_eight_bits_of_inputs_at_their_most(steps: int) -> None:
    """A kernel that adds up in 16 bits must not run over."""
    full = linear(256, 8, bias=False)
    full.weight.data.copy_(torch.ones(8, 256) * torch.tensor([1.0, -1.0] * 4)[:, None])
    x = torch.ones(3, 256)
    torch.testing.assert_close(Int8Linear(full)(x), full(x).detach(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(Int8Linear(full)(-x), full(-x).detach(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("K", "N", "bias"), [(32, 16, True), (64, 37, False), (96, 100, True)])
def test_four_bits(K: int, N: int, bias: bool) -> None:
    full = linear(K, N, bias)
    made, x = Int4Linear(full), torch.randn(5, 3, K)
    weight = made(torch.eye(K)).T - (0 if made.bias is None else made.bias[:, None])  # each weight, as it is read
    groups = full.weight.detach().unflatten(1, (-1, 32))
    step = (groups.amax(2) - groups.amin(2)) / 15
    assert ((weight - full.weight).unflatten(1, (-1, 32)).abs() <= step[:, :, None] * 0.6 + 0.01).all()
    assert len(weight[0, :32].unique()) > 8, "the range is used"
    error = (made(x) - full(x)).square().mean().sqrt() / full(x).square().mean().sqrt()
    assert 1e-3 < error < 0.12


@pytest.mark.parametrize("rows", [2, 7, 40])
def test_alone_is_together_to_the_last_bit(rows: int, steps: int) -> None:
    made, x = Int8Linear(linear(64, 37)), torch.randn(rows, 64)
    assert torch.equal(torch.cat([made(row[None]) for row in x]), made(x))


@pytest.mark.parametrize("row", [GPT, LLAMA, WIDE], ids=["gpt", "llama", "wide"])
@pytest.mark.parametrize(
    ("weights", "least", "most"), [("float32", 0.0, 1e-6), ("int8", 1e-3, 0.06), ("int4", 1e-2, 0.4)]
)
def test_a_model(row: LMSize, weights: str, least: float, most: float) -> None:
    full = LM(lm_config(row)).eval()
    for parameter in full.parameters():
        std = 0.2 if parameter.dim() == 1 else 1.2 * parameter.shape[-1] ** -0.5
        nn.init.normal_(parameter, mean=1.0 if parameter.dim() == 1 else 0.0, std=std)
    made = for_inference(for_inference(copy.deepcopy(full)), weights)  # as what was loaded is swapped again
    made = for_inference(made, weights)
    attention = made.stack.blocks[0].self_attention
    assert isinstance(attention.query, JointPart)
    assert row is not LLAMA or isinstance(made.stack.blocks[0].mlp.gate, JointPart)
    assert bool(list(attention.query.parameters())) == (weights == "float32"), "not twice in fewer bits"
    assert not any(type(module) is nn.Linear for module in made.modules())
    if weights == "float32":
        assert [name for name, _ in made.named_parameters()] == [name for name, _ in full.named_parameters()]
        assert all(torch.equal(value, full.get_parameter(name)) for name, value in parameters(made).items())
        packed = [name for name, module in made.named_modules() if isinstance(module, PackedLinear)]
        assert len(packed) == (7 if row is WIDE else 0)
        joint, parts = attention.query.joint.linear, (attention.query, attention.key, attention.value)
        assert isinstance(joint, PackedLinear) == (row is WIDE)
        assert joint.out_features == sum(len(part.weight) for part in parts)
        same = {part.weight.untyped_storage().data_ptr() for part in parts}
        assert same == {joint.weight.untyped_storage().data_ptr()}, "once, not twice"
        if row is not WIDE:
            assert (made.head.weight is made.embed.tokens.weight) == row.tied
    assert made.embed.tokens.weight.shape == full.embed.tokens.weight.shape
    tokens = torch.randint(0, row.vocab_size, (3, 20))
    with torch.inference_mode():
        expected, found = full(tokens), made(tokens)
        assert least <= (found - expected).square().mean().sqrt() / expected.square().mean().sqrt() < most
        state = made.start(tokens[:, :8])
        for t in range(8, 20):
            logits, state = made.step(tokens[:, t], state)
            whole = made(tokens[:, : t + 1])[:, -1]
            assert (logits - whole).abs().max() < 0.05 * whole.abs().max()


def test_what_was_joined_can_be_watched_and_copied() -> None:
    model = LM(lm_config(GPT)).eval()
    tokens = torch.randint(0, GPT.vocab_size, (1, 9))
    expected = model(tokens)
    for_inference(model)
    assert isinstance(model.stack.blocks[0].self_attention.query, JointPart)
    with record(model) as seen:
        assert torch.allclose(model(tokens), expected, atol=1e-5)
    assert [seen.weights(name).shape for name in seen.names] == [(1, 4, 9, 9)] * 2
    draft = draft_model(model, "int8")
    assert not torch.equal(draft(tokens), expected)
    assert torch.allclose(draft(tokens), expected, atol=0.1)
    assert torch.allclose(model(tokens), expected, atol=1e-5)


def test_joined_maps_are_asked_in_any_order() -> None:
    attention = Attention(16, AttentionConfig(n_heads=2))
    expected = {name: getattr(attention, name) for name in ("query", "key", "value")}
    x, y = torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    want = {(name, id(z)): linear(z).detach() for name, linear in expected.items() for z in (x, y)}
    block = Block(16, BlockConfig(d_ff=16, attention=AttentionConfig(n_heads=2)))
    block.self_attention = attention
    for_inference(block)
    for order in itertools.permutations([(name, z) for name in expected for z in (x, y)]):
        for name, z in order:
            assert torch.allclose(getattr(attention, name)(z), want[name, id(z)], atol=1e-6), order
    z = x.clone()
    attention.query(z)
    z += 1
    assert torch.allclose(attention.query(z), want["query", id(x)] + attention.query.weight.sum(1), atol=1e-5)
    kept = weakref.ref(z)
    attention.value(z)
    del z
    assert kept() is None, "the input is let go"


def test_where_positions_are_added_to_keys_and_queries_maps_are_not_joined() -> None:
    model = for_inference(DETR(detr_config(next(iter(DETECTORS.values())), n_classes=3)))
    assert not any(isinstance(module, JointPart) for module in model.modules())


def test_what_cannot_be() -> None:
    with pytest.raises(InputError, match="no weights 'int2'"):
        for_inference(LM(lm_config(GPT)), "int2")
    with pytest.raises(InputError, match="a width of 48 is no multiple of 32"):
        for_inference(LM(lm_config(LMSize(n_layers=1, d_model=48, n_heads=4, vocab_size=9, context_length=8))), "int4")


def test_a_model_that_four_bits_do_not_fit_stays_as_it_was() -> None:
    """Only its last map is too narrow."""
    model = LM(lm_config(replace(LLAMA, d_ff=72))).eval()
    tokens = torch.randint(50, (2, 9))
    with torch.inference_mode():
        for made in (model, for_inference(model)):
            kinds, said = [type(part) for part in made.modules()], made(tokens)
            with pytest.raises(InputError, match="a width of 72 is no multiple of 32"):
                for_inference(made, "int4")
            assert [type(part) for part in made.modules()] == kinds
            assert torch.equal(made(tokens), said)
    with torch.device("meta"):
        elsewhere = LM(lm_config(GPT))
    with pytest.raises(InputError, match="int8 weights are for a CPU"):
        for_inference(elsewhere, "int8")
    names = {name for name, _ in elsewhere.named_modules()}
    assert {name for name, _ in for_inference(elsewhere).named_modules()} == names
    assert isinstance(elsewhere.head, nn.Linear)
    moved = for_inference(nn.Sequential(nn.Linear(512, 512)), fixed=False).to("meta")
    with torch.inference_mode():
        assert moved(torch.zeros(2, 512, device="meta")).shape == (2, 512)


def test_dropout_is_over_in_what_was_still_in_training_mode() -> None:
    """`eval` has nothing left to do, whatever it is called on."""
    model = LM(lm_config(replace(GPT, dropout=0.5))).train()
    ids = torch.randint(37, (1, 9))
    wanted = copy.deepcopy(model).eval()(ids).detach()
    for made in (for_inference(model), for_inference(model).eval()):
        assert not any(part.training for part in made.modules())
        torch.testing.assert_close(made(ids), wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))
