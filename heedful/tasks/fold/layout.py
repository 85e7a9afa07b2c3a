"""Chains as a model reads them, and its loss on them.

B chains, N sequences, R residues, D intervals of distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.data.proteins.chain import Chain
from heedful.metrics.structures import lddt
from heedful.models.fold import LDDT_LEVELS, Folded, limits
from heedful.models.frames import Frames, backbone_torsions, fape, torsion_loss

PRIOR = 64  # residues along the chain; those further apart share a number


@dataclass(frozen=True, kw_only=True)
class FoldSpec:
    """How many aligned sequences are read, and, of the training chains, how often residues touch that are 0, 1, 2 ...
    residues apart."""

    sequences: int
    prior: tuple[float, ...]


class FoldBatch(NamedTuple):
    """Chains of several lengths. `valid` is False for residues that are padding, `related` for such sequences, and
    `known` where the backbone is not known."""

    sequences: Int[Tensor, "B N R"]
    valid: Bool[Tensor, "B R"]
    related: Bool[Tensor, "B N"]
    backbone: Float[Tensor, "B R 3 3"]
    known: Bool[Tensor, "B R"]

    def to(self, device: torch.device) -> "FoldBatch":
        return FoldBatch(*(part.to(device) for part in self))


def batch_of(chains: Sequence[Chain]) -> FoldBatch:
    """All of the chains' sequences."""
    B, N, R = len(chains), max(len(each.sequences) for each in chains), max(len(each.letters) for each in chains)
    sequences = torch.zeros(B, N, R, dtype=torch.long)
    valid, related, known = (torch.zeros(B, size, dtype=torch.bool) for size in (R, N, R))
    backbone = torch.zeros(B, R, 3, 3)
    for row, chain in enumerate(chains):
        n, r = chain.sequences.shape
        sequences[row, :n, :r] = torch.from_numpy(chain.sequences)
        related[row, :n], valid[row, :r] = True, True
        if chain.backbone is not None:
            there = torch.from_numpy(chain.backbone)
            known[row, :r] = there.isfinite().all(-1).all(-1)
            backbone[row, :r] = there.nan_to_num()
    return FoldBatch(sequences, valid, related, backbone, known)


def chain_losses(folded: Folded, batch: FoldBatch) -> Float[Tensor, "B"]:
    """The loss of each chain: the error of its frames, those of distances and of angles, and of what is told of its
    agreement (Jumper et al. 2021, supplement, equation 7, without side chains and masked letters)."""
    true, known = Frames.of_backbone(batch.backbone), batch.known
    layers = [fape(frames, frames.origin, true, true.origin, known, known) for frames in folded.structure.frames]
    last, atoms = folded.structure.frames[-1], known.repeat_interleave(3, dim=1)
    final = fape(last, last.backbone().flatten(1, 2), true, batch.backbone.flatten(1, 2), known, atoms)
    both = known[:, :, None] & known[:, None]
    between = torch.bucketize(torch.cdist(true.origin, true.origin), limits(folded.distances.shape[-1], known.device))
    far = cross_entropy(folded.distances.permute(0, 3, 1, 2).float(), between, reduction="none")
    levels = cross_entropy(folded.agreement.mT.float(), _levels(last, batch), reduction="none")
    turned, angles = backbone_torsions(batch.backbone), _known_angles(known)
    each = zip(folded.structure.angles, turned, angles, strict=True)
    bent = torch.stack([torsion_loss(predicted, true_angles, there) for predicted, true_angles, there in each])
    return (
        0.5 * (final + torch.stack(layers).mean(0))
        + 0.3 * _mean(far, both)
        + 0.5 * bent / angles.sum((1, 2)).clamp(min=1)
        + 0.01 * _mean(levels, known)
    )


def _mean(values: Tensor, which: Bool[Tensor, "B *R"]) -> Float[Tensor, "B"]:
    return values.masked_fill(~which, 0.0).flatten(1).sum(1) / which.flatten(1).sum(1).clamp(min=1)


def _known_angles(known: Bool[Tensor, "B R"]) -> Bool[Tensor, "B R 3"]:
    """Where omega, phi and psi are angles between known atoms."""
    none, both = torch.zeros_like(known[:, :1]), known[:, :-1] & known[:, 1:]
    before = torch.cat([none, both], dim=1)
    return torch.stack([before, before, torch.cat([both, none], dim=1)], dim=2)


@torch.no_grad()
def _levels(frames: Frames, batch: FoldBatch) -> Int[Tensor, "B R"]:
    """The level of each residue's agreement."""
    predicted, levels = frames.backbone().float().cpu().numpy(), torch.zeros_like(batch.known, dtype=torch.long)
    rows = zip(predicted, batch.backbone.cpu().numpy(), batch.known.cpu(), strict=True)
    for row, (backbone, true, known) in enumerate(rows):
        agreed = lddt(backbone, numpy.where(known.numpy()[:, None, None], true, numpy.nan))
        levels[row] = torch.from_numpy(numpy.nan_to_num(agreed) * LDDT_LEVELS).long().clamp(max=LDDT_LEVELS - 1)
    return levels
