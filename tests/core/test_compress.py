"""Compressed keys: what is seen of them, in whole rows, packed rows and caches."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.core import kernels
from heedful.core.attention import AttentionConfig, attend, attention_weights
from heedful.core.block import Block, BlockConfig, Context, Stack, StackConfig
from heedful.core.compress import groups_in
from heedful.core.embed import positions_in_segments
from heedful.core.mask import EVERYONE, Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from loud import make_loud

B, T, C, H, G, N = 2, 23, 16, 4, 2, 3


def config(**more: Any) -> BlockConfig:
    return BlockConfig(attention=AttentionConfig(n_heads=H, kv_heads=G), d_ff=24, order="pre", **more)


def stack(shared: Any = "none") -> Stack:
    """Local layers and compressed ones, by turns."""
    turns = (config(block=4), config(compress=N))
    position = PositionConfig(kind=shared, buckets=8, furthest=20)
    made = Stack(C, StackConfig(n_layers=4, block=turns[0], pattern=turns, shared_position=position))
    return make_loud(made).eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def causal(positions: Tensor, segments: Tensor | None = None) -> Context:
    return Context(
        mask=Mask(causal=True, segments=None if segments is None else (segments, segments)), positions=positions
    )


def test_a_block_is_the_paper_s_convolution_of_keys_and_values() -> None:
    """Of kernel 3 and stride 3, after the projections; a key is seen once all its tokens are past."""
    block, x = make_loud(Block(C, config(compress=N))).eval(), torch.randn(B, T, C)
    attention, width = block.self_attention, C // H * G
    assert block.compress is not None

    def shorter(linear: torch.nn.Linear, convolution: torch.nn.Linear) -> Tensor:
        kernel = convolution.weight.unflatten(1, (N, width)).transpose(1, 2)  # out, in, place
        return F.conv1d(linear(h).mT, kernel, convolution.bias, stride=N).mT

    h = block.self_residual.in_norm(x)
    key, value = shorter(attention.key, block.compress.key), shorter(attention.value, block.compress.value)
    query = attention.query(h).unflatten(2, (H, -1)).transpose(1, 2)
    key, value = (part.unflatten(2, (G, -1)).transpose(1, 2) for part in (key, value))
    ends = torch.arange(key.shape[2]) * N + N - 1
    seen = ends <= torch.arange(T)[:, None]
    weights = attention_weights(query, key, mask=seen, scale=attention.heads.scale)
    assert (weights[:, :, : N - 1] == 0).all()
    found = (weights @ value.repeat_interleave(H // G, dim=1)).transpose(1, 2).flatten(2)
    one = Stack(C, StackConfig(n_layers=1, block=config(compress=N))).eval()
    one.blocks[0] = block
    close(one(x, causal(torch.arange(T)[None])), block.mlp_residual(x + attention.out(found), block.mlp))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 4, T])
def test_in_steps_is_the_whole(grad: bool, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = groups_in(torch.arange(length)[None], N)
    mask = Mask(causal=True).at(groups.ends, groups.valid, length, length)
    M = groups.ends.shape[1]
    monkeypatch.setattr(kernels, "least_tiled", lambda device: 0)
    assert (mask.tiled(length, M, torch.device("cpu")) is None) == (M == 0)
    q, k, v = (torch.randn(B, n, size, 8, requires_grad=grad) for n, size in ((H, length), (G, M), (G, M)))
    expected = attention_weights(q, k, mask=mask, scale=0.5) @ v.repeat_interleave(H // G, dim=1)
    out = attend(q, k, v, mask=mask, scale=0.5)
    close(out, expected)
    if grad:
        pull = torch.randn_like(out)
        ours, theirs = (torch.autograd.grad((each * pull).sum(), (q, k, v)) for each in (out, expected))
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)


@pytest.mark.parametrize("shared", ["none", "alibi", "buckets"])
def test_the_future_leaves_no_trace(shared: str) -> None:
    made, x, positions = stack(shared), torch.randn(B, T, C), torch.arange(T)[None]
    whole = made(x, causal(positions))
    for t in range(T):
        other = torch.cat([x[:, : t + 1], torch.randn(B, T - t - 1, C)], dim=1)
        close(made(other, causal(positions))[:, : t + 1], whole[:, : t + 1])
    at = x.clone().requires_grad_()
    made(at, causal(positions))[:, 10].sum().backward()
    assert at.grad is not None
    assert (at.grad[:, 11:] == 0).all()
    assert (at.grad[:, :9].abs().sum((0, 2)) > 0).all()  # all is seen that is past, by one layer or the other


@pytest.mark.parametrize("shared", ["none", "alibi", "buckets"])
def test_packed_is_alone(shared: str) -> None:
    made, x = stack(shared), torch.randn(B, T, C)
    texts = torch.tensor([[1] * 7 + [2] * 11 + [3] * 5, [1] * 2 + [2] * 16 + [0] * 5])
    packed = made(x, causal(positions_in_segments(texts), texts))
    for row in range(B):
        for text in texts[row].unique():
            where = texts[row] == text
            if text:
                alone = made(x[row : row + 1, where], causal(torch.arange(int(where.sum()))[None]))
                close(packed[row : row + 1, where], alone)


@pytest.mark.parametrize("shared", ["none", "alibi", "buckets"])
@pytest.mark.parametrize("first", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("more", [1, 2, 5])
def test_cached_is_full(shared: str, first: int, more: int) -> None:
    made, x, positions = stack(shared), torch.randn(B, T, C), torch.arange(T)[None]
    whole, caches, found = made(x, causal(positions)), made.start(), []
    for begin, end in zip([0, *range(first, T, more)], [*range(first, T, more), T], strict=True):
        if end > begin:
            part, caches = made.step(x[:, begin:end], causal(positions[:, begin:end]), caches)
            found.append(part)
    close(torch.cat(found, dim=1), whole)


def test_rows_of_unequal_length_enter_leave_and_go_back() -> None:
    """In a language model of such layers: each row as if it were alone, whatever the others do."""
    row = replace(LANGUAGE_MODELS["gpt-nano"], block=4, compress=N, d_model=16, n_heads=4, context_length=40)
    model = make_loud(LM(lm_config(row, vocab_size=11))).eval()
    texts = torch.randint(11, (4, 30))
    whole = model(texts)
    lengths = torch.tensor([5, 2, 9, 7])
    segments = (torch.arange(9) < lengths[:, None]).long()
    state = model.start(texts[:, :9] * segments, segments)
    place = lengths.clone()

    def step(state: Any, rows: Tensor) -> Any:
        logits, state = model.step(texts[rows, place[rows]], state)
        close(logits, whole[rows, place[rows]])
        place[rows] += 1
        return state

    rows = torch.arange(4)
    for _ in range(4):
        state = step(state, rows)
    rows = torch.tensor([2, 0, 3])
    state = state.pick(rows)
    for _ in range(3):
        state = step(state, rows)
    fresh = model.start(texts[1:2, :4])
    place[1] = 4
    state, rows = state.put(torch.tensor([1]), fresh), torch.tensor([2, 1, 3])
    for _ in range(5):
        state = step(state, rows)
    state, place = state.keep(7), place.clamp(max=7)
    for _ in range(6):
        state = step(state, rows)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"compress": 1}, "1 tokens become one key"),
        ({"compress": 3, "window": 8}, "compressed keys in a window"),
        ({"compress": 3, "attention": AttentionConfig(n_heads=2, position=PositionConfig(kind="rotary"))}, "rotary"),
    ],
)
def test_what_cannot_be_compressed_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BlockConfig(**{"attention": AttentionConfig(n_heads=2), "d_ff": 8, **more})


def test_a_pattern_of_one_s_own_is_not_compressed() -> None:
    context = Context(mask=torch.ones(T, T, dtype=torch.bool).tril())
    with pytest.raises(InputError, match="allows keys one by one"):
        stack()(torch.randn(B, T, C), context)
    assert stack()(torch.randn(B, T, C), Context(mask=EVERYONE)).isfinite().all()


def test_weights_of_compressed_keys_are_shown_on_their_tokens() -> None:
    """Each row of a recording sums to 1 once a key is seen, and shows no later token."""
    made, x = stack(), torch.randn(1, T, C)
    with record(made) as recording:
        made(x, causal(torch.arange(T)[None]))
    shown = recording.weights("blocks.1.self_attention")
    assert shown.shape == (1, H, T, T)
    assert (shown.triu(1) == 0).all()
    close(shown.sum(-1)[..., N - 1 :], torch.ones(1, H, T - N + 1))
    assert (shown[..., : N - 1, :] == 0).all()
    close(shown[..., 0:-2:N], shown[..., 1:-1:N])
