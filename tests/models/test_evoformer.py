"""AlphaFold's trunk in small: its laws, its triangles by loops, and against Hugging Face's of ESMFold."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from transformers.models.esm.modeling_esmfold import (
    EsmFoldResidueMLP,
    EsmFoldSelfAttention,
    EsmFoldTriangleAttention,
    EsmFoldTriangleMultiplicativeUpdate,
)

from heedful.models import config_of, model_from
from heedful.models.evoformer import (
    Evoformer,
    EvoformerBlock,
    EvoformerConfig,
    OuterProductMean,
    RowAttention,
    Transition,
    TriangleAttention,
    TriangleProduct,
)
from loud import make_loud

B, N, R, M, C, H = 2, 3, 5, 12, 8, 2
CONFIG = EvoformerConfig(
    d_msa=M, d_pair=C, n_heads=H, head_dim=4, d_outer=3, d_product=C, n_layers=2, n_kinds=4, furthest=3
)


def loud(module: nn.Module) -> nn.Module:
    return make_loud(module).eval()


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.fixture
def tables() -> tuple[Tensor, Tensor]:
    return torch.randn(B, N, R, M), torch.randn(B, R, R, C)


def test_a_block_knows_no_order(tables: tuple[Tensor, Tensor]) -> None:
    """Residues in another order come out in that order, on both axes of the pairs; so do sequences, and no pair sees in
    which order they came."""
    block = loud(EvoformerBlock(CONFIG))
    msa, pair = tables
    plain = block(msa, pair)
    order = torch.randperm(R)
    moved = block(msa[:, :, order], pair[:, order][:, :, order])
    close(moved[0], plain[0][:, :, order])
    close(moved[1], plain[1][:, order][:, :, order])
    relatives = torch.randperm(N)
    moved = block(msa[:, relatives], pair)
    close(moved[0], plain[0][:, relatives])
    close(moved[1], plain[1])


def test_padding_changes_nothing(tables: tuple[Tensor, Tensor]) -> None:
    block = loud(EvoformerBlock(CONFIG))
    msa, pair = tables
    valid = torch.arange(R) < torch.tensor([[R - 2], [R]])
    rows = block(msa, pair, valid)
    short = block(msa[:1, :, : R - 2], pair[:1, : R - 2, : R - 2])
    close(rows[0][:1, :, : R - 2], short[0])
    close(rows[1][:1, : R - 2, : R - 2], short[1])
    close(rows[1][1:], block(msa[1:], pair[1:])[1])


def test_sequences_that_are_padding_change_nothing(tables: tuple[Tensor, Tensor]) -> None:
    block = loud(EvoformerBlock(CONFIG))
    msa, pair = tables
    related = torch.tensor([[True] * N, [True] * (N - 1) + [False]])
    rows, plain = block(msa, pair, None, related), block(msa, pair)
    short = block(msa[1:, : N - 1], pair[1:])
    for i in range(2):
        close(rows[i][:1], plain[i][:1])
        close(rows[i][1:] if i else rows[i][1:, : N - 1], short[i])


def test_triangle_attention_by_loops(tables: tuple[Tensor, Tensor]) -> None:
    """Algorithm 13, edge by edge."""
    layer = loud(TriangleAttention(CONFIG, "start"))
    x = layer.norm(tables[1])[0]
    maps = layer.rows.attention
    q, k, v = ((x @ part.weight.T).unflatten(-1, (H, -1)) for part in (maps.query, maps.key, maps.value))
    bias, gate = x @ layer.rows.bias.weight.T, (x @ maps.gate.weight.T + maps.gate.bias).sigmoid()
    for i in range(R):
        for j in range(R):
            found = []
            for h in range(H):
                scores = torch.stack([q[i, j, h] @ k[i, t, h] / 2 + bias[j, t, h] for t in range(R)])
                found.append(scores.softmax(0) @ v[i, :, h])
            edge = maps.out(gate[i, j] * torch.cat(found))
            close(layer(tables[1])[0, i, j], edge)


def test_around_the_end_is_around_the_start_turned_over(tables: tuple[Tensor, Tensor]) -> None:
    start, end = loud(TriangleAttention(CONFIG, "start")), loud(TriangleAttention(CONFIG, "end"))
    end.load_state_dict(start.state_dict())
    close(end(tables[1]), start(tables[1].transpose(1, 2)).transpose(1, 2))
    assert not torch.allclose(end(tables[1]), start(tables[1]))


def test_an_edge_is_told_by_the_edges_of_its_triangles(tables: tuple[Tensor, Tensor]) -> None:
    """Which others the edge (0, 1) comes of: those from 0 (to 0), and for products those from 1 (to 1) too."""

    def reached(layer: nn.Module) -> Tensor:
        pair = tables[1].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(layer(pair)[0, 0, 1].sum(), pair)
        return gradient[0].abs().sum(-1) > 0

    rows = torch.zeros(R, R, dtype=torch.bool)
    rows[:2] = True
    incoming = rows.T.clone()
    incoming[0, 1] = True  # its own gate
    assert torch.equal(reached(loud(TriangleAttention(CONFIG, "start"))), rows)
    assert torch.equal(reached(loud(TriangleProduct(CONFIG, "outgoing"))), rows)
    assert torch.equal(reached(loud(TriangleProduct(CONFIG, "incoming"))), incoming)


def test_outer_product_mean_by_loops(tables: tuple[Tensor, Tensor]) -> None:
    layer = loud(OuterProductMean(CONFIG))
    a, b = layer.sides(layer.norm(tables[0])).chunk(2, dim=-1)
    outer = sum(torch.outer(a[0, n, 1], b[0, n, 3]) for n in range(N)) / N
    close(layer(tables[0])[0, 1, 3], layer.out(outer.flatten()))


def test_a_pair_begins_as_both_of_its_residues_and_their_offset() -> None:
    """Jumper et al. 2021, supplement, algorithms 3 and 4."""
    model, seen = loud(Evoformer(CONFIG)), list[Tensor]()
    model.blocks[0].register_forward_pre_hook(lambda block, given: seen.append(given[1]))
    sequences = torch.randint(4, (1, N, R))
    model(sequences)
    left, right, offsets = (table.weight.detach() for table in (model.left, model.right, model.offsets))
    for i, one in enumerate(sequences[0, 0]):
        for j, other in enumerate(sequences[0, 0]):
            close(seen[0][0, i, j].detach(), left[one] + right[other] + offsets[max(-3, min(3, i - j)) + 3])


def test_contacts_are_symmetric_and_know_no_order_of_relatives() -> None:
    model = loud(Evoformer(CONFIG))
    sequences = torch.randint(4, (B, N, R))
    logits = model(sequences)
    close(logits, logits.mT)
    close(model(sequences[:, [0, 2, 1]]), logits)
    assert not torch.allclose(model(sequences[:, [1, 0, 2]]), logits)  # the first is the one that is asked for
    again = model_from(config_of(model)).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(sequences), logits)


@pytest.mark.parametrize("around", ["start", "end"])
def test_triangle_attention_against_hugging_face(around: str, tables: tuple[Tensor, Tensor]) -> None:
    theirs = loud(EsmFoldTriangleAttention(C, 4, H, starting=around == "start"))
    own = loud(TriangleAttention(CONFIG, around))
    with torch.no_grad():
        own.norm.load_state_dict({name: getattr(theirs.layer_norm, name) for name in ("weight", "bias")})
        own.rows.bias.weight.copy_(theirs.linear.weight)
        for name, part in zip("qkvo", ("query", "key", "value", "out"), strict=True):
            getattr(own.rows.attention, part).weight.copy_(getattr(theirs.mha, f"linear_{name}").weight)
        own.rows.attention.gate.load_state_dict(theirs.mha.linear_g.state_dict())
        own.rows.attention.out.bias.copy_(theirs.mha.linear_o.bias)
    close(own(tables[1]), theirs(tables[1]))


@pytest.mark.parametrize("edges", ["outgoing", "incoming"])
def test_triangle_products_against_hugging_face(edges: str, tables: tuple[Tensor, Tensor]) -> None:
    class Sizes:
        pairwise_state_dim = C

    theirs = loud(EsmFoldTriangleMultiplicativeUpdate(Sizes(), _outgoing=edges == "outgoing"))
    own = loud(TriangleProduct(CONFIG, edges))
    with torch.no_grad():
        for part, names in ((own.sides, ("a_p", "b_p")), (own.side_gates, ("a_g", "b_g"))):
            both = [getattr(theirs, f"linear_{name}") for name in names]
            part.weight.copy_(torch.cat([one.weight for one in both]))
            part.bias.copy_(torch.cat([one.bias for one in both]))
        for part, their in ((own.out, theirs.linear_z), (own.gate, theirs.linear_g)):
            part.load_state_dict(their.state_dict())
        for part, their in ((own.norm, theirs.layer_norm_in), (own.product_norm, theirs.layer_norm_out)):
            part.load_state_dict(their.state_dict())
    close(own(tables[1]), theirs(tables[1]))


def test_row_attention_and_transition_against_hugging_face(tables: tuple[Tensor, Tensor]) -> None:
    """Of one sequence, with a bias from pairs and padding."""
    msa, pair = tables[0][:, :1], tables[1]
    theirs, own = (
        loud(EsmFoldSelfAttention(M, H, M // H, gated=True)),
        loud(RowAttention(M, replace(CONFIG, head_dim=M // H), C)),
    )
    with torch.no_grad():
        # They keep queries, keys and values of a head next to each other.
        parts = theirs.proj.weight.unflatten(0, (H, 3, -1))
        for i, part in enumerate((own.attention.query, own.attention.key, own.attention.value)):
            part.weight.copy_(parts[:, i].flatten(0, 1))
    own.attention.gate.load_state_dict(theirs.g_proj.state_dict())
    own.attention.out.load_state_dict(theirs.o_proj.state_dict())
    valid = torch.arange(R) < torch.tensor([[R - 2], [R]])
    expected, _ = theirs(msa[:, 0], mask=valid, bias=own.bias(pair))
    close(own(msa, pair, valid)[:, 0][valid], expected[valid])
    mlp, transition = loud(EsmFoldResidueMLP(M, 4 * M)), loud(Transition(M))
    own_parts = (transition.norm, transition.mlp.up, transition.mlp.down)
    for their, part in zip((mlp.mlp[0], mlp.mlp[1], mlp.mlp[3]), own_parts, strict=True):
        part.load_state_dict(their.state_dict())
    close(msa + transition(msa), mlp(msa))
