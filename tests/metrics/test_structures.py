"""Scores of contacts and structures."""

import numpy
import pytest

from heedful.metrics.structures import APART, distances, lddt, precision, share_touching


def line(count: int, step: float = 3.8) -> numpy.ndarray:
    """Residues on a straight line."""
    backbone = numpy.zeros((count, 3, 3))
    backbone[:, :, 0] = step * numpy.arange(count)[:, None]
    return backbone


def test_precision_counts_the_surest_of_what_is_known() -> None:
    backbone = line(10)
    backbone[9] = backbone[1]  # touches 0 to 3 of those far away
    backbone[9, :, 1] = 5.0
    touch = distances(backbone) < 8
    far = [(i, j) for i in range(10) for j in range(10) if j - i >= APART]
    assert [pair for pair in far if touch[pair]] == [(0, 9), (1, 9), (2, 9)]
    assert share_touching(backbone) == 3 / len(far)
    scores = numpy.zeros((10, 10))
    scores[0, 9], scores[2, 8] = 2.0, 1.0
    assert precision(scores, backbone) == 0.5  # 10 / 5 pairs, of which one touches
    scores[2, 8], scores[1, 2] = 0.0, 9.0  # too near along the chain
    scores[1, 9] = 1.0
    assert precision(scores, backbone) == 1.0
    backbone[0] = numpy.nan
    scores[0, 9], scores[1, 9], scores[2, 8] = 3.0, 2.0, 1.0
    assert precision(scores, backbone) == 0.5  # what is not known is not asked for
    assert precision(scores, line(10)) is None


def test_lddt_by_loops_and_under_motion() -> None:
    draw = numpy.random.default_rng(0)
    true, found = draw.normal(0, 6, (12, 3, 3)), draw.normal(0, 6, (12, 3, 3))
    true[4] = numpy.nan
    scores = lddt(found, true)
    for i in range(12):
        shares = []
        for j in range(12):
            apart = numpy.linalg.norm(true[i, 1] - true[j, 1])
            if i != j and apart < 15:
                error = abs(numpy.linalg.norm(found[i, 1] - found[j, 1]) - apart)
                shares.append(numpy.mean([error < limit for limit in (0.5, 1, 2, 4)]))
        assert numpy.isnan(scores[i]) if i == 4 else scores[i] == pytest.approx(numpy.mean(shares))
    turn, _ = numpy.linalg.qr(draw.normal(size=(3, 3)))
    numpy.testing.assert_allclose(lddt(found @ turn + 7.0, true), scores, atol=1e-9)
    assert numpy.nanmin(lddt(true @ turn, true)) == 1.0
