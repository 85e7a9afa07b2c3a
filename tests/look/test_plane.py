"""Vectors in the plane: principal components by another way, and neighbours that stay neighbours."""

import numpy
import pytest

from heedful.errors import InputError
from heedful.look.draw import to_bytes
from heedful.look.plane import MOST, plane_figure, principal_plane, tsne_plane


def clusters(each: int = 12) -> numpy.ndarray:
    draw = numpy.random.default_rng(3)
    return numpy.concatenate([draw.normal(4 * centre, 0.5, (each, 6)) for centre in numpy.eye(3, 6)])


def test_the_plane_is_that_of_the_largest_variances() -> None:
    vectors = clusters()
    at = principal_plane(vectors)
    values, directions = numpy.linalg.eigh(numpy.cov(vectors.T))
    assert numpy.allclose(at.var(0, ddof=1), values[::-1][:2])
    again = (vectors - vectors.mean(0)) @ directions[:, ::-1][:, :2]
    assert numpy.allclose(numpy.abs(at), numpy.abs(again))
    assert principal_plane(vectors[:, :1]).shape == (36, 2)


def test_tsne_keeps_neighbours_and_is_the_same_again() -> None:
    vectors = clusters()
    at = tsne_plane(vectors, perplexity=8.0, steps=400)
    apart = ((at[:, None] - at) ** 2).sum(-1)
    numpy.fill_diagonal(apart, numpy.inf)
    nearest = numpy.argsort(apart, axis=1)[:, :5]
    assert (nearest // 12 == numpy.arange(36)[:, None] // 12).all()
    assert numpy.array_equal(at, tsne_plane(vectors, perplexity=8.0, steps=400))
    for wrong in (3, MOST + 1):
        with pytest.raises(InputError, match=f"{wrong} vectors"):
            tsne_plane(numpy.zeros((wrong, 2)))


def test_drawn() -> None:
    figure = plane_figure(principal_plane(clusters(1)), ["a$b", "<b>", "c"], title="three")
    made = to_bytes(figure, "svg")
    assert b"a$b" in made
    assert b"&lt;b&gt;" in made
