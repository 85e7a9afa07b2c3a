"""Pairs of texts at a glance: the lengths of both sides, and the faults that were found."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELLS = 40  # along each side
LONGEST = 99.5  # percentile of the lengths that is the end of each axis


def lengths_and_faults(source: Sequence[str], target: Sequence[str], counts: Mapping[str, int]) -> "Figure":
    """A figure: on the left the pairs by the lengths of their sides, in characters, with the median ratio; on the right
    a bar for each fault."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    across, up = (np.array([max(1, len(text)) for text in side]) for side in (source, target))
    ends = [float(np.percentile(side, LONGEST)) for side in (across, up)]
    with matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(9.6, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        drawn = left.hist2d(across, up, bins=CELLS, range=[(0, ends[0]), (0, ends[1])], norm=LogNorm(), cmap="Blues")
        ratio = float(np.median(up / across))
        left.plot([0, ends[0]], [0, ends[0] * ratio], color="#D55E00", linewidth=1, label=f"usual: {ratio:.2f}")
        left.set(xlabel="characters of the source", ylabel="characters of the target", ylim=(0, ends[1]))
        left.legend(frameon=False)
        figure.colorbar(drawn[3], ax=left, label="pairs")
        found = sorted(((count, name) for name, count in counts.items() if count))
        bars = right.barh([name.replace("_", " ") for _, name in found], [count for count, _ in found], color="#0072B2")
        right.bar_label(bars, fmt="{:,.0f}", padding=3)
        right.set(xlabel="pairs")
        right.spines[["top", "right"]].set_visible(False)
        right.margins(x=0.15)
    return figure
