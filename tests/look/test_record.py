"""Recorded weights are the ones that the model used, and recording leaves no trace."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import heedful.core.attention
from heedful.core.attention import Attention, AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.core.mask import Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models.rnn import RNN, RNNConfig
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from loud import make_loud

B, S, T, V, H = 3, 6, 5, 23, 4
NAMES = [f"{stack}.blocks.{i}.self_attention" for stack in ("encoder", "decoder") for i in (0, 1)]
CROSS = "decoder.blocks.1.cross_attention"


def seq2seq() -> Seq2Seq:
    """A small Transformer with grouped keys, and weights loud enough that attention is far from even."""
    config = AttentionConfig(n_heads=H, kv_heads=2)
    block = BlockConfig(attention=config, d_ff=24, dropout=0.1)
    embed = EmbedConfig(vocab_size=V)
    crossed = dataclasses.replace(block, cross=config)
    model = Seq2Seq(
        Seq2SeqConfig(
            d_model=16,
            source=embed,
            target=embed,
            encoder=StackConfig(n_layers=2, block=block),
            decoder=StackConfig(n_layers=2, block=crossed),
        )
    ).eval()
    return make_loud(model)


def rnn() -> RNN:
    config = RNNConfig(source_vocab=V, target_vocab=V, d_embed=8, d_hidden=8, d_align=8, d_readout=8)
    model = RNN(config).eval()
    return make_loud(model)


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Source, target and their segments; the rows have 6, 4 and 2 source words."""
    segments = (torch.arange(S) < torch.tensor([[6], [4], [2]])).long()
    return (
        torch.randint(4, V, (B, S)),
        torch.randint(4, V, (B, T)),
        segments,
        torch.ones(B, T, dtype=torch.long),
    )


@pytest.mark.parametrize("make", [seq2seq, rnn])
def test_recording_changes_neither_output_nor_gradients_nor_the_random_numbers(make: type[nn.Module]) -> None:
    model = make().train()

    def run() -> list[Tensor]:
        torch.manual_seed(1)
        model.zero_grad()
        output = model(*inputs)
        output.square().sum().backward()
        return [output, torch.rand(1), *(weight.grad.clone() for weight in model.parameters())]

    inputs = batch()
    alone = run()
    with record(model) as recording:
        watched = run()
    for one, other in zip(alone, watched, strict=True):
        assert torch.equal(one, other)
    assert not recording.weights(recording.names[0]).requires_grad


def layer(position: str, mask: Mask) -> tuple[nn.Module, Callable[[], Tensor]]:
    """One attention layer under the name "one", and a call of it."""
    config = AttentionConfig(n_heads=H, kv_heads=2, position=PositionConfig(kind=position))
    model = nn.ModuleDict({"one": Attention(16, config)})
    make_loud(model)
    x, places = torch.randn(B, S, 16), torch.arange(S)[None]
    attention = model["one"]
    return model, lambda: attention(attention.queries(x, places), attention.keys_values(x, places), mask=mask)


BLIND = torch.ones(S, S, dtype=torch.bool).index_fill(0, torch.tensor([2]), False)  # query 2 sees nobody
MASKS = [
    Mask(),
    Mask(causal=True, valid=torch.arange(S) < torch.tensor([[6], [4], [2]])),
    Mask(allowed=BLIND),
]
LAYERS = pytest.mark.parametrize(
    ("position", "mask"),
    [(position, mask) for position in ("none", "shaw", "buckets", "alibi") for mask in MASKS],
)


@LAYERS
def test_the_weights_are_the_ones_that_the_layer_used(position: str, mask: Mask) -> None:
    model, call = layer(position, mask)
    with torch.no_grad(), record(model) as recording:
        used = []
        model["one"].heads.register_forward_hook(lambda module, given, output: used.append((given[1].value, output)))
        call()
    [(value, output)] = used
    assert recording.names == ["one"]
    again = recording.weights("one") @ value.repeat_interleave(2, dim=1)
    torch.testing.assert_close(again, output, rtol=1e-5, atol=1e-5)


def test_masked_places_have_no_weight() -> None:
    model = seq2seq()
    with record(model) as recording:
        model(*batch())
    assert recording.weights(CROSS).shape == (B, H, T, S)
    assert not recording.weights(CROSS)[1, :, :, 4:].any()
    assert not recording.weights("decoder.blocks.0.self_attention").triu(1).any()


@LAYERS
def test_chosen_heads_and_queries_are_a_part_of_the_whole(position: str, mask: Mask) -> None:
    model, call = layer(position, mask)
    with record(model) as whole, record(model, heads=[3, 1], queries=[4, 0, 2]) as part:
        call()
    expected = whole.weights("one")[:, [3, 1]][:, :, [4, 0, 2]]
    torch.testing.assert_close(part.weights("one"), expected, rtol=1e-6, atol=1e-6)


def test_only_what_is_chosen_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def spy(q: Tensor, k: Tensor, **more: object) -> Tensor:
        sizes.append((*q.shape[1:3], k.shape[1]))
        return compute(q, k, **more)

    compute = heedful.core.attention.attention_weights
    monkeypatch.setattr(heedful.core.attention, "attention_weights", spy)
    model = seq2seq()
    with torch.no_grad(), record(model, CROSS, heads=[2], queries=[3]):  # where the model itself uses the fused kernel
        model(*batch())
    assert sizes == [(1, 1, 1)]


@pytest.mark.parametrize("size", [None, 8])
def test_decoding_step_by_step_reads_like_one_pass(size: int | None) -> None:
    model, (source, target, segments, ones) = seq2seq(), batch()
    with record(model) as full:
        model(source, target, segments, ones)
    with torch.no_grad(), record(model) as steps, record(model, "decoder.*", queries=[1, 3]) as chosen:
        state = model.start(source, segments, size)
        for tokens in target.unbind(1):
            _, state = model.step(tokens, state)
    for name in full.names:
        torch.testing.assert_close(steps.weights(name), full.weights(name), rtol=1e-4, atol=1e-5)
    self_attention = "decoder.blocks.1.self_attention"
    torch.testing.assert_close(
        chosen.weights(self_attention), full.weights(self_attention)[:, :, [1, 3], :4], rtol=1e-4, atol=1e-5
    )


def test_the_recurrent_models_alignment_is_recorded_step_by_step() -> None:
    model, (source, target, segments, ones) = rnn(), batch()
    with record(model) as recording:
        model(source, target, segments, ones)
    assert recording.names == ["attention"]
    weights = recording.weights("attention")
    assert weights.shape == (B, 1, T, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 1, T))
    assert not weights[2, :, :, 2:].any()
    with torch.no_grad():  # the first step by hand
        state = model.start(source, segments)
        first = model.attention.weights(state.hidden, state.keys)
    torch.testing.assert_close(weights[:, :, :1], first)
    with record(model, queries=[2, 4]) as part:
        model(source, target, segments, ones)
    torch.testing.assert_close(part.weights("attention"), weights[:, :, [2, 4]])


def test_hooks_go_whatever_happens() -> None:
    model = seq2seq()

    def fail() -> None:
        with record(model):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert not any(module._forward_hooks for module in model.modules())
    with record(model) as recording:
        model(*batch())
    model(*batch())
    assert not any(module._forward_hooks for module in model.modules())
    assert recording.weights(CROSS).shape[2] == T


def test_patterns_choose_layers() -> None:
    model = seq2seq()
    with record(model, ["encoder.*", "*.1.cross_attention"]) as recording:
        assert recording.names == [*NAMES[:2], CROSS]
    with (
        pytest.raises(InputError, match=r"no attention layer matches 'decoder\.\*\.mlp'") as error,
        record(model, ["encoder.*", "decoder.*.mlp"]),
    ):
        pass
    assert CROSS in error.value.fix


def test_what_cannot_be_shown_says_why() -> None:
    model, (source, target, segments, ones) = seq2seq(), batch()
    with record(model, "encoder.*") as recording:
        with pytest.raises(InputError, match="recorded nothing"):
            recording.weights(NAMES[0])
        model.encode(source, segments)
        model.encode(source[:2], segments[:2])
        with pytest.raises(InputError, match=r"changed between calls: \[2, 3\] rows"):
            recording.weights(NAMES[0])
        with pytest.raises(InputError, match="was not recorded"):
            recording.weights(CROSS)
    with record(model, heads=[4]), pytest.raises(InputError, match="has heads 0 to 3"):
        model(source, target, segments, ones)
