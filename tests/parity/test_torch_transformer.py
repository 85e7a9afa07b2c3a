"""Stacks against `torch.nn.Transformer`, with loud weights: another author's reading of the same paper, and the one
with pre-norm too. Its masks say who may *not* look; ours say who may.

No element differs by more than 1e-5 of the tensor's largest in single precision, and by more than 1e-9 in double
precision, in which gradients are compared.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, Context, Memory, Stack, StackConfig
from heedful.core.mask import Mask
from heedful.exchange.hf.rules import Rule, to_ours
from loud import make_loud
from nearly import close

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # that it will not be used

B, S, T, C, H, FF = 3, 7, 5, 16, 4, 24
SOURCE_VALID = torch.arange(S) < torch.tensor([[7], [4], [1]])
TARGET_VALID = torch.arange(T) < torch.tensor([[2], [5], [4]])

LAYER = {
    "self_attn.query": "self_attention.query",
    "self_attn.key": "self_attention.key",
    "self_attn.value": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "multihead_attn.query": "cross_attention.query",
    "multihead_attn.key": "cross_attention.key",
    "multihead_attn.value": "cross_attention.value",
    "multihead_attn.out_proj": "cross_attention.out",
    "linear1": "mlp.up",
    "linear2": "mlp.down",
}
NORMS = {
    "encoder": ["self_residual", "mlp_residual"],
    "decoder": ["self_residual", "cross_residual", "mlp_residual"],
}


def rules(order: str) -> list[Rule]:
    norm = {"post": "out_norm", "pre": "in_norm"}[order]
    table = []
    for stack, residuals in NORMS.items():
        names = LAYER | {f"norm{i}": f"{residual}.{norm}" for i, residual in enumerate(residuals, 1)}
        for kind in ("weight", "bias"):
            table += [
                Rule(f"{stack}.layers.{{i}}.{theirs}.{kind}", f"{stack}.blocks.{{i}}.{ours}.{kind}")
                for theirs, ours in names.items()
            ]
            table.append(Rule(f"{stack}.norm.{kind}", f"{stack}.norm.{kind}"))
    return table


def parted(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Theirs, with the joined projections cut into those of query, key and value."""
    out = {}
    for name, tensor in tensors.items():
        head, joined, kind = name.rpartition("in_proj_")
        if joined:
            parts = zip(("query", "key", "value"), tensor.chunk(3), strict=True)
            out |= {f"{head}{part}.{kind}": value for part, value in parts}
        else:
            out[name] = tensor
    return out


class Ours(nn.Module):
    def __init__(self, order: str, activation: str) -> None:
        super().__init__()
        attention = AttentionConfig(n_heads=H)

        def stack(n_layers: int, cross: AttentionConfig | None) -> Stack:
            block = BlockConfig(attention=attention, cross=cross, d_ff=FF, order=order, activation=activation)
            return Stack(C, StackConfig(n_layers=n_layers, block=block, final_norm=True))

        self.encoder, self.decoder = stack(2, None), stack(3, attention)

    def forward(self, source: Tensor, target: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
        memory = self.encoder(source, Context(mask=Mask(valid=SOURCE_VALID)))
        context = Context(mask=Mask(causal=causal, valid=TARGET_VALID), memory=Memory(memory, Mask(valid=SOURCE_VALID)))
        return memory, self.decoder(target, context)


class Pair(NamedTuple):
    theirs: nn.Transformer
    ours: Ours
    rules: list[Rule]


def pair(order: str, activation: str) -> Pair:
    theirs = nn.Transformer(
        C,
        H,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dim_feedforward=FF,
        dropout=0.0,  # and training mode: in evaluation it takes a fast path, which is another implementation
        activation=activation,
        batch_first=True,
        norm_first=order == "pre",
    )
    make_loud(theirs, norm=1.0)
    ours, table = Ours(order, activation), rules(order)
    ours.load_state_dict(to_ours(table, parted(theirs.state_dict()), ours.state_dict()))
    return Pair(theirs, ours, table)


def run_theirs(model: nn.Transformer, source: Tensor, target: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    forbidden = torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None
    memory = model.encoder(source, src_key_padding_mask=~SOURCE_VALID)
    out = model(
        source,
        target,
        tgt_mask=forbidden,
        src_key_padding_mask=~SOURCE_VALID,
        tgt_key_padding_mask=~TARGET_VALID,
        memory_key_padding_mask=~SOURCE_VALID,
    )
    return memory, out


CASES = [(order, activation) for order in ("post", "pre") for activation in ("relu", "gelu")]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("order", "activation"), CASES)
def test_outputs(order: str, activation: str, causal: bool) -> None:
    theirs, ours, _ = pair(order, activation)
    source, target = torch.randn(B, S, C), torch.randn(B, T, C)
    their_memory, their_out = run_theirs(theirs, source, target, causal=causal)
    memory, out = ours(source, target, causal=causal)
    close(memory[SOURCE_VALID], their_memory[SOURCE_VALID], "memory")
    close(out[TARGET_VALID], their_out[TARGET_VALID], "output")
    with torch.no_grad():
        close(ours(source, target, causal=causal)[1][TARGET_VALID], their_out[TARGET_VALID], "output without gradients")


@pytest.mark.parametrize(("order", "activation"), CASES)
def test_gradients_of_inputs_and_every_parameter(order: str, activation: str) -> None:
    theirs, ours, table = pair(order, activation)
    theirs.double()
    ours.double()
    pull = torch.randn(int(TARGET_VALID.sum()), C, dtype=torch.float64)
    source, target = (torch.randn(B, n, C, dtype=torch.float64, requires_grad=True) for n in (S, T))
    (run_theirs(theirs, source, target, causal=True)[1][TARGET_VALID] * pull).sum().backward()
    expected = to_ours(table, parted({name: w.grad for name, w in theirs.named_parameters()}), ours.state_dict())
    expected |= {"source": source.grad, "target": target.grad}
    source.grad = target.grad = None
    (ours(source, target, causal=True)[1][TARGET_VALID] * pull).sum().backward()
    found = {name: weight.grad for name, weight in ours.named_parameters()}
    found |= {"source": source.grad, "target": target.grad}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        if name.endswith(".key.bias"):  # adds the same to every score of a query, which no softmax sees
            assert max(float(gradient.abs().max()), float(found[name].abs().max())) < 1e-12
        else:
            close(found[name], gradient, name)
