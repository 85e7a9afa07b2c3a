"""A small Evoformer, AlphaFold's block: it learns from synthetic families that residues in contact change together."""

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.lab.drawn import grids
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.learning import learn
from heedful.models.evoformer import Evoformer, EvoformerBlock, EvoformerConfig

RESIDUES, RELATIVES, KINDS, CONTACTS, STEPS = 10, 16, 4, 3, 200
CONFIG = EvoformerConfig(
    d_msa=24, d_pair=24, n_heads=2, head_dim=12, d_outer=8, d_product=16, n_layers=1, n_kinds=KINDS, furthest=4
)


def families(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences (count, relatives, residues), and which residues touch (count, residues, residues): in some pairs, one
    residue determines the other, as in base pairs; all else is random."""
    sequences = torch.randint(KINDS, (count, RELATIVES, RESIDUES), generator=generator)
    touch = torch.zeros(count, RESIDUES, RESIDUES)
    for family in range(count):
        mates = torch.randperm(RESIDUES, generator=generator)[: 2 * CONTACTS].view(-1, 2).tolist()
        for one, other in mates:
            sequences[family, :, other] = KINDS - 1 - sequences[family, :, one]
            touch[family, one, other] = touch[family, other, one] = 1
    return sequences, touch


@cache
def learnt(steps: int) -> Evoformer:
    torch.manual_seed(0)
    model, generator = Evoformer(CONFIG), torch.Generator().manual_seed(0)

    def loss(step: int) -> Tensor:
        sequences, touch = families(8, generator)
        return binary_cross_entropy_with_logits(model(sequences), touch, pos_weight=torch.tensor(5.0))

    learn(model, loss, steps=steps, lr=4e-3)
    return model


def contacts(says: Says, *, steps: Steps = STEPS) -> Shown:
    """What an output depends on in each kind of attention; and contacts that are predicted from the sequences alone."""
    model = learnt(steps)
    block = model.blocks[0]
    assert isinstance(block, EvoformerBlock)
    pair = torch.randn(1, RESIDUES, RESIDUES, CONFIG.d_pair, requires_grad=True)
    msa = torch.randn(1, RELATIVES, RESIDUES, CONFIG.d_msa, requires_grad=True)

    def reached(out: Tensor, entered: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(out.sum(), entered)
        return gradient[0].abs().sum(-1) > 0

    rows = reached(block.msa_rows(msa, pair.detach())[0, 3, 4], msa)
    columns = reached(block.msa_columns(msa.transpose(1, 2))[0, 4, 3], msa)
    triangle = reached(block.starting(pair)[0, 2, 6], pair)
    only_row, only_column = (
        bool(rows[3].all() and rows.sum() == RESIDUES),
        bool(columns[:, 4].all() and columns.sum() == RELATIVES),
    )
    # Edge (2, 6) depends on the edges (2, k), and on (6, k), which close the triangles.
    triangles = bool(triangle[2].all() and triangle[6].all() and triangle.sum() == 2 * RESIDUES)
    sequences, touch = families(40, torch.Generator().manual_seed(9))
    with torch.no_grad():
        logits = model(sequences)
    found = torch.zeros_like(touch)
    for family, own in enumerate(logits):
        best = own.triu(1).masked_fill(torch.ones_like(own).tril().bool(), -torch.inf).flatten().topk(CONTACTS).indices
        found[family].view(-1)[best] = 1
    precision = float((found * touch).sum() / found.sum())
    claim = "attention runs over rows, columns and triangles"
    every = only_row and only_column and triangles
    lines = [holds(says, claim, every)]
    facts = {"of its three surest pairs touch": precision, "by chance": 2 * CONTACTS / (RESIDUES * (RESIDUES - 1))}
    drawn = {
        "row": rows.float(),
        "column": columns.float(),
        "triangles": triangle.float(),
        "touch": touch[0],
        "told": logits[0].sigmoid(),
    }
    return Shown(lines + unsaid(facts), grids(drawn, x="", y="", columns=3))
