"""AlphaFold in small (Jumper et al. 2021, supplement, algorithm 2): an Evoformer, a structure module, and recycling of
what both found.

B batch, N sequences, R residues, M width of a sequence's residue, C width of a pair, D intervals of distances.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.embed import Table
from heedful.models.evoformer import Evoformer, EvoformerConfig
from heedful.models.structure import Structure, StructureConfig, StructureModule

N_KINDS = 22  # the 20 residues, an unknown one, a gap
NEAREST, FURTHEST = 2.3125, 21.6875  # angstroms, of the first limit between two intervals, and of the last
RECYCLED = (3.375, 20.875, 15)  # the same of recycled distances (algorithm 32), and their number
LDDT_LEVELS = 50  # into which the agreement of a residue's distances is divided (algorithm 29)


@dataclass(frozen=True, kw_only=True)
class FoldConfig:
    """`trunk.n_outputs` is the number of intervals of distances."""

    trunk: EvoformerConfig
    structure: StructureConfig
    recycles: int = 3  # passes before the last, by default


@dataclass(frozen=True, kw_only=True)
class FoldSize:
    n_layers: int
    d_msa: int
    d_pair: int
    n_heads: int
    head_dim: int
    structure_layers: int
    recycles: int = 1
    distances: int = 64


FOLDS: Mapping[str, FoldSize] = {
    "fold-nano": FoldSize(n_layers=2, d_msa=32, d_pair=32, n_heads=4, head_dim=8, structure_layers=3),
    "fold-small": FoldSize(n_layers=4, d_msa=64, d_pair=64, n_heads=4, head_dim=16, structure_layers=4),
}


def fold_config(row: FoldSize) -> FoldConfig:
    trunk = EvoformerConfig(
        d_msa=row.d_msa,
        d_pair=row.d_pair,
        n_heads=row.n_heads,
        head_dim=row.head_dim,
        d_outer=row.head_dim,
        d_product=row.d_pair,
        n_layers=row.n_layers,
        n_kinds=N_KINDS,
        n_outputs=row.distances,
    )
    structure = StructureConfig(
        d_single=row.d_msa,
        n_heads=row.n_heads,
        head_dim=row.head_dim,
        n_layers=row.structure_layers,
        d_angles=row.d_msa,
    )
    return FoldConfig(trunk=trunk, structure=structure, recycles=row.recycles)


class Folded(NamedTuple):
    """Logits of the distance of each two residues, and of each residue's level of agreement (lDDT), and the
    structure."""

    distances: Float[Tensor, "B R R D"]
    agreement: Float[Tensor, "B R L"]
    structure: Structure


class Recycling(nn.Module):
    """What a pass found, for the next: the first sequence, the pairs, and how far apart residues are (algorithm 32)."""

    def __init__(self, config: EvoformerConfig) -> None:
        super().__init__()
        self.msa_norm, self.pair_norm = nn.LayerNorm(config.d_msa), nn.LayerNorm(config.d_pair)
        self.distances = Table(RECYCLED[2] + 1, config.d_pair)

    def forward(
        self, first: Float[Tensor, "B R M"], pair: Float[Tensor, "B R R C"], origins: Float[Tensor, "B R 3"]
    ) -> tuple[Float[Tensor, "B R M"], Float[Tensor, "B R R C"]]:
        """What is added to the first sequence and to the pairs."""
        limits = torch.linspace(*RECYCLED, device=origins.device)
        between = torch.bucketize(torch.cdist(origins.float(), origins.float()), limits)
        return self.msa_norm(first), self.pair_norm(pair) + self.distances(between)


class Fold(nn.Module):
    """Weights begin as torch begins them, but that frames begin at rest."""

    def __init__(self, config: FoldConfig) -> None:
        super().__init__()
        M = config.trunk.d_msa
        self.config = config
        self.trunk = Evoformer(config.trunk)
        self.recycling = Recycling(config.trunk)
        self.single = nn.Linear(M, config.structure.d_single)
        self.structure = StructureModule(config.structure, config.trunk.d_pair)
        self.agreement = nn.Sequential(nn.LayerNorm(M), nn.Linear(M, M), nn.ReLU(), nn.Linear(M, LDDT_LEVELS))
        for weight in self.structure.update.parameters():
            nn.init.zeros_(weight)

    def forward(
        self,
        sequences: Int[Tensor, "B N R"],
        valid: Bool[Tensor, "B R"] | None = None,
        related: Bool[Tensor, "B N"] | None = None,
        *,
        recycles: int | None = None,
    ) -> Folded:
        """The first sequence folds; the others are its relatives, aligned to it. `valid` is False where a residue is
        padding, and `related` where a sequence is. Passes before the last, of which there are `recycles` (None: as
        configured), have no gradients."""
        before: tuple[Tensor, Tensor, Tensor] | None = None
        for _ in range(self.config.recycles if recycles is None else recycles):
            with torch.no_grad():
                before = self._one(sequences, valid, related, before)[1]
        return self._one(sequences, valid, related, before)[0]

    def _one(
        self,
        sequences: Tensor,
        valid: Tensor | None,
        related: Tensor | None,
        before: tuple[Tensor, Tensor, Tensor] | None,
    ) -> tuple[Folded, tuple[Tensor, Tensor, Tensor]]:
        """A pass, and what the next gets of it."""
        msa, pair = self.trunk.embed(sequences)
        if before is not None:
            first, added = self.recycling(*before)
            msa = torch.cat([msa[:, :1] + first[:, None], msa[:, 1:]], dim=1)
            pair = pair + added
        msa, pair = self.trunk.through(msa, pair, valid, related)
        structure = self.structure(self.single(msa[:, 0]), pair, valid)
        folded = Folded(self.trunk.tell(pair), self.agreement(structure.single), structure)
        return folded, (msa[:, 0], pair, structure.frames[-1].origin)


def limits(n_distances: int, device: torch.device | None = None) -> Float[Tensor, "L"]:
    """The distances (angstroms) between the intervals, one fewer than these."""
    return torch.linspace(NEAREST, FURTHEST, n_distances - 1, device=device)
