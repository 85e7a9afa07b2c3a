"""Pictures that several exhibits share, beside those of `heedful.look.draw`. Each is made when it is asked for."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawing = Callable[[], "Figure"]
Number = float | int


def weights_of(
    weights: Tensor, rows: Sequence[str], columns: Sequence[str], title: str, mask: Tensor | None = None
) -> Drawing:
    """Weights (T, S) of one head, as a map."""
    from heedful.look.draw import heatmap

    return partial(heatmap, weights.float(), rows, columns, title=title, mask=mask)


def curves(
    lines: Mapping[str, tuple[Sequence[Number], Sequence[Number]]],
    *,
    x: str,
    y: str,
    title: str = "",
    logarithmic: str = "",
    marker: str = "o",
    points: Sequence[str] = (),
) -> Drawing:
    """Lines by name, each with its points; `logarithmic` names the axes ("x", "y", "xy") that are, and `points` the
    points of the first line."""

    def fill(axes: "Axes") -> None:
        for name, (across, up) in lines.items():
            axes.plot(across, up, label=name, marker=marker, markersize=4)
            for point, at, value in zip(points, across, up, strict=False):
                axes.annotate(point, (at, value), xytext=(7, -9), textcoords="offset points", fontsize=8)
        if "x" in logarithmic:
            axes.set_xscale("log")
        if "y" in logarithmic:
            axes.set_yscale("log")
        named(axes, x, y, title)
        if points:
            axes.margins(x=0.2)

    return one_panel(fill)


def bars(values: Mapping[str, Number], *, y: str, title: str = "", logarithmic: bool = False) -> Drawing:
    """A bar a name."""

    def fill(axes: "Axes") -> None:
        drawn = axes.bar([*values], [*values.values()])
        axes.bar_label(drawn, fmt="%.3g", padding=2)
        if logarithmic:
            axes.set_yscale("log")
        axes.margins(y=0.12)
        named(axes, "", y, title)
        axes.tick_params(axis="x", rotation=20 if max(map(len, values)) > 8 else 0)

    return one_panel(fill)


def grids(pictures: Mapping[str, Tensor], *, x: str = "key", y: str = "query", columns: int = 4) -> Drawing:
    """Masks (T, S) side by side: what may be seen is filled."""

    def make() -> "Figure":
        from matplotlib.figure import Figure

        rows = -(-len(pictures) // columns)
        across = min(columns, len(pictures))
        figure = Figure(figsize=(2.3 * across, 2.5 * rows), layout="constrained")
        panels = figure.subplots(rows, across, squeeze=False).flat
        for axes in panels:
            axes.set_axis_off()
        for axes, (name, picture) in zip(figure.axes, pictures.items(), strict=False):
            axes.set_axis_on()
            axes.imshow(
                picture.float().numpy(),
                cmap="Blues",
                vmin=0,
                vmax=1.2,
                aspect="auto" if max(picture.shape) > 40 else "equal",
            )
            axes.set(xticks=[], yticks=[], xlabel=x, ylabel=y)
            axes.set_title(name, fontsize=9)
        return figure

    return make


def plane(
    points: Mapping[str, Sequence[Number]],
    moved: Mapping[str, Sequence[Number]] | None = None,
    *,
    x: str,
    y: str,
    title: str = "",
) -> Drawing:
    """Named points in a plane, and arrows from where some stood to where they are `moved`."""

    def fill(axes: "Axes") -> None:
        for name, (across, up) in points.items():
            axes.plot(across, up, "o", color="C0")
            axes.annotate(name, (across, up), xytext=(5, 5), textcoords="offset points")
        for name, (across, up) in (moved or {}).items():
            from_x, from_y = points[name.split(",")[0]]
            axes.annotate("", (across, up), (from_x, from_y), arrowprops={"arrowstyle": "->", "color": "C1", "lw": 1.6})
            axes.annotate(name, (across, up), xytext=(5, -12), textcoords="offset points", color="C1")
        named(axes, x, y, title)
        axes.margins(0.2)

    return one_panel(fill)


def one_panel(fill: "Callable[[Axes], None]", size: tuple[float, float] = (5.6, 3.8)) -> Drawing:
    """A figure of one panel that `fill` draws into."""

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        fill(figure.add_subplot())
        return figure

    return make


def named(axes: "Axes", x: str, y: str, title: str) -> None:
    """What every panel has: names, a legend where there are several lines, no frame above and on the right."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(frameon=False)
