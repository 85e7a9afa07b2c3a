"""Scores of predicted contacts and structures.

R residues.
"""

from typing import Any

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]

TOUCH, APART = 8.0, 6  # angstroms between CAs that touch; residues along the chain between residues that are scored
SHARE = 5  # of a chain of R residues, the R / SHARE surest pairs are scored
INCLUSION, TOLERANCES = 15.0, (0.5, 1.0, 2.0, 4.0)  # angstroms


def distances(backbone: Array) -> Array:
    """Between the CAs of (R, 3, 3); NaN where one is not known."""
    ca = backbone[:, 1]
    return numpy.linalg.norm(ca[:, None] - ca, axis=-1)


def precision(scores: Array, backbone: Array) -> float | None:
    """The share of the R / 5 pairs with the largest scores that touch, of residues at least APART apart along the
    chain: the precision at L/5 of the CASP assessments, for CA. None where no two residues of known position do."""
    first, second, touch = _pairs(backbone)
    if not touch.any():
        return None
    surest = numpy.argsort(-scores[first, second], kind="stable")[: scored_pairs(backbone)]
    return float(touch[surest].mean())


def scored_pairs(backbone: Array) -> int:
    return max(1, len(backbone) // SHARE)


def share_touching(backbone: Array) -> float:
    """That of all pairs which could be scored: the precision by luck."""
    _, _, touch = _pairs(backbone)
    return float(touch.mean()) if len(touch) else 0.0


def _pairs(backbone: Array) -> tuple[Array, Array, Array]:
    """The residues of each pair of known position that could be scored, and whether they touch."""
    apart = distances(backbone)
    first, second = numpy.triu_indices(len(apart), APART)
    known = numpy.isfinite(apart[first, second])
    first, second = first[known], second[known]
    return first, second, apart[first, second] < TOUCH


def lddt(found: Array, true: Array) -> Array:
    """The local distance difference test of each residue, of CAs alone (Mariani et al. 2013): the share of its
    distances up to 15 angstroms that are right within 0.5, 1, 2 and 4, from 0 to 1. NaN for a residue without a known
    neighbour. Both are backbones (R, 3, 3)."""
    expected, seen = distances(true), distances(found)
    near = (expected < INCLUSION) & ~numpy.eye(len(expected), dtype=bool)  # False where NaN
    error = numpy.abs(seen - numpy.where(near, expected, 0.0))
    right = numpy.mean([error < tolerance for tolerance in TOLERANCES], axis=0)
    count = near.sum(1)
    return numpy.where(count > 0, (right * near).sum(1) / numpy.maximum(count, 1), numpy.nan)
