"""Drawings of scores: a dot product as lengths and an angle, and the scores of all pairs as a matrix."""

import math
from typing import TYPE_CHECKING

import torch

from heedful.lab.drawn import named, one_panel
from heedful.lab.drawn_words import maps
from heedful.lab.exhibit import Says, Shown, beside, table
from heedful.lab.numbers.five_queries import KEYS, QUERIES
from heedful.lab.numbers.fruit_and_tech import WORDS, cosines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn_product(says: Says, *, query: list[float] = [2.0, 1.0], key: list[float] = [1.0, 2.5]) -> Shown:  # noqa: B006  # no one changes them
    """q.k is the length of q times that of the projection (the shadow) of k on it."""
    if (len(query), len(key)) != (2, 2):
        raise ValueError("a plane has two numbers of each")
    q, k = table([query])[0], table([key])[0]
    shadow = float(q @ k / q.norm())
    foot = (q / q.norm() * shadow).tolist()
    angle = math.degrees(math.acos(float(q @ k / (q.norm() * k.norm()))))

    def fill(axes: "Axes") -> None:
        for name, vector, colour in (("q", query, "C0"), ("k", key, "C1")):
            axes.annotate("", (vector[0], vector[1]), (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "lw": 2})
            axes.annotate(
                name, (vector[0], vector[1]), xytext=(6, 4), textcoords="offset points", color=colour, fontsize=12
            )
        axes.plot([key[0], foot[0]], [key[1], foot[1]], ":", color="0.5")
        axes.plot([0, foot[0]], [0, foot[1]], color="C2", linewidth=5, alpha=0.5, label=f"shadow of k: {shadow:.2f}")
        axes.plot(
            [], [], " ", label=f"length of q: {float(q.norm()):.2f}\nq.k = {float(q @ k):.2f}\nangle {angle:.0f}°"
        )
        axes.set_aspect("equal")
        axes.margins(0.15)
        ends = [0.0, query[0], key[0], foot[0]]
        axes.set(xlim=(min(ends) - 0.2, max(ends) + 0.2))
        named(axes, "first", "second", "A dot product")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)

    computed = {
        "q.k": float(q @ k),
        "length of q times the shadow": float(q.norm()) * shadow,
        "angle in degrees": angle,
    }
    return Shown(beside(says, computed), one_panel(fill, (6.4, 3.8)))


def matrix_of_scores(says: Says) -> Shown:
    """The dot products of the five queries with all keys, and the cosines of all pairs of fruit and tech words."""
    scores = QUERIES @ KEYS.T
    words = torch.tensor([*WORDS.values()], dtype=torch.float64)
    alike = cosines(words, words)
    computed = {
        "scores of five queries": scores,
        "cosines of words are the same both ways": bool(torch.allclose(alike, alike.T)),
    }
    return Shown(beside(says, computed), maps({"Cosines of words": alike}, [*WORDS], [*WORDS], value="cosine"))
