"""AlphaFold's trunk in small (Jumper et al. 2021, supplement 1.6, algorithm 6): many relatives of one
sequence, and a vector for each pair of its residues; the two exchange information.

All of its attention is the core's, along one axis at a time, with a bias computed from the pairs and with a gate.
Left out: dropout, and templates. `heedful.models.fold` adds recycling and a structure.

B batch, N sequences, R residues, I rows of J entries each, M width of a sequence's residue, C width of a pair,
D logits of a pair.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.attention import Attention, AttentionConfig
from heedful.core.block import MLP, BlockConfig
from heedful.core.embed import Table
from heedful.core.mask import EVERYONE, Mask

FACTOR = 4  # how much wider the MLPs are inside (algorithms 9 and 15)


@dataclass(frozen=True, kw_only=True)
class EvoformerConfig:
    d_msa: int
    d_pair: int
    n_heads: int
    head_dim: int
    d_outer: int  # width of each side of an outer product (algorithm 10)
    d_product: int  # of the triangle products (algorithms 11 and 12)
    n_layers: int
    n_kinds: int  # of residues
    furthest: int = 32  # all larger distances along the sequence share one vector (algorithm 4)
    n_outputs: int = 1  # logits of a pair of residues: 1 is that they touch


class RowAttention(nn.Module):
    """Gated attention within each row of a normed table, with a bias from pairs where there are
    some (algorithms 7 and 8)."""

    def __init__(self, d_model: int, config: EvoformerConfig, d_pair: int | None = None) -> None:
        super().__init__()
        heads = AttentionConfig(n_heads=config.n_heads, head_dim=config.head_dim, bias=False, out_bias=True, gate=True)
        self.attention = Attention(d_model, heads)
        self.bias = nn.Linear(d_pair, config.n_heads, bias=False) if d_pair else None

    def forward(
        self,
        x: Float[Tensor, "B I J M"],
        pair: Float[Tensor, "B J J C"] | None = None,
        valid: Bool[Tensor, "B J"] | None = None,
    ) -> Float[Tensor, "B I J M"]:
        rows, bias, per_row = x.flatten(0, 1), None, x.shape[1]
        if self.bias is not None and pair is not None:
            bias = self.bias(pair).permute(0, 3, 1, 2).repeat_interleave(per_row, dim=0)
        mask = EVERYONE if valid is None else Mask(valid=valid.repeat_interleave(per_row, dim=0))
        kv = self.attention.keys_values(rows)
        return self.attention(self.attention.queries(rows), kv, mask=mask, bias=bias).view_as(x)


class TriangleAttention(nn.Module):
    """Row attention over the pairs themselves. Around the starting node, an edge (i, j) looks at the edges (i, k), and
    the edge (j, k), which closes the triangle, is the bias (algorithm 13). Around the ending node it is the same with
    the transposed table: it looks at the edges (k, j), and the bias is the edge (k, i) (algorithm 14)."""

    def __init__(self, config: EvoformerConfig, around: Literal["start", "end"]) -> None:
        super().__init__()
        self.around = around
        self.norm = nn.LayerNorm(config.d_pair)
        self.rows = RowAttention(config.d_pair, config, config.d_pair)

    def forward(
        self, pair: Float[Tensor, "B R R C"], valid: Bool[Tensor, "B R"] | None = None
    ) -> Float[Tensor, "B R R C"]:
        x = self.norm(pair)
        if self.around == "start":
            return self.rows(x, x, valid)
        turned = x.transpose(1, 2)
        return self.rows(turned, turned, valid).transpose(1, 2)


class TriangleProduct(nn.Module):
    """Each edge from the two other edges of each triangle: outgoing, (i, k) and (j, k); incoming, (k, i) and (k, j),
    summed over k (algorithms 11 and 12)."""

    def __init__(self, config: EvoformerConfig, edges: Literal["outgoing", "incoming"]) -> None:
        super().__init__()
        C, D = config.d_pair, config.d_product
        self.edges = edges
        self.norm = nn.LayerNorm(C)
        self.sides, self.side_gates = nn.Linear(C, 2 * D), nn.Linear(C, 2 * D)
        self.product_norm = nn.LayerNorm(D)
        self.out, self.gate = nn.Linear(D, C), nn.Linear(C, C)

    def forward(
        self, pair: Float[Tensor, "B R R C"], valid: Bool[Tensor, "B R"] | None = None
    ) -> Float[Tensor, "B R R C"]:
        x = self.norm(pair)
        sides = self.sides(x) * self.side_gates(x).sigmoid()
        if valid is not None:
            sides = sides * (valid[:, :, None] & valid[:, None])[..., None]
        a, b = sides.chunk(2, dim=-1)
        paths = "bikc,bjkc->bijc" if self.edges == "outgoing" else "bkic,bkjc->bijc"
        return self.out(self.product_norm(torch.einsum(paths, a, b))) * self.gate(x).sigmoid()


class OuterProductMean(nn.Module):
    """Vectors of pairs of residues, from how both vary together over the sequences that are `related` (algorithm
    10)."""

    def __init__(self, config: EvoformerConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_msa)
        self.sides = nn.Linear(config.d_msa, 2 * config.d_outer)
        self.out = nn.Linear(config.d_outer**2, config.d_pair)

    def forward(
        self, msa: Float[Tensor, "B N R M"], related: Bool[Tensor, "B N"] | None = None
    ) -> Float[Tensor, "B R R C"]:
        a, b = self.sides(self.norm(msa)).chunk(2, dim=-1)
        count: int | Tensor = msa.shape[1]
        if related is not None:
            a, count = a * related[:, :, None, None], related.sum(1)[:, None, None, None]
        return self.out(torch.einsum("bnic,bnjd->bijcd", a, b).flatten(3) / count)


class Transition(nn.Module):
    """An MLP of each entry alone, after a norm (algorithms 9 and 15)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        # A block's configuration has an attention, which the MLP does not use.
        self.mlp = MLP(width, BlockConfig(attention=AttentionConfig(n_heads=1), d_ff=FACTOR * width))

    def forward(self, x: Float[Tensor, "B I J D"]) -> Float[Tensor, "B I J D"]:
        return self.mlp(self.norm(x).flatten(0, 1)).view_as(x)


class EvoformerBlock(nn.Module):
    """Algorithm 6: the output of each branch is added to its input."""

    def __init__(self, config: EvoformerConfig) -> None:
        super().__init__()
        self.row_norm, self.pair_norm = nn.LayerNorm(config.d_msa), nn.LayerNorm(config.d_pair)
        self.msa_rows = RowAttention(config.d_msa, config, config.d_pair)
        self.column_norm = nn.LayerNorm(config.d_msa)
        self.msa_columns = RowAttention(config.d_msa, config)
        self.msa_transition = Transition(config.d_msa)
        self.outer_product = OuterProductMean(config)
        self.outgoing, self.incoming = TriangleProduct(config, "outgoing"), TriangleProduct(config, "incoming")
        self.starting, self.ending = TriangleAttention(config, "start"), TriangleAttention(config, "end")
        self.pair_transition = Transition(config.d_pair)

    def forward(
        self,
        msa: Float[Tensor, "B N R M"],
        pair: Float[Tensor, "B R R C"],
        valid: Bool[Tensor, "B R"] | None = None,
        related: Bool[Tensor, "B N"] | None = None,
    ) -> tuple[Float[Tensor, "B N R M"], Float[Tensor, "B R R C"]]:
        """`valid` is False where a residue is padding, and `related` where a whole sequence is."""
        msa = msa + self.msa_rows(self.row_norm(msa), self.pair_norm(pair), valid)
        columns = self.column_norm(msa).transpose(1, 2)
        msa = msa + self.msa_columns(columns, valid=related).transpose(1, 2)
        msa = msa + self.msa_transition(msa)
        pair = pair + self.outer_product(msa, related)
        for triangles in (self.outgoing, self.incoming, self.starting, self.ending):
            pair = pair + triangles(pair, valid)
        return msa, pair + self.pair_transition(pair)


class Evoformer(nn.Module):
    """Blocks over aligned sequences, and a head of what is to be told of each pair of residues: whether they touch, or
    of several distances, how probable each is."""

    def __init__(self, config: EvoformerConfig) -> None:
        super().__init__()
        self.config = config
        self.residues = Table(config.n_kinds, config.d_msa)
        self.left, self.right = Table(config.n_kinds, config.d_pair), Table(config.n_kinds, config.d_pair)
        self.offsets = Table(2 * config.furthest + 1, config.d_pair)
        self.blocks = nn.ModuleList(EvoformerBlock(config) for _ in range(config.n_layers))
        self.head = nn.Linear(config.d_pair, config.n_outputs)

    def forward(
        self, sequences: Int[Tensor, "B N R"], valid: Bool[Tensor, "B R"] | None = None
    ) -> Float[Tensor, "B R R"]:
        """The logit of each pair of residues of the first sequence that they touch, the same in either order.
        The other sequences are its relatives, aligned to it."""
        _, pair = self.through(*self.embed(sequences), valid)
        return self.tell(pair)[..., 0]

    def embed(self, sequences: Int[Tensor, "B N R"]) -> tuple[Float[Tensor, "B N R M"], Float[Tensor, "B R R C"]]:
        """What the first block gets (algorithms 3 and 4)."""
        first, R = sequences[:, 0], sequences.shape[2]
        where = torch.arange(R, device=sequences.device)
        offset = (where[:, None] - where).clamp(-self.config.furthest, self.config.furthest) + self.config.furthest
        return self.residues(sequences), self.left(first)[:, :, None] + self.right(first)[:, None] + self.offsets(
            offset
        )

    def through(
        self,
        msa: Float[Tensor, "B N R M"],
        pair: Float[Tensor, "B R R C"],
        valid: Bool[Tensor, "B R"] | None = None,
        related: Bool[Tensor, "B N"] | None = None,
    ) -> tuple[Float[Tensor, "B N R M"], Float[Tensor, "B R R C"]]:
        """What the last block gives."""
        for block in self.blocks:
            msa, pair = block(msa, pair, valid, related)
        return msa, pair

    def tell(self, pair: Float[Tensor, "B R R C"]) -> Float[Tensor, "B R R D"]:
        """The head's logits, the same in either order of two residues."""
        return self.head(F.layer_norm(pair + pair.transpose(1, 2), pair.shape[-1:]))
