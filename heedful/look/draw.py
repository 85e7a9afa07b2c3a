"""Figures for papers and reports: attention maps, their overview, training curves, scores by length.

Each of these functions returns a new `Figure` without touching pyplot's global state; `to_bytes` turns it into the
content of a file, the same bytes for the same figure. H heads, T queries (rows), S keys (columns).
"""

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import matplotlib
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font, get_font_names
from matplotlib.patches import Patch
from torch import Tensor

from heedful.errors import InputError
from heedful.look.labels import summary, token_label

SCALE, WHOLE = "Blues", Normalize(0, 1)
GROUND, HATCH_COLOR, HATCH = "0.93", "0.65", "////"  # of masked cells
# Matplotlib looks for each glyph in these families in turn. It would warn about those that are not installed.
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Microsoft YaHei",
    "PingFang SC",
    "Arial Unicode MS",
)


def heatmap(
    weights: Float[Tensor, "T S"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    mask: Bool[Tensor, "T S"] | None = None,
    value: str = "attention weight",
    numbers: bool = False,
) -> Figure:
    """Draws one head's weights (0 to 1): queries down (`rows`), keys across (`columns`, labelled on top).

    `title` names the layer and the head, `value` the quantity in the cells, which `numbers` writes into them. Cells
    where `mask` is False are hatched, to tell them from weights of zero. Raises InputError when the tokens do not fit
    the weights.
    """
    T, S = _fit(weights, rows, columns)
    cell = min(0.4 if numbers else 0.3, 24 / max(T, S))
    with in_style():
        figure = Figure(figsize=(2.4 + cell * S, 1.7 + cell * T), layout="constrained")
        axes = figure.add_subplot()
        _map(axes, weights, mask)
        if numbers:
            _numbers(axes, weights, mask)
        _ticks(axes, rows, columns, size=min(9.0, cell * 50))
        axes.set_xticks([s - 0.5 for s in range(1, S)], minor=True)
        axes.set_yticks([t - 0.5 for t in range(1, T)], minor=True)
        axes.grid(which="minor", color="white", linewidth=0.6)
        axes.set_title(title, parse_math=False, loc="left", pad=10)
        _bar(figure, [axes], length=0.8, value=value)
        if mask is not None and not mask.all():
            hatched = Patch(facecolor=GROUND, edgecolor=HATCH_COLOR, hatch=HATCH, label="not allowed")
            figure.legend(handles=[hatched], loc="outside lower right", frameon=False, fontsize=8)
    return figure


def overview(
    weights: Mapping[str, Float[Tensor, "H T S"]], rows: Sequence[str], columns: Sequence[str], *, same: bool
) -> Figure:
    """Draws every head of every layer as a thumbnail: layers down, heads across, each with its automatic label.

    `weights` maps layer names to attention maps, all of one T and S; `same`: rows and columns are the same tokens
    (as in `labels.summary`). Raises InputError when there is no layer, or the tokens do not fit the weights.
    """
    if not weights:
        raise InputError("there are no layers to draw", fix="record at least one layer")
    n_heads = max(len(layer) for layer in weights.values())
    with in_style():
        size = (1.6 + 1.35 * n_heads, 0.5 + 1.6 * len(weights))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(weights), n_heads, squeeze=False)
        for row, (name, layer) in zip(grid, weights.items(), strict=True):
            labels = summary(layer, same=same)
            for head, axes in enumerate(row):
                if head >= len(layer):
                    axes.set_axis_off()
                    continue
                _fit(layer[head], rows, columns)
                _map(axes, layer[head], None, aspect="auto")
                axes.set(xticks=[], yticks=[])
                axes.set_title(f"head {head}\n{labels[head]}", fontsize=7)
            row[0].set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center", labelpad=8)
        ends = [
            f"{token_label(tokens[0], limit=12)} … {token_label(tokens[-1], limit=12)}" for tokens in (rows, columns)
        ]
        note = f"down: {len(rows)} queries, {ends[0]}    across: {len(columns)} keys, {ends[1]}"
        figure.suptitle(note, parse_math=False, fontsize=8, x=0.01, ha="left")
        _bar(figure, list(grid.flat), length=0.4)
    return figure


def curves(
    metrics: Sequence[Mapping[str, float | int]],
    *,
    losses: Sequence[str] = ("train_loss", "valid_loss"),
    scores: Sequence[str] = ("bleu",),
    title: str = "",
) -> Figure:
    """Plots a run's metrics over its steps: the keys `losses` on the left, the keys `scores` on the right.

    Each row of `metrics` has "step" and any of the keys; a panel whose keys never occur is left out. Raises
    InputError when none of them occurs.
    """
    found = [[key for key in keys if any(key in row for row in metrics)] for keys in (losses, scores)]
    panels = [(label, keys) for label, keys in zip(("loss", "score"), found, strict=True) if keys]
    if not panels:
        raise InputError(
            f"no row of the metrics has any of {', '.join([*losses, *scores])}",
            fix="name the keys in losses or scores",
        )
    with in_style():
        figure = Figure(figsize=(4.6 * len(panels), 3.4), layout="constrained")
        for axes, (label, keys) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _over_steps(axes, metrics, keys, label)
        figure.suptitle(title, parse_math=False)
    return figure


def panels(metrics: Sequence[Mapping[str, float | int]], keys: Mapping[str, Sequence[str]]) -> Figure:
    """Plots a run's metrics over its steps in panels: `keys` gives the keys of each panel by its heading. A panel whose
    keys never occur is left out. Raises InputError when none of them occurs."""
    found = {heading: [key for key in own if any(key in row for row in metrics)] for heading, own in keys.items()}
    shown = {heading: own for heading, own in found.items() if own}
    if not shown:
        what = f"no row of the metrics has any of {', '.join(key for own in keys.values() for key in own)}"
        raise InputError(what, fix="name keys that occur")
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    with in_style():
        figure = Figure(figsize=(3.6 * columns, 2.6 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (heading, own) in zip(grid, shown.items(), strict=False):
            _over_steps(axes, metrics, own, heading)
        for axes in grid[len(shown) :]:
            axes.set_axis_off()
    return figure


def _over_steps(axes: Axes, metrics: Sequence[Mapping[str, float | int]], keys: Sequence[str], label: str) -> None:
    for key in keys:
        points = [(row["step"], row[key]) for row in metrics if key in row]
        few = "o" if len(points) <= 40 else ""
        axes.plot(*zip(*points, strict=True), label=key.replace("_", " "), marker=few, markersize=3)
    _plain(axes, "step", label)


def score_by_length(
    scores: Mapping[str, Sequence[float | int]],
    bins: Sequence[str],
    counts: Sequence[int],
    *,
    measure: str = "BLEU",
) -> Figure:
    """Plots a line for each model, with its score in each bin of source length, above bars of the sentences in each
    bin.

    `bins` names the bins ("1-10"), `counts` counts their sentences. Raises InputError when lengths differ.
    """
    for name, values in {**scores, "counts": counts}.items():
        if len(values) != len(bins):
            raise InputError(f"{name}: {len(values)} values for {len(bins)} bins", fix="give one value for each bin")
    with in_style():
        figure = Figure(figsize=(max(4.6, 0.7 * len(bins) + 1.5), 4.2), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        for (name, values), marker in zip(scores.items(), "os^Dvp*X<>" * len(scores), strict=False):
            upper.plot(range(len(bins)), values, marker=marker, label=name)
        _plain(upper, "", measure)
        bars = lower.bar(range(len(bins)), counts, color="0.75", width=0.7)
        lower.bar_label(bars, fontsize=7)
        lower.set_xticks(range(len(bins)), bins)
        lower.margins(y=0.35)
        _plain(lower, "source length (words)", "sentences")
    return figure


def to_bytes(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """`figure` as the content of a file, without dates or random names: equal figures give equal bytes.

    An svg keeps text as text, so that the reader's fonts are used for every script.
    """
    buffer = io.BytesIO()
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    with in_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata, bbox_inches="tight", pad_inches=0.1)
    return buffer.getvalue()


def without_font(words: Iterable[str]) -> str:
    """The characters of `words` that no installed font can draw, each once."""
    with in_style():
        fonts = [get_font(findfont(family)) for family in matplotlib.rcParams["font.family"]]
    shown = dict.fromkeys(c for word in words for c in token_label(word))
    return "".join(c for c in shown if not any(font.get_char_index(ord(c)) for font in fonts))


def drawable(words: Sequence[str]) -> list[str]:
    """The words, with "?" in place of each character that no installed font can draw."""
    table = dict.fromkeys(map(ord, without_font(words)), "?")
    return [word.translate(table) for word in words]


def in_style() -> AbstractContextManager[None]:
    """A context in which figures have the style of this module: a font for each script, text as text, no random ids."""
    installed = set(get_font_names())
    return matplotlib.rc_context(
        {
            "font.family": ["DejaVu Sans", *(name for name in WIDE_FONTS if name in installed)],
            "font.size": 9,
            "hatch.linewidth": 0.5,
            "svg.fonttype": "none",
            "svg.hashsalt": "heedful",
        }
    )


def _fit(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> tuple[int, int]:
    if weights.shape != (len(rows), len(columns)):
        raise InputError(
            f"weights of shape {tuple(weights.shape)} for {len(rows)} rows and {len(columns)} columns",
            fix="give one token for each query and each key",
        )
    return len(rows), len(columns)


def _map(axes: Axes, weights: Tensor, mask: Tensor | None, aspect: Literal["equal", "auto"] = "equal") -> None:
    values = weights.detach().float().cpu()
    if mask is not None:
        values = values.masked_fill(~mask.cpu(), float("nan"))  # transparent: the hatched ground shows
        axes.patch.set(facecolor=GROUND, edgecolor=HATCH_COLOR, hatch=HATCH)
    axes.imshow(values.numpy(), cmap=SCALE, norm=WHOLE, aspect=aspect, interpolation="nearest")
    axes.spines[:].set_color("0.7")


def _numbers(axes: Axes, weights: Tensor, mask: Tensor | None) -> None:
    for t, row in enumerate(weights.tolist()):
        for s, weight in enumerate(row):
            if mask is None or mask[t, s]:
                colour = "white" if weight > 0.5 else "black"  # on the dark half of the scale
                axes.text(s, t, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=7)


def _ticks(axes: Axes, rows: Sequence[str], columns: Sequence[str], size: float) -> None:
    for axis, tokens in ((axes.xaxis, columns), (axes.yaxis, rows)):
        labels = [token_label(token, limit=24) for token in tokens]
        axis.set_ticks(range(len(tokens)), labels, parse_math=False, fontsize=size)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=2, color="0.7")
    axes.tick_params(which="minor", length=0)
    for label in axes.get_xticklabels():
        label.set(rotation=60, ha="left", va="bottom", rotation_mode="anchor")


def _bar(figure: Figure, axes: list[Axes], length: float, value: str = "attention weight") -> None:
    bar = figure.colorbar(ScalarMappable(WHOLE, SCALE), ax=axes, shrink=length, aspect=25, pad=0.02)
    bar.set_label(value)
    bar.outline.set_visible(False)


def _plain(axes: Axes, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    if axes.get_lines():
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)
