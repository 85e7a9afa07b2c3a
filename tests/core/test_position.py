"""Where a token stands: each scheme against its formula, and the law that only distance counts."""

import math
from typing import Any, Literal

import pytest
import torch
from torch import Tensor
from transformers.models.t5.modeling_t5 import T5Attention

from accelerator import THERE, accelerator
from heedful.core import position
from heedful.core.attention import Attention, AttentionConfig
from heedful.core.mask import EVERYONE
from heedful.core.position import (
    Alibi,
    Position,
    PositionConfig,
    RelativeBuckets,
    Rotary,
    Shaw,
)
from heedful.core.rotary import RotaryScaling, frequencies
from heedful.errors import InputError

B, H, T, S, D = 2, 3, 4, 6, 8


def places(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


def test_rotary_by_complex_numbers() -> None:
    """The pair (i, i + D/2) is one complex number, turned by place * theta^(-2i/D)."""
    x, at = torch.randn(B, H, T, D), places([0, 1, 2, 3], [7, 5, 900, 5])
    speed = 100.0 ** (-torch.arange(D // 2).double() * 2 / D)
    turn = torch.exp(1j * at[:, None, :, None].double() * speed)
    expected = torch.complex(x[..., : D // 2].double(), x[..., D // 2 :].double()) * turn
    turned = Rotary(D, theta=100.0).rotate(x, at)
    torch.testing.assert_close(turned.double(), torch.cat([expected.real, expected.imag], -1), rtol=1e-4, atol=1e-4)


def test_rotary_by_hand() -> None:
    turned = Rotary(2, theta=10_000.0).rotate(torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]]), places([3, 3]))
    torch.testing.assert_close(turned[0, 0], torch.tensor([[math.cos(3), math.sin(3)], [-math.sin(3), math.cos(3)]]))


def test_turns_are_computed_once_for_the_same_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """By all blocks of a pass, whatever else is asked for between them; and anew for other positions, another scheme,
    other numbers, and where gradients are kept."""
    asked = list[float]()

    def counted(head_dim: int, theta: float, *more: Any) -> Tensor:
        asked.append(theta)
        return frequencies(head_dim, theta, *more)

    monkeypatch.setattr(position, "frequencies", counted)
    x, at, later = torch.randn(2, 3, 4, 8), places([0, 1, 2, 3]), places([4, 5, 6, 7])
    blocks = [Rotary(8, theta) for theta in (10.0, 20.0, 10.0)]
    with torch.inference_mode():
        first = [block.rotate(x, at) for block in blocks]
        assert all(block.rotate(x, at).equal(want) for block, want in zip(blocks, first, strict=True))
        assert asked == [10.0, 20.0]
        assert not blocks[0].rotate(x, later).equal(first[0])
        assert blocks[0].rotate(x, at).equal(first[0])
        blocks[0].rotate(x.bfloat16(), at)
    x.requires_grad_()
    blocks[0].rotate(x, at).sum().backward()
    assert x.grad is not None
    assert asked == [10.0, 20.0, 10.0, 10.0, 10.0, 10.0]


def test_scaled_rotary_by_hand() -> None:
    """Of 1,000 positions: those that turn 10 times or more stay, those that turn once or less are 4 times slower."""
    plain = frequencies(64, 10_000.0, None)
    turns = plain * 1000 / (2 * math.pi)
    linear = frequencies(64, 10_000.0, RotaryScaling(kind="linear", factor=4.0))
    torch.testing.assert_close(linear, plain / 4)
    kinds: list[Literal["llama3", "yarn"]] = ["llama3", "yarn"]
    for kind in kinds:
        scaling = RotaryScaling(kind=kind, factor=4.0, original_length=1000, low_turns=1.0, high_turns=10.0)
        found = frequencies(64, 10_000.0, scaling)
        assert torch.equal(found[turns > 12], plain[turns > 12])
        torch.testing.assert_close(found[turns < 0.7], plain[turns < 0.7] / 4)
        between = (turns > 1.4) & (turns < 9)
        assert between.any()
        assert (found[between] < plain[between]).all()
        assert (found[between] > plain[between] / 4).all()
        assert (found.diff() < 0).all()
    half = frequencies(64, 10_000.0, RotaryScaling(kind="llama3", factor=4.0, original_length=1000, high_turns=10.0))
    share = (turns[between] - 1) / 9
    torch.testing.assert_close(half[between], share * plain[between] + (1 - share) * plain[between] / 4)


def test_what_is_scaled_is_turned_less_and_multiplied() -> None:
    x, at = torch.randn(B, H, T, D), places([0, 8, 40, 80])
    slower = Rotary(D, 100.0, RotaryScaling(kind="linear", factor=8.0)).rotate(x, at)
    torch.testing.assert_close(slower, Rotary(D, 100.0).rotate(x, places([0, 1, 5, 10])))
    louder = RotaryScaling(kind="yarn", factor=1.0, original_length=9, high_turns=32.0, magnitude=1.5)
    torch.testing.assert_close(Rotary(D, 100.0, louder).rotate(x, at), 1.5 * Rotary(D, 100.0).rotate(x, at))


@pytest.mark.parametrize(
    "changes", [{"factor": 0.0}, {"factor": math.inf}, {"original_length": 0}, {"low_turns": 5.0}, {"magnitude": -1.0}]
)
def test_scaling_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot be"):
        RotaryScaling(**{"kind": "llama3", "factor": 8.0, "original_length": 64} | changes)


def test_rotary_products_depend_on_distance_alone() -> None:
    rotary, q, k = Rotary(D, theta=10_000.0), torch.randn(1, 1, 1, D), torch.randn(1, 1, 1, D)
    products = {
        (m, n): float((rotary.rotate(q, places([m])) * rotary.rotate(k, places([n]))).sum())
        for m in (0, 3, 11)
        for n in (0, 2, 9)
    }
    for (m, n), product in products.items():
        shifted = (rotary.rotate(q, places([m + 40])) * rotary.rotate(k, places([n + 40]))).sum()
        assert float(shifted) == pytest.approx(product, abs=1e-4)
    assert len({round(product, 4) for product in products.values()}) == len({m - n for m, n in products})


def test_rotary_keeps_norms_and_leaves_place_0() -> None:
    rotary, x = Rotary(D, theta=10_000.0), torch.randn(B, H, T, D)
    torch.testing.assert_close(rotary.rotate(x, places([9, 0, 3, 70])).norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(rotary.rotate(x, places([0] * T)), x)


def test_rotary_turns_keys_and_queries_but_no_values() -> None:
    attention = Attention(12, AttentionConfig(n_heads=2, position=PositionConfig(kind="rotary", theta=50.0)))
    x, at = torch.randn(B, T, 12), places([0, 1, 2, 3])
    kv, rotary = attention.keys_values(x, at), Rotary(6, theta=50.0)
    q, k, v = (part(x).view(B, T, 2, 6).transpose(1, 2) for part in (attention.query, attention.key, attention.value))
    torch.testing.assert_close(kv.key, rotary.rotate(k, at))
    torch.testing.assert_close(kv.value, v)
    heads = (rotary.rotate(q, at) @ kv.key.mT / 6**0.5).softmax(-1) @ v
    expected = attention.out(heads.transpose(1, 2).reshape(B, T, 12))
    torch.testing.assert_close(attention(attention.queries(x, at), kv, mask=EVERYONE), expected)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (8, [2.0**-i for i in range(1, 9)]),
        (4, [2.0**-i for i in (2, 4, 6, 8)]),
        (12, [2.0**-i for i in range(1, 9)] + [2.0**-i for i in (0.5, 1.5, 2.5, 3.5)]),
    ],
)
def test_alibi_slopes(heads: int, slopes: list[float]) -> None:
    torch.testing.assert_close(Alibi(heads).slopes.flatten(), torch.tensor(slopes))


def test_alibi_is_slope_times_distance() -> None:
    bias = Alibi(2).bias(None, places([2, 3]), places([0, 1, 2, 3]))
    distance = torch.tensor([[2.0, 1, 0, 1], [3, 2, 1, 0]])
    torch.testing.assert_close(bias, -torch.stack([distance / 2**4, distance / 2**8])[None])


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (16, 500)])
def test_buckets_are_those_of_t5(buckets: int, furthest: int, two_sided: bool) -> None:
    config = PositionConfig(kind="buckets", buckets=buckets, furthest=furthest, two_sided=two_sided)
    offsets = torch.arange(-600, 601)
    theirs = T5Attention._relative_position_bucket(offsets, two_sided, buckets, furthest)
    assert torch.equal(RelativeBuckets(H, config).bucket(offsets), theirs)


def test_buckets_by_hand() -> None:
    """Of 8 buckets 4 look back: 0 and 1 alone, 2 to 6, and all from 7 on, as 2 * 10^(1/2) < 7 and 20 = 2 * 10."""
    scheme = RelativeBuckets(1, PositionConfig(kind="buckets", buckets=8, furthest=20))
    back = scheme.bucket(torch.tensor([0, -1, -2, -5, -6, -7, -19, -20, -999]))
    assert back.tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 3]
    assert scheme.bucket(torch.tensor([1, 2, 6, 7, 999])).tolist() == [5, 6, 6, 7, 7]


def test_every_device_has_the_same_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 buckets for distances up to 128, 8 * 16^(1/4) = 16 lies on a border, which another logarithm may miss."""
    scheme = RelativeBuckets(H, PositionConfig(kind="buckets", buckets=32, furthest=128, two_sided=True))
    offsets = torch.arange(-300, 300)
    wanted = scheme.bucket(offsets)
    log = torch.log
    monkeypatch.setattr(torch, "log", lambda x: log(x) if x.device.type == "cpu" else log(x) * (1 - 1e-6))
    with accelerator() as device:
        there = scheme.bucket(offsets.to(device))
        assert there.device == THERE
        assert torch.equal(there.cpu(), wanted)
    assert wanted[300 - 16] == 10
    assert wanted[300 - 15] == 9


@pytest.mark.parametrize(("buckets", "furthest"), [(32, 8), (3, 128)])
def test_buckets_that_cannot_be_filled_are_refused(buckets: int, furthest: int) -> None:
    with pytest.raises(InputError, match=f"{buckets} buckets for distances up to {furthest}"):
        RelativeBuckets(H, PositionConfig(kind="buckets", buckets=buckets, furthest=furthest))


def test_bucket_bias_is_looked_up_for_each_head() -> None:
    scheme = RelativeBuckets(H, PositionConfig(kind="buckets", buckets=8, furthest=20))
    queries, keys = places([1, 2], [5, 6]), places([0, 1, 9], [5, 6, 7])
    bias = scheme.bias(None, queries, keys)
    for b in range(2):
        for t in range(2):
            for s in range(3):
                bucket = int(scheme.bucket(keys[b, s] - queries[b, t]))
                assert torch.equal(bias[b, :, t, s], scheme.table.weight[bucket])


def test_shaw_by_loops() -> None:
    scheme, q = Shaw(D, furthest=2, scale=0.3), torch.randn(B, H, T, D)
    queries, keys = places([2, 3, 4, 5], [0, 1, 2, 3]), places([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 9])
    bias = scheme.bias(q, queries, keys)
    for b in range(B):
        for t in range(T):
            for s in range(S):
                distance = max(-2, min(2, int(keys[b, s]) - int(queries[b, t])))
                expected = torch.einsum("hd,d->h", q[b, :, t], scheme.table.weight[distance + 2]) * 0.3
                torch.testing.assert_close(bias[b, :, t, s], expected)


def test_shaw_adds_a_key_of_the_distance() -> None:
    """In the layer: q (k + r)', scaled as a whole (equation 4)."""
    position = PositionConfig(kind="shaw", furthest=3)
    attention = Attention(12, AttentionConfig(n_heads=2, scale=0.7, position=position))
    x, at = torch.randn(B, T, 12), places([0, 1, 2, 3])
    q, k, v = (part(x).view(B, T, 2, 6).transpose(1, 2) for part in (attention.query, attention.key, attention.value))
    far = attention.position.table.weight[at[0][None, :] - at[0][:, None] + 3]  # (T, S, D)
    scores = torch.einsum("bhtd,bhtsd->bhts", q, k[:, :, None] + far) * 0.7
    expected = attention.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, 12))
    torch.testing.assert_close(
        attention(attention.queries(x, at), attention.keys_values(x, at), mask=EVERYONE), expected
    )


def test_added_enters_queries_and_keys_but_no_values() -> None:
    plain = Attention(12, AttentionConfig(n_heads=2))
    added = Attention(12, AttentionConfig(n_heads=2, position=PositionConfig(kind="added")))
    added.load_state_dict(plain.state_dict())
    x, memory, x_at, memory_at = (torch.randn(B, n, 12) for n in (T, S, T, S))
    kv = plain.keys_values(memory + memory_at)._replace(value=plain.keys_values(memory).value)
    expected = plain(plain.queries(x + x_at), kv, mask=EVERYONE)
    kv = added.keys_values(memory, position_embeddings=memory_at)
    out = added(added.queries(x, position_embeddings=x_at), kv, mask=EVERYONE)
    torch.testing.assert_close(out, expected)


def test_a_bias_of_the_layer_joins_one_from_outside() -> None:
    attention = Attention(12, AttentionConfig(n_heads=2, position=PositionConfig(kind="alibi")))
    plain = Attention(12, AttentionConfig(n_heads=2))
    plain.load_state_dict(attention.state_dict())
    x, at, bias = torch.randn(B, T, 12), places([0, 1, 2, 3]), torch.randn(B, 1, T, T)
    out = attention(attention.queries(x, at), attention.keys_values(x, at), mask=EVERYONE, bias=bias)
    both = bias + Alibi(2).bias(None, at, at)
    torch.testing.assert_close(out, plain(plain.queries(x), plain.keys_values(x), mask=EVERYONE, bias=both))


@pytest.mark.parametrize("kind", ["none", "added", "rotary", "alibi", "buckets", "shaw"])
def test_a_scheme_uses_one_door_and_leaves_the_others_shut(kind: str) -> None:
    scheme = PositionConfig(kind=kind).make(n_heads=H, head_dim=D, scale=1.0)
    x, heads, at = torch.randn(B, T, D), torch.randn(B, H, T, D), places([0, 1, 2, 3])
    used = {
        "enter": scheme.enter(x, torch.randn(B, T, D) if kind == "added" else None) is not x,
        "rotate": scheme.rotate(heads, at) is not heads,
        "bias": scheme.bias(heads, at, at) is not None,
    }
    doors = {"none": [], "added": ["enter"], "rotary": ["rotate"]}.get(kind, ["bias"])
    assert [door for door, open_ in used.items() if open_] == doors


@pytest.mark.parametrize("kind", ["rotary", "alibi", "buckets", "shaw"])
def test_a_scheme_that_is_told_nothing_says_so(kind: str) -> None:
    attention = Attention(12, AttentionConfig(n_heads=2, position=PositionConfig(kind=kind)))
    x = torch.randn(B, T, 12)
    with pytest.raises(InputError, match=r"without positions|relative positions need"):
        attention(attention.queries(x), attention.keys_values(x), mask=EVERYONE)


def test_what_depends_on_queries_cannot_be_shared() -> None:
    with pytest.raises(InputError, match="cannot share"):
        Shaw(D, 2, 1.0).bias(None, places([0]), places([0]))
    assert Position().bias(None, places([0]), places([0])) is None
