"""The laws of a model that folds proteins."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.models.fold import N_KINDS, Fold
from heedful.run.task import Law
from heedful.tasks.fold.use import StructurePredictor
from heedful.tasks.shared.probes import TOLERANCE, Probe
from heedful.tasks.shared.served import on_device

LENGTHS, RELATIVES = (3, 9, 5, 14), (1, 4, 3, 2)


class FoldProbe(Probe[Fold]):
    """A probe on random alignments: the logits of distances from each residue."""

    def __init__(self, predictor: StructurePredictor, texts: Sequence[str]) -> None:
        draw = torch.Generator().manual_seed(0)
        sequences = torch.randint(N_KINDS, (len(LENGTHS), max(RELATIVES), max(LENGTHS)), generator=draw)
        valid, related = (torch.arange(max(sizes)) < torch.tensor(sizes)[:, None] for sizes in (LENGTHS, RELATIVES))
        super().__init__(predictor.model, (sequences, valid, related), valid)

    def __iter__(self) -> Iterator[Law]:
        sequences, valid, related = self.inputs
        turned = torch.cat([sequences[:, :1], sequences[:, 1:].flip(1)], dim=1)
        order = torch.cat([related[:, :1], related[:, 1:].flip(1)], dim=1)
        with torch.no_grad():
            moved = self.read(turned, valid, order)
        yield Law(
            "the order of relatives changes nothing",
            self.difference(moved),
            TOLERANCE,
            otherwise="an alignment in another order would fold otherwise",
        )
        yield from super().__iter__()

    def read(self, *inputs: Tensor) -> Tensor:
        """Distances to residues that are padding are left out."""
        folded = self.model(*on_device(inputs, self.device))
        R, valid = len(self.real[0]), inputs[1]
        distances = folded.distances.cpu()
        distances = distances.masked_fill(~valid[:, None, :, None], 0.0)
        return pad(distances, (0, 0, 0, max(0, R - distances.shape[2])))[:, :, :R].flatten(2)

    @torch.no_grad()
    def padded(self) -> Tensor:
        sequences, valid, related = self.inputs
        wider = pad(sequences, (0, 7, 0, 2), value=4)
        return self.read(wider, pad(valid, (0, 7)), pad(related, (0, 2)))[:, : self.full.shape[1]]

    def alone(self, row: int) -> Tensor:
        sequences, valid, related = (part[row : row + 1] for part in self.inputs)
        n, r = RELATIVES[row], LENGTHS[row]
        return self.read(sequences[:, :n, :r], valid[:, :r], related[:, :n])
