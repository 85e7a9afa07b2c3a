"""What pictures are drawn on: a light slide or a dark one, in colours that the colour-blind can tell apart."""

from contextlib import AbstractContextManager
from typing import Any

# Okabe and Ito (2008), without black and yellow; the same in either light.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
INK = {False: "#1a1a1a", True: "#f0f0f0"}
GROUND = {False: "white", True: "#16181d"}


def on_paper(dark: bool = False) -> AbstractContextManager[None]:
    """While it lasts, figures are made so."""
    import matplotlib

    ink, ground = INK[dark], GROUND[dark]
    parts = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    cycle = f"cycler('color', {list(COLORS)})"
    chosen: Any = dict.fromkeys(parts, ink) | dict.fromkeys(grounds, ground)  # matplotlib's type lists all its keys
    return matplotlib.rc_context(chosen | {"axes.prop_cycle": cycle, "font.size": 10})
