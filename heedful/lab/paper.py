"""Renders exhibits: pictures for a light or a dark slide, in colours that colour-blind readers can tell apart, and
values in few characters."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.look.architecture import Architecture

# Okabe and Ito (2008): on white without black and yellow, on dark without black and dark blue.
COLORS = {
    False: ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    True: ("#56B4E9", "#E69F00", "#19C39A", "#CC79A7", "#F0E442", "#D55E00"),
}
INK = {False: "#1a1a1a", True: "#f0f0f0"}
GROUND = {False: "white", True: "#16181d"}


def on_paper(dark: bool = False) -> AbstractContextManager[None]:
    """A context in which figures have these colours."""
    import matplotlib

    ink, ground = INK[dark], GROUND[dark]
    parts = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    cycle = f"cycler('color', {list(COLORS[dark])})"
    chosen: Any = dict.fromkeys(parts, ink) | dict.fromkeys(grounds, ground)  # matplotlib's type lists all its keys
    return matplotlib.rc_context(chosen | {"axes.prop_cycle": cycle, "font.size": 10})


def drawn(draw: "Callable[[], Figure | Architecture]", kind: Literal["svg", "png"], *, dark: bool = False) -> bytes:
    """What `draw` makes, in these colours, as the content of a file."""
    from heedful.look.architecture import Architecture
    from heedful.look.architecture_layout import picture
    from heedful.look.draw import to_bytes

    with on_paper(dark):
        made = draw()
        return picture(made, kind, dark=dark) if isinstance(made, Architecture) else to_bytes(made, kind)


def value(found: Any, digits: int = 4) -> str:
    """A number, a string, a truth or a table of them as short text, with at most `digits` decimals."""
    if found is None:
        return "-"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float):
        if 0 < abs(found) < 10**-digits:
            return f"{found:.2e}"
        return f"{found:.{digits}f}".rstrip("0").rstrip(".")
    if isinstance(found, Sequence) and not isinstance(found, str):
        nested = any(isinstance(each, Sequence) and not isinstance(each, str) for each in found)
        return ("; " if nested else " ").join(value(each, digits) for each in found)
    return str(found)
