"""Projects vectors into the plane, by their two largest principal components or by t-SNE, and draws them.

N vectors, D width.
"""

from collections.abc import Sequence

import numpy
from jaxtyping import Float64
from matplotlib.figure import Figure
from numpy import ndarray

from heedful.errors import InputError
from heedful.look.draw import in_style
from heedful.look.labels import token_label

MOST = 2000  # vectors of t-SNE, which holds the distances of all pairs
EARLY = 250  # first steps, in which attraction is stronger, so that clusters form
Rows = Float64[ndarray, "N D"]
Plane = Float64[ndarray, "N 2"]


def principal_plane(vectors: Rows) -> Plane:
    """The coordinates along the two principal components (Pearson 1901), each with the sign that makes its largest
    entry positive."""
    centred = vectors - vectors.mean(0)
    _, _, directions = numpy.linalg.svd(centred, full_matrices=False)
    first = directions[:2]
    signs = numpy.sign(first[numpy.arange(len(first)), numpy.abs(first).argmax(1)])
    made = centred @ (first * signs[:, None]).T
    return numpy.pad(made, ((0, 0), (0, 2 - made.shape[1])))


def tsne_plane(vectors: Rows, *, perplexity: float = 30.0, steps: int = 750) -> Plane:
    """t-SNE (van der Maaten and Hinton 2008, algorithm 1, with all pairs): neighbours of a vector, by a Gaussian of the
    given perplexity, stay neighbours in the plane, by Student's t. Minimises the KL divergence by gradient descent
    with momentum, starting from the principal plane. The same vectors give the same plane. Raises InputError
    for fewer than four vectors, and for more than `MOST`."""
    N = len(vectors)
    if not 4 <= N <= MOST:
        raise InputError(f"{N} vectors", fix=f"give from 4 to {MOST:,}")
    near = _neighbourhoods(vectors, min(perplexity, (N - 1) / 3))
    near = numpy.maximum((near + near.T) / (2 * N), 1e-12)
    at = principal_plane(vectors)
    at = at / max(float(at.std()), 1e-12) * 1e-2
    moved, gains, rate = numpy.zeros_like(at), numpy.ones_like(at), max(N / 12, 50.0)
    for step in range(steps):
        student = 1 / (1 + _distances(at))
        numpy.fill_diagonal(student, 0)
        pulled = near * (12.0 if step < EARLY else 1.0) - numpy.maximum(student / student.sum(), 1e-12)
        pulled *= student
        gradient = 4 * (pulled.sum(1)[:, None] * at - pulled @ at)
        gains = numpy.clip(numpy.where(gradient * moved < 0, gains + 0.2, gains * 0.8), 0.01, None)
        moved = (0.5 if step < EARLY else 0.8) * moved - rate * gains * gradient
        at = at + moved
        at = at - at.mean(0)
    return at


def _distances(points: Rows) -> Float64[ndarray, "N N"]:
    """Squared Euclidean distances of all pairs."""
    squares = (points**2).sum(1)
    return numpy.maximum(squares[:, None] + squares - 2 * points @ points.T, 0)


def _neighbourhoods(vectors: Rows, perplexity: float) -> Float64[ndarray, "N N"]:
    """The probability of each vector (row) to have each other as its neighbour, at this perplexity, by bisection."""
    distances = _distances(vectors)
    numpy.fill_diagonal(distances, numpy.inf)
    nearest = distances.min(1, keepdims=True)
    low, high = numpy.zeros((len(vectors), 1)), numpy.full((len(vectors), 1), numpy.inf)
    beta = 1 / numpy.maximum(numpy.median(distances, axis=1, keepdims=True) - nearest, 1e-12)
    for _ in range(60):
        shares = numpy.exp(-(distances - nearest) * beta)
        shares /= shares.sum(1, keepdims=True)
        entropy = -(shares * numpy.log(numpy.maximum(shares, 1e-300))).sum(1, keepdims=True)
        wide = entropy > numpy.log(perplexity)
        low, high = numpy.where(wide, beta, low), numpy.where(wide, high, beta)
        beta = numpy.where(numpy.isinf(high), beta * 2, (low + numpy.minimum(high, 1e300)) / 2)
    return shares


def plane_figure(at: Plane, names: Sequence[str], *, title: str) -> Figure:
    """A figure with a point and a name for each vector."""
    with in_style():
        figure = Figure(figsize=(7.2, 5.4), layout="constrained")
        axes = figure.add_subplot()
        axes.scatter(at[:, 0], at[:, 1], s=14)
        size = 9.0 if len(names) <= 60 else 7.0
        for name, (x, y) in zip(names, at.tolist(), strict=True):
            drawn = axes.annotate(token_label(name), (x, y), xytext=(4, 3), textcoords="offset points", fontsize=size)
            drawn.set_parse_math(False)
        axes.set(xticks=[], yticks=[])
        axes.set_title(title, parse_math=False, loc="left")
        axes.margins(0.12)
    return figure
