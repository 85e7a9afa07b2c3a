"""Pictures with words: maps side by side, lines between words, rows of labelled boxes, trees of hypotheses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from heedful.lab.drawn import Drawing, figure_of, one_panel, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


VISIBLE = 0.03  # the least weight that is drawn as a line


def maps(
    weights: Mapping[str, Tensor],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    across: int = 2,
    title: str = "",
    value: str = "weight",
) -> Drawing:
    """Several named maps (T, S) of the same words, queries down and keys across; each is pale at 0 and darkest at its
    largest value. A single map has a colour bar labelled `value`."""

    def make() -> "Figure":
        one, wide = len(weights) == 1, min(across, len(weights))
        cell = (0.45 if len(columns) < 8 else 0.26) if len(weights) <= 2 else 0.2
        words = 0.08 * max(map(len, rows)) + 0.3
        size = (words / wide + (1.3 if one else 0.1) + cell * len(columns), 1.1 + cell * len(rows))
        figure, panels = panels_of(len(weights), across, size)
        for place, (axes, (name, each)) in enumerate(zip(panels, weights.items(), strict=True)):
            axes.imshow(each.numpy(), cmap="Blues", vmin=0, vmax=max(float(each.max()), 1e-9), aspect="auto")
            axes.set_title(name, fontsize=10, loc="left")
            size_of_words = 9 if len(weights) <= 2 else 7
            axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=size_of_words)
            axes.set_yticks(range(len(rows)), rows if place % wide == 0 else [""] * len(rows), fontsize=size_of_words)
            axes.tick_params(length=0)
        if one:
            figure.colorbar(panels[0].images[0], ax=panels, shrink=0.7, aspect=25, label=value)
        if title:
            figure.suptitle(title, fontsize=11)
        return figure

    return make


def links(weights: Mapping[str, Tensor], rows: Sequence[str], columns: Sequence[str]) -> Drawing:
    """A panel for each map (T, S): queries on the left, keys on the right, and between them lines as strong as the
    weights. Rows of zeros have no lines."""

    across = len(weights) if len(weights) < 4 else 2
    down, height = -(-len(weights) // across), 0.7 + 0.27 * max(len(rows), len(columns))

    def fill(figure: "Figure") -> None:
        panels = figure.subplots(down, across, squeeze=False).flatten()
        for number, (axes, (name, each)) in enumerate(zip(panels, weights.items(), strict=True)):
            some = bool((each.sum(1) == 0).any())  # then queries with weights, and the keys they attend to, are bold
            left, right = (rows, each.sum(1) > 0, -0.03, "right"), (columns, each.sum(0) > 0.15, 1.03, "left")
            for words, looks, x, align in (left, right):
                bold = looks & (some and len(looks) == len(rows))
                for at, word in enumerate(words):
                    weight = "bold" if bold[at] else "normal"
                    axes.text(x, -at, word, ha=align, va="center", weight=weight, fontsize=9)
            for query in range(len(rows)):
                for key in range(len(columns)):
                    share = float(each[query, key])
                    if share > VISIBLE:
                        axes.plot(
                            [0, 1], [-query, -key], color=f"C{number}", alpha=min(1.0, share), linewidth=0.5 + 3 * share
                        )
            axes.set(xlim=(-0.9, 1.9), ylim=(-max(len(rows), len(columns)) + 0.4, 0.6))
            axes.set_title(name, fontsize=10)
            axes.set_axis_off()

    return figure_of((3.1 * across, height * down), fill)


class Strip(NamedTuple):
    """A row of boxes: its name, and the word and kind of each box; boxes of one kind have the same colour."""

    name: str
    boxes: Sequence[tuple[str, str]]


def strips(rows: Sequence[Strip], *, title: str) -> Drawing:
    """Rows of labelled boxes, one below the other, with a legend of their kinds."""
    kinds = [*dict.fromkeys(kind for row in rows for _, kind in row.boxes if kind)]
    unit = 0.085  # inches for each character
    widths = [[max(2, len(word)) * unit + 0.14 for word, _ in row.boxes] for row in rows]
    before = max((len(row.name) for row in rows), default=0) * unit + 0.15
    total = before + max((sum(each) + 0.04 * len(each) for each in widths), default=1.0)

    def fill(figure: "Figure") -> None:
        from matplotlib.patches import Patch, Rectangle

        axes = figure.add_axes((0, 0, 1, 1))  # drawn to scale in inches, whatever room the legend needs
        for number, (row, own) in enumerate(zip(rows, widths, strict=True)):
            axes.text(before - 0.12, -number, row.name, ha="right", va="center", fontsize=9)
            at = before
            for (word, kind), width in zip(row.boxes, own, strict=True):
                colour = f"C{kinds.index(kind)}" if kind else "none"
                axes.add_patch(Rectangle((at, -number - 0.36), width, 0.72, facecolor=colour, alpha=0.4, linewidth=0))
                axes.text(at + width / 2, -number, word, ha="center", va="center", fontsize=9, family="monospace")
                at += width + 0.04
        axes.set(xlim=(0, total), ylim=(-len(rows) + 0.5, 0.5))
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=10)
        if kinds:
            shown = [Patch(facecolor=f"C{number}", alpha=0.4, label=kind) for number, kind in enumerate(kinds)]
            axes.legend(
                handles=shown, loc="upper left", bbox_to_anchor=(0, -0.02), ncols=min(4, len(kinds)), frameon=False
            )

    return figure_of((total, 0.36 * len(rows)), fill, layout=None)


class Branch(NamedTuple):
    """A node of a tree: the index of its parent (None: the root), its word, its log-probability, and whether it belongs
    to the chosen hypothesis."""

    parent: int | None
    word: str
    value: float
    chosen: bool


def tree(nodes: Sequence[Branch], *, title: str = "") -> Drawing:
    """Hypotheses from left to right, each below its likelier siblings; thick lines join the chosen one."""
    children: dict[int | None, list[int]] = {}
    for place, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(place)
    depth, row = {0: 0}, {}
    leaves = 0

    def lay(place: int) -> None:
        nonlocal leaves
        below = sorted(children.get(place, []), key=lambda child: -nodes[child].value)
        row[place] = leaves
        for number, child in enumerate(below):
            depth[child] = depth[place] + 1
            leaves += number > 0
            lay(child)

    lay(0)

    def fill(axes: "Axes") -> None:
        for place, node in enumerate(nodes):
            if node.parent is not None:
                kept = node.chosen and nodes[node.parent].chosen
                ends = (depth[node.parent], depth[place]), (-row[node.parent], -row[place])
                axes.plot(*ends, color="C0" if kept else "0.6", linewidth=2.4 if kept else 1, zorder=1)
            box = {
                "boxstyle": "round,pad=0.25",
                "facecolor": axes.get_facecolor(),
                "edgecolor": "C0" if node.chosen else "0.6",
            }
            told = f"{node.word}\n{node.value:.2f}" if node.parent is not None else node.word
            axes.text(depth[place], -row[place], told, ha="center", va="center", fontsize=8, bbox=box)
        axes.set(xlim=(-0.5, max(depth.values()) + 0.5), ylim=(-leaves - 0.6, 0.6))
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=10)

    return one_panel(fill, (1.0 + 1.05 * (1 + max(depth.values())), 1.0 + 0.55 * (leaves + 1)))
