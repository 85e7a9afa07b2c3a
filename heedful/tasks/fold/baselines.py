"""What tells contacts without a Transformer: how columns of an alignment vary together, and how far apart residues are
along the chain.

N sequences, R residues, A letters.
"""

from collections.abc import Sequence

import numpy
import torch
from numpy.typing import NDArray

from heedful.data.proteins.chain import GAP, LETTERS, Chain
from heedful.metrics.structures import TOUCH, distances
from heedful.models.encoder import product_corrected
from heedful.tasks.fold.layout import PRIOR

PSEUDO = 0.5  # of a sequence: what is counted of each letter besides those that are there


def covariance(chain: Chain) -> NDArray[numpy.float32]:
    """For each two columns, the size (Frobenius norm) of the covariance of their letters, gaps left out, without what
    the means of both columns explain (Dunn et al. 2008: APC)."""
    sequences = torch.from_numpy(chain.sequences).long()
    N, A = len(sequences) + PSEUDO, len(LETTERS)
    one_hot = torch.nn.functional.one_hot(sequences, A)[:, :, :GAP].float()
    means = (one_hot.sum(0) + PSEUDO / A) / N
    both = torch.einsum("nia,njb->iajb", one_hot, one_hot) / N
    size = (both - torch.einsum("ia,jb->iajb", means, means)).square().sum((1, 3)).sqrt()
    size.fill_diagonal_(0.0)
    return product_corrected(size + 1e-9).numpy()


def contact_prior(chains: Sequence[Chain]) -> tuple[float, ...]:
    """How often residues touch that are 0, 1, 2 ... residues apart; the last is for all that are further."""
    touch, count = numpy.zeros(PRIOR), numpy.zeros(PRIOR)
    for chain in chains:
        if chain.backbone is not None:
            apart = distances(chain.backbone)
            separations = _separations(len(apart))
            known = numpy.isfinite(apart)
            numpy.add.at(count, separations[known], 1)
            numpy.add.at(touch, separations[known], apart[known] < TOUCH)
    return tuple((touch / numpy.maximum(count, 1)).tolist())


def by_prior(chain: Chain, prior: Sequence[float]) -> NDArray[numpy.float64]:
    return numpy.array(prior)[_separations(len(chain.letters))]


def _separations(length: int) -> NDArray[numpy.int64]:
    place = numpy.arange(length)
    return numpy.abs(place[:, None] - place).clip(max=PRIOR - 1)
