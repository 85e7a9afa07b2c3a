"""Pictures that several exhibits use, besides those of `heedful.look.draw`. A `Drawing` makes a figure when called."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawing = Callable[[], "Figure"]
Number = float | int
NUMBERED = 8  # rows or columns of a map whose numbers are written into its cells
TALL = 200  # the approximate height of a panel in points


def weights_of(
    weights: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    mask: Tensor | None = None,
    value: str = "attention weight",
) -> Drawing:
    """A map of the weights (T, S) of one head, or of other values from 0 to 1; a small one with their numbers."""
    from heedful.look.draw import heatmap

    small = max(weights.shape) <= NUMBERED
    return partial(heatmap, weights.float(), rows, columns, title=title, mask=mask, value=value, numbers=small)


def curves(
    lines: Mapping[str, tuple[Sequence[Number], Sequence[Number]]],
    *,
    x: str,
    y: str,
    title: str = "",
    logarithmic: str = "",
    marker: str = "o",
) -> Drawing:
    """Named lines, each through its points; `logarithmic` names the axes ("x", "y", "xy") with a logarithmic scale."""

    def fill(axes: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        for (name, (across, up)), dashes in zip(lines.items(), ("-", "--", "-.", ":") * len(lines), strict=False):
            axes.plot(across, up, dashes, label=name, marker=marker, markersize=4)
        if all(isinstance(at, int) for across, _ in lines.values() for at in across):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        scaled(axes, logarithmic)
        named(axes, x, y, title)

    return one_panel(fill)


def scaled(axes: "Axes", logarithmic: str) -> None:
    """Makes these axes ("x", "y", "xy") logarithmic, with plain numbers at 1, 2 and 5 of each decade, or only at each
    decade if there are several."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    large = EngFormatter(sep=" ")
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name not in logarithmic:
            continue
        axis.axes.set(**{f"{name}scale": "log"})
        least, most = axis.get_data_interval()
        axis.set_major_locator(LogLocator(subs=(1.0,) if most > 200 * least else (1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda at, _: large(at) if at >= 10_000 else f"{at:g}"))
        axis.set_minor_formatter(NullFormatter())


def bars(values: Mapping[str, Number], *, y: str, title: str = "", logarithmic: bool = False) -> Drawing:
    """A bar for each name."""

    def fill(axes: "Axes") -> None:
        drawn = axes.bar([*values], [*values.values()])
        axes.bar_label(drawn, fmt=lambda at: f"{at:.3g}" if at < 1000 else f"{at:,.0f}", padding=2)
        scaled(axes, "y" if logarithmic else "")
        axes.margins(y=0.12)
        named(axes, "", y, title)
        long = max(map(len, values)) * len(values) > 64
        axes.tick_params(axis="x", rotation=90 if len(values) > 12 else 20 if long else 0)

    return one_panel(fill)


def grids(pictures: Mapping[str, Tensor], *, x: str = "key", y: str = "query", columns: int = 3) -> Drawing:
    """Masks (T, S) side by side: allowed cells are filled."""

    def make() -> "Figure":
        figure, panels = panels_of(len(pictures), columns, (2.3, 2.5))
        for axes, (name, picture) in zip(panels, pictures.items(), strict=True):
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
    logarithmic: str = "",
    vectors: bool = False,
) -> Drawing:
    """Named points in a plane, arrows from some of them to where they are `moved`, and if they are `vectors`, arrows
    from the origin to each."""

    def fill(axes: "Axes") -> None:
        def arrow(to: Sequence[Number], begin: Sequence[Number], color: str) -> None:
            axes.annotate("", (to[0], to[1]), (begin[0], begin[1]), arrowprops={"arrowstyle": "->", "color": color})

        height = dict.fromkeys(points, 0.0) if logarithmic else labels_apart(points)
        for name, at in points.items():
            axes.plot(*at, "o", color="C0")
            shift = (6, 5 - 10 * height[name])
            axes.annotate(name, (at[0], at[1]), xytext=shift, textcoords="offset points", fontsize=9)
            if vectors:
                axes.plot(0, 0, marker="none")  # so that the origin is in view
                arrow(at, (0, 0), "C0")
        for name, to in (moved or {}).items():
            begin = points[name.split(",")[0]]
            arrow(to, begin, "C1")
            apart = (-3, 9 if to[1] > begin[1] else -14)  # away from the beginning
            align = "right" if to[0] < begin[0] else "left"
            axes.annotate(name, (to[0], to[1]), xytext=apart, textcoords="offset points", ha=align, fontsize=9)
        scaled(axes, logarithmic)
        named(axes, x, y, title)
        axes.margins(0.2)
        low, high = axes.get_ylim()
        below = {name: 10 * lines / TALL * (high - low) for name, lines in height.items()}  # from a point to its name
        axes.set_ylim(min(low, *(at[1] - below[name] for name, at in points.items())), high)

    return one_panel(fill)


def labels_apart(points: Mapping[str, Sequence[Number]]) -> dict[str, float]:
    """How many lines each point's name must move down, so that the names of close points stand one below the other."""
    ranges = [
        max(1e-9, max(at[axis] for at in points.values()) - min(at[axis] for at in points.values())) for axis in (0, 1)
    ]
    line, wide = ranges[1] / 17, ranges[0] / 5  # size of a name, in a panel of the usual size
    placed: list[tuple[float, float]] = []
    down = {}
    for name, (across, up) in sorted(points.items(), key=lambda item: -item[1][1]):
        height = up
        while any(abs(across - x) < wide and abs(height - y) < 0.95 * line for x, y in placed):
            height -= line / 4
        placed.append((across, height))
        down[name] = (up - height) / line
    return down


def panels_of(count: int, across: int, size: tuple[float, float]) -> "tuple[Figure, list[Axes]]":
    """A figure of `count` panels, each of this width and height in inches, at most `across` in a row."""
    from matplotlib.figure import Figure

    wide, down = min(across, count), -(-count // across)
    figure = Figure(figsize=(wide * size[0], down * size[1]), layout="constrained")
    made = [*figure.subplots(down, wide, squeeze=False).flat]
    for axes in made[count:]:
        axes.set_axis_off()
    return figure, made[:count]


def one_panel(fill: "Callable[[Axes], None]", size: tuple[float, float] = (5.6, 3.8)) -> Drawing:
    """A figure with one panel, into which `fill` draws."""
    return figure_of(size, lambda figure: fill(figure.add_subplot()))


def figure_of(
    size: tuple[float, float],
    fill: "Callable[[Figure], None]",
    *,
    layout: Literal["constrained"] | None = "constrained",
) -> Drawing:
    """A figure of this width and height in inches, into which `fill` draws."""

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout=layout)
        fill(figure)
        return figure

    return make


def named(axes: "Axes", x: str, y: str, title: str) -> None:
    """Gives a panel its labels, a grid, a legend if there are several lines, and no frame at the top and the right."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(frameon=False)
