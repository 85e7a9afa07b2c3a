"""The steps of a forward pass as a picture, and as one html file: a row for each step, with its shape, and bars for its
shares of the parameters and operations."""

import html
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.look.canvas import Rectangle, Shape, TextLine, svg, width_of
from heedful.look.passes import ModuleCall

ROW, SIZE, EDGE = 20.0, 12.5, 14.0
BAR = 90.0  # pixels of a share of 1


@dataclass(frozen=True)
class Passed:
    """A forward pass to draw: a title, the input and the output in words, the steps, and the model's totals."""

    title: str
    given: str
    said: str
    steps: Sequence[ModuleCall]
    parameters: int
    operations: int


def share(count: int, whole: int) -> float:
    return count / whole if whole else 0.0


def shape_in_words(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def numbers_in_words(step: ModuleCall) -> str:
    return " ".join(f"{number:.2f}" for number in step.numbers)


def cut_to(line: str, width: float) -> str:
    """The beginning of a line that fits into `width` pixels with an ellipsis at the end."""
    room = bisect_right(range(len(line)), width, key=lambda count: width_of(line[:count] + "…", SIZE))
    return line[: max(0, room - 1)] + "…"


def picture(passed: Passed, *, dark: bool = False) -> bytes:
    """The content of an SVG file."""
    names = max((width_of(step.name, SIZE) for step in passed.steps), default=0.0)
    shapes = max((width_of(shape_in_words(step.gives), SIZE) for step in passed.steps), default=0.0)
    at = [EDGE, EDGE + names + 16, EDGE + names + shapes + 32]
    at += [at[2] + BAR + 60, at[2] + 2 * (BAR + 60)]
    width = at[4] + EDGE
    made: list[Shape] = [TextLine(text=passed.title, x=EDGE, y=22.0, size=15.0, anchor="start", bold=True)]
    told = [passed.given, passed.said]
    for number, line in enumerate(told):
        fits = line if width_of(line, SIZE) <= width - 2 * EDGE else cut_to(line, width - 2 * EDGE)
        y = 44.0 + number * 18
        made.append(TextLine(text=fits, x=EDGE, y=y, size=SIZE, anchor="start", color="soft"))
    top = 44.0 + 18 * len(told) + 14
    for x, words in zip(at, ("step", "gives", "parameters", "operations"), strict=False):
        made.append(TextLine(text=words, x=x, y=top, size=SIZE, anchor="start", color="soft"))
    for number, step in enumerate(passed.steps, start=1):
        y = top + number * ROW
        made.append(TextLine(text=step.name, x=at[0], y=y, size=SIZE, anchor="start"))
        made.append(TextLine(text=shape_in_words(step.gives), x=at[1], y=y, size=SIZE, anchor="start", color="soft"))
        bars = ((step.parameters, passed.parameters, "attention"), (step.operations, passed.operations, "mlp"))
        for x, (count, whole, fill) in zip(at[2:], bars, strict=False):
            part = share(count, whole)
            if count:
                made.append(Rectangle(x=x, y=y - 6, width=max(1.0, BAR * part), height=12.0, fill=fill, radius=2.0))
                text, beside = f"{100 * part:.1f} %", x + max(1.0, BAR * part) + 5
                made.append(TextLine(text=text, x=beside, y=y, size=SIZE - 1, anchor="start", color="soft"))
    return svg(made, width, top + (len(passed.steps) + 1) * ROW, title=passed.title, dark=dark)


STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1rem; max-width: 70rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .15rem .7rem .15rem 0; border-bottom: 1px solid #8884; white-space: nowrap }
td.n { text-align: right }
.bar { display: inline-block; height: .7em; background: #0072b2; margin-right: .4em }
.bar.p { background: #e69f00 }
"""


def page(passed: Passed) -> str:
    """One html file, which opens offline and has no script."""
    rows = []
    for number, step in enumerate(passed.steps, start=1):
        shares = (share(step.parameters, passed.parameters), share(step.operations, passed.operations))
        bars = "".join(
            f'<td><span class="bar {kind}" style="width:{5 * part:.2f}em"></span>{100 * part:.1f} %</td>'
            if count
            else "<td></td>"
            for part, count, kind in zip(shares, (step.parameters, step.operations), ("p", "o"), strict=True)
        )
        reads = ", ".join(map(shape_in_words, step.reads))
        rows.append(
            f'<tr><td class="n">{number}</td><td>{html.escape(step.name)}</td><td>{html.escape(step.kind)}</td>'
            f"<td>{reads}</td><td>{shape_in_words(step.gives)}</td><td>{numbers_in_words(step)} …</td>{bars}</tr>"
        )
    title = html.escape(passed.title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        f"<p>{html.escape(passed.given)}</p>\n<p>{html.escape(passed.said)}</p>\n"
        f"<p>{passed.parameters:,} parameters, {passed.operations:,} operations.</p>\n"
        '<div class="wide"><table><thead><tr><th>step</th><th>name</th><th>kind</th><th>reads</th><th>gives</th>'
        "<th>begins with</th><th>parameters</th><th>operations</th></tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table></div>\n</body></html>\n"
    )
