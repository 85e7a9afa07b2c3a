"""Two functions, one law: `attend` is `attention_weights @ v` in value and gradient, whatever the mask, the bias and
the grouping; and the layer is those functions between four linear maps."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.core import kernels
from heedful.core.attention import KV, Attention, AttentionConfig, Heads, attend, attention_weights, masked_softmax
from heedful.core.block import BlockConfig, Context, Stack, StackConfig
from heedful.core.mask import EVERYONE, Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from loud import make_loud

B, H, T, S, D, E = 2, 4, 5, 7, 8, 6
SCALE = 0.3
MASKS = ["everyone", "causal", "window", "prefix", "valid", "blind", "segments", "shared", "each", "start", "several"]
BIASES = [None, (1, 1), (1, H), (B, 1), (B, H)]


def make_mask(kind: str, T: int, S: int) -> Mask:
    some = torch.rand(B, T, S) < 0.6
    valid = torch.arange(S) < torch.tensor([[S], [S - 3]])
    queries = torch.tensor([1, 1, 2, 2, 0])[:T].expand(B, T)
    keys = torch.tensor([1, 1, 2, 2, 3, 0, 0])[:S].expand(B, S)
    match kind:
        case "causal":
            return Mask(causal=True)
        case "window":
            return Mask(window=2)
        case "prefix":
            return Mask(causal=True, prefix=torch.tensor([0, 4]))
        case "valid":
            return Mask(valid=valid)
        case "blind":  # the second row of the batch, and the last query of the first, see nobody
            some[0, :, 0], some[0, -1], some[1] = True, False, False
            return Mask(allowed=some)
        case "segments":
            return Mask(segments=(queries, keys))
        case "shared":
            return Mask(allowed=some[0])
        case "each":
            return Mask(allowed=some)
        case "start":
            return Mask(causal=True, start=1)
        case "several":
            return Mask(causal=True, window=3, valid=valid, segments=(queries, keys), allowed=some)
    return EVERYONE


def plainly(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """Output and weights in double precision from exponentials and sums alone, one head at a time."""
    q, k, v = q.double(), k.double(), v.double()
    seen = mask.dense(q.shape[2], k.shape[2], q.device)
    heads, all_weights = [], []
    for head in range(H):
        of = head // (H // k.shape[1])  # neighbouring query heads share a key head
        scores = torch.einsum("btd,bsd->bts", q[:, head], k[:, of]) * SCALE
        scores = scores if cap is None else cap * torch.tanh(scores / cap)
        if bias is not None:
            scores = scores + bias[:, head % bias.shape[1]]
        chances = scores.exp() if seen is None else scores.exp() * seen[:, 0]
        weights = chances / chances.sum(-1, keepdim=True).clamp(min=1e-300)
        all_weights.append(weights)
        heads.append(torch.einsum("bts,bse->bte", weights, v[:, of]))
    return torch.stack(heads, 1), torch.stack(all_weights, 1)


def gradients(out: Tensor, pull: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((out * pull).sum(), of)


@pytest.mark.parametrize("G", [1, 2, 4])
@pytest.mark.parametrize("kind", MASKS)
def test_fused_is_explicit(kind: str, G: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way that attention is computed gives the same values, and those with gradients the same gradients."""
    for queries, keys, width in ((T, S, E), (T, T, D), (1, S, E), (T, S, D)):
        mask = make_mask(kind, queries, keys)
        for shape in BIASES:
            q = torch.randn(B, H, queries, D, requires_grad=True)
            k = torch.randn(B, G, keys, D, requires_grad=True)
            v = torch.randn(B, G, keys, width, requires_grad=True)
            bias = None if shape is None else torch.randn(*shape, queries, keys, requires_grad=True)
            of = (q, k, v) if bias is None else (q, k, v, bias)
            pull = torch.randn(B, H, queries, width)
            expected, expected_weights = plainly(q, k, v, mask, bias)
            weights = attention_weights(q, k, mask=mask, bias=bias, scale=SCALE)
            explicit = weights @ v.repeat_interleave(H // G, dim=1)
            with_grad = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
            with monkeypatch.context() as patch:  # as on an accelerator, where the kernel makes the gradients too
                patch.setattr(torch, "is_grad_enabled", lambda: False)
                kernel = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
            with torch.no_grad():
                without = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
            close(weights, expected_weights)
            for out in (explicit, with_grad, kernel, without):
                close(out, expected)
            right = gradients(expected, pull, *of)
            for out in (explicit, with_grad, kernel):
                for ours, theirs in zip(gradients(out, pull, *of), right, strict=True):
                    close(ours, theirs)


@pytest.mark.parametrize("kind", MASKS)
def test_who_sees_nobody_never_reaches_a_kernel_that_does_not_know_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fused(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None, *rest: Any, **how: Any) -> Tensor:
        seen = visible if visible is None or visible.dtype == torch.bool else visible > -torch.inf
        assert seen is None or seen.any(-1).all()
        return real(q, k, v, visible, *rest, **how)

    real, mask = torch.nn.functional.scaled_dot_product_attention, make_mask(kind, T, S)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(kernels, "knows_blind_queries", lambda device: False)
    for shape in BIASES:
        q, k, v = (torch.randn(B, n, s, d, requires_grad=True) for n, s, d in ((H, T, D), (2, S, D), (2, S, E)))
        bias = None if shape is None else torch.randn(*shape, T, S)
        pull = torch.randn(B, H, T, E)
        expected, _ = plainly(q, k, v, mask, bias)
        with monkeypatch.context() as patch:
            patch.setattr(torch, "is_grad_enabled", lambda: False)
            found = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
        close(found, expected)
        for ours, theirs in zip(gradients(found, pull, q, k, v), gradients(expected, pull, q, k, v), strict=True):
            close(ours, theirs)


@pytest.mark.parametrize("kind", ["everyone", "causal", "blind", "several"])
def test_capped_scores_keep_the_law(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mask, cap, pull = make_mask(kind, T, S), 0.7, torch.randn(B, H, T, E)
    for shape in (None, (1, H)):
        q, k, v = (torch.randn(B, n, s, d, requires_grad=True) for n, s, d in ((H, T, D), (2, S, D), (2, S, E)))
        bias = None if shape is None else torch.randn(*shape, T, S, requires_grad=True)
        of = (q, k, v) if bias is None else (q, k, v, bias)
        expected, expected_weights = plainly(q, k, v, mask, bias, cap)
        how = {"mask": mask, "bias": bias, "scale": SCALE, "softcap": cap}
        weights, out = attention_weights(q, k, **how), attend(q, k, v, **how)
        with monkeypatch.context() as patch:
            patch.setattr(torch, "is_grad_enabled", lambda: False)
            kernel = attend(q, k, v, **how)
        close(weights, expected_weights)
        right = gradients(expected, pull, *of)
        for found in (weights @ v.repeat_interleave(H // 2, dim=1), out, kernel):
            close(found, expected)
            for ours, theirs in zip(gradients(found, pull, *of), right, strict=True):
                close(ours, theirs)
        close(Heads(SCALE, 0.0, cap).weights(q, KV(k, v), mask, bias), expected_weights)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("biased", [False, True])
def test_who_sees_nobody_gets_exact_zeros(biased: bool) -> None:
    mask = make_mask("blind", T, S)
    q, k = torch.randn(B, H, T, D, requires_grad=True), torch.randn(B, H, S, D)
    v = torch.randn(B, H, S, E, requires_grad=True)
    bias = torch.randn(1, H, T, S) if biased else None
    out = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
    q_grad, v_grad = torch.autograd.grad(out.sum(), (q, v))
    with torch.no_grad():
        fused = attend(q, k, v, mask=mask, bias=bias, scale=SCALE)
    weights = attention_weights(q, k, mask=mask, bias=bias, scale=SCALE)
    for result in (out, fused, weights, q_grad):
        assert (result[1] == 0).all()
        assert (result[0, :, -1] == 0).all()
        assert (result[0, :, 0] != 0).any()
    assert (v_grad[1] == 0).all()


def test_the_bias_is_added_after_scaling() -> None:
    chances = torch.rand(1, 1, T, S).softmax(-1)
    zeros, k = torch.zeros(B, H, T, D), torch.randn(B, H, S, D)
    weights = attention_weights(zeros, k, mask=EVERYONE, bias=chances.log(), scale=SCALE)
    close(weights, chances.expand(B, H, T, S))
    with torch.no_grad():
        close(attend(zeros, k, k, mask=EVERYONE, bias=chances.log(), scale=SCALE), chances @ k)


def test_scale_by_hand() -> None:
    q, k = torch.tensor([[[[2.0]]]]), torch.tensor([[[[1.0], [3.0]]]])
    weights = attention_weights(q, k, mask=EVERYONE, scale=0.5)
    close(weights, torch.tensor([1.0, 3.0]).softmax(0).view(1, 1, 1, 2))


def test_half_precision_keeps_its_dtype() -> None:
    q, k = torch.randn(B, H, T, D).bfloat16(), torch.randn(B, H, S, D).bfloat16()
    bias = torch.randn(1, H, T, S)
    for mask in (EVERYONE, make_mask("blind", T, S)):
        full = attend(q.float(), k.float(), k.float(), mask=mask, bias=bias, scale=SCALE)
        with torch.no_grad():
            fused = attend(q, k, k, mask=mask, bias=bias, scale=SCALE)
        assert fused.dtype == torch.bfloat16
        torch.testing.assert_close(fused.float(), full, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("grad", [True, False])
def test_dropout_keeps_the_mean(grad: bool) -> None:
    rows = 6000
    q, k, v = (torch.randn(1, 1, 3, 4).expand(rows, 1, 3, 4) for _ in range(3))
    with torch.set_grad_enabled(grad):
        out = attend(q, k, v, mask=Mask(causal=True), scale=0.5, dropout=0.25)
        whole = attend(q, k, v, mask=Mask(causal=True), scale=0.5)
    assert not torch.equal(out, whole)
    assert ((out[:, 0, 0] == 0).all(-1).float().mean() - 0.25).abs() < 0.03  # the first query sees one key
    error = (out.mean(0) - whole[0]).abs() / (out.std(0) / rows**0.5)
    assert error.max() < 5


def test_the_softmax_of_scores() -> None:
    scores, seen = torch.randn(2, 3, 4), torch.rand(2, 3, 4) < 0.5
    seen[0, 0] = False
    weights = masked_softmax(scores, seen)
    close(weights.sum(-1), seen.any(-1).float())
    assert (weights[~seen] == 0).all()
    assert torch.equal(masked_softmax(scores, None), scores.softmax(-1))


def layer(d_model: int = 12, **options: object) -> Attention:
    module = Attention(d_model, AttentionConfig(n_heads=H, **options)).eval()
    return make_loud(module)


def test_the_order_of_key_value_pairs_does_not_matter() -> None:
    attention, x, memory = layer(kv_heads=2), torch.randn(B, T, 12), torch.randn(B, S, 12)
    order = torch.randperm(S)
    close(
        attention(attention.queries(x), attention.keys_values(memory), mask=EVERYONE),
        attention(attention.queries(x), attention.keys_values(memory[:, order]), mask=EVERYONE),
    )


def test_self_attention_is_permutation_equivariant() -> None:
    attention, x, order = layer(), torch.randn(B, T, 12), torch.randperm(T)
    out = attention(attention.queries(x), attention.keys_values(x), mask=EVERYONE)
    shuffled = attention(attention.queries(x[:, order]), attention.keys_values(x[:, order]), mask=EVERYONE)
    close(shuffled, out[:, order])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kv_heads": 2},
        {"kv_heads": 1},
        {"head_dim": 5},
        {"bias": False},
        {"out_bias": False},
        {"scale": 1.0},
        {"gate": True},
        {"norm": "rms", "norm_eps": 0.1, "kv_heads": 2},
        {"softcap": 0.2},
    ],
)
def test_the_layer_head_by_head(options: dict) -> None:
    """Each head on its own slices of the weights, then all of them joined and mapped."""
    attention, x, memory = layer(**options), torch.randn(B, T, 12), torch.randn(B, S, 12)
    width, kv_heads = options.get("head_dim", 3), options.get("kv_heads", H)

    def slice_of(linear: torch.nn.Linear, head: int, x: Tensor) -> Tensor:
        rows = slice(head * width, (head + 1) * width)
        return F.linear(x, linear.weight[rows], None if linear.bias is None else linear.bias[rows])

    heads = []
    for head in range(H):
        of = head * kv_heads // H
        q, k = slice_of(attention.query, head, x), slice_of(attention.key, of, memory)
        v = slice_of(attention.value, of, memory)
        if "norm" in options:
            q, k = attention.query_norm(q), attention.key_norm(k)
        scores, cap = q @ k.mT * options.get("scale", width**-0.5), options.get("softcap")
        heads.append((scores if cap is None else cap * (scores / cap).tanh()).softmax(-1) @ v)
    joined = torch.cat(heads, -1)
    if attention.gate is not None:
        joined = joined / (1 + (-attention.gate(x)).exp())
    close(attention(attention.queries(x), attention.keys_values(memory), mask=EVERYONE), attention.out(joined))
    assert (attention.query.bias is None) == (options.get("bias") is False)
    assert (attention.out.bias is None) == (False in (options.get("bias"), options.get("out_bias")))


def test_the_mask_and_the_bias_reach_the_heads() -> None:
    attention, x = layer(), torch.randn(B, T, 12)
    kv, bias = attention.keys_values(x), torch.randn(1, H, T, T)
    mask = make_mask("several", T, T)
    q = attention.query(x).view(B, T, H, 3).transpose(1, 2)
    heads = attend(q, kv.key, kv.value, mask=mask, bias=bias, scale=3**-0.5)
    close(
        attention(attention.queries(x), kv, mask=mask, bias=bias),
        attention.out(heads.transpose(1, 2).reshape(B, T, 12)),
    )


def test_weights_are_dropped_in_training_only() -> None:
    attention, x = layer(dropout=0.5), torch.randn(B, T, 12)
    kv = attention.keys_values(x)
    assert torch.equal(
        attention(attention.queries(x), kv, mask=EVERYONE), attention(attention.queries(x), kv, mask=EVERYONE)
    )
    attention.train()
    assert not torch.equal(
        attention(attention.queries(x), kv, mask=EVERYONE), attention(attention.queries(x), kv, mask=EVERYONE)
    )


def test_widths_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="d_model 10 is no multiple of n_heads 4") as refused:
        Attention(10, AttentionConfig(n_heads=4))
    assert refused.value.fix == "choose another n_heads, or give head_dim"
    with pytest.raises(InputError, match="n_heads 4 is no multiple of kv_heads 3"):
        Attention(12, AttentionConfig(n_heads=4, kv_heads=3))
    assert Attention(10, AttentionConfig(n_heads=4, head_dim=3)).out.in_features == 12


@pytest.mark.parametrize(("rows", "shared"), [(1, 2), (3, 2), (4, 3), (2, 0)])
def test_rows_that_cannot_be_shared_are_refused(rows: int, shared: int) -> None:
    layer = Attention(8, AttentionConfig(n_heads=2))
    queries, kv = layer.queries(torch.randn(rows, 3, 8)), layer.keys_values(torch.randn(shared, 5, 8))
    with pytest.raises(InputError, match=f"{rows} rows of queries cannot share {shared} rows"):
        layer(queries, kv, mask=EVERYONE)


@pytest.mark.parametrize("T", [1, 2])
@pytest.mark.parametrize("kind", ["causal", "window", "prefix", "segments", "each", "start"])
def test_rows_that_share_keys_are_not_told_apart_by_a_mask(kind: str, T: int) -> None:
    layer = Attention(8, AttentionConfig(n_heads=2))
    queries, kv = layer.queries(torch.randn(2 * B, T, 8)), layer.keys_values(torch.randn(B, S, 8))
    with pytest.raises(InputError, match="rows of queries that share keys"):
        layer(queries, kv, mask=make_mask(kind, 2 * T, S))
    with pytest.raises(InputError, match="rows of queries that share keys"):
        layer(queries, kv, mask=EVERYONE, bias=torch.randn(1, 1, 2 * T, S))
    assert layer(queries, kv, mask=make_mask("valid", T, S)).shape == (2 * B, T, 8)


@pytest.mark.parametrize("name", ["n_heads", "kv_heads", "head_dim"])
@pytest.mark.parametrize("size", [0, -1])
def test_sizes_that_are_none_are_refused(name: str, size: int) -> None:
    with pytest.raises(InputError, match=f"{name} is {size}"):
        AttentionConfig(**{"n_heads": 2} | {name: size})


@pytest.mark.parametrize("grad", [True, False])
def test_a_bias_of_doubles_is_rounded_with_and_without_gradients(grad: bool) -> None:
    q, k, bias = torch.randn(B, H, T, D), torch.randn(B, H, S, D), torch.randn(1, H, T, S).double()
    with torch.set_grad_enabled(grad):
        out = attend(q, k, k, mask=EVERYONE, bias=bias, scale=SCALE)
        close(out, attend(q, k, k, mask=EVERYONE, bias=bias.float(), scale=SCALE))
    assert out.dtype == torch.float32


def test_an_empty_batch_stays_empty() -> None:
    layer, nobody = Attention(8, AttentionConfig(n_heads=2)), torch.randn(0, 3, 8)
    assert layer(layer.queries(nobody), layer.keys_values(nobody), mask=EVERYONE).shape == (0, 3, 8)


def test_rows_are_picked() -> None:
    rows = torch.tensor([1, 1, 0])
    kv = KV(torch.randn(B, H, S, D), torch.randn(B, H, S, E), torch.arange(B * S).view(B, S))
    picked = kv.pick(rows)
    assert all(torch.equal(part, whole[rows]) for part, whole in zip(picked, kv, strict=True))
    shared = kv._replace(positions=torch.arange(S)[None]).pick(rows)
    assert torch.equal(shared.positions, torch.arange(S)[None])
    assert kv._replace(positions=None).pick(rows).positions is None


def test_positions_stay_with_the_keys() -> None:
    positions = torch.arange(S)[None]
    memory, embeddings = torch.randn(B, S, 12), torch.randn(1, S, 12)
    assert layer().keys_values(memory, positions).positions is positions
    added = layer(position=PositionConfig(kind="added"))
    assert added.keys_values(memory, position_embeddings=embeddings).positions is None


@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 6), (2, 3, 4, 6)])
@pytest.mark.parametrize("explicit", [True, False])
def test_a_bool_tensor_as_a_mask(shape: tuple[int, ...], explicit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.core.kernels.explicit_attention", lambda q, plain: explicit)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    visible = torch.rand(shape) < 0.7
    visible[..., 0] = True
    each = visible.expand(2, 3, 4, 6) if len(shape) != 3 else visible[:, None].expand(2, 3, 4, 6)
    wanted = (0.3 * q @ k.mT).masked_fill(~each, -torch.inf).softmax(-1)
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(attention_weights(q, k, mask=visible, scale=0.3), wanted, **close)
    torch.testing.assert_close(attend(q, k, v, mask=visible, scale=0.3), wanted @ v, **close)
    heads = Heads(0.3, 0.0)
    some = heads.weights(q, KV(k, v), Mask.of(visible), None, heads=[2, 0], queries=[1, 3])
    torch.testing.assert_close(some, wanted[:, [2, 0]][:, :, [1, 3]], **close)


def test_a_stack_is_told_by_a_tensor_who_may_look_at_whom() -> None:
    block = BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=16)
    stack = Stack(8, StackConfig(n_layers=2, block=block)).eval()
    x, causal = torch.randn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool).tril()
    by_tensor = stack(x, Context(mask=causal))
    by_mask = stack(x, Context(mask=Mask(causal=True)))
    torch.testing.assert_close(by_tensor, by_mask)
