"""An `Architecture` as lines for a terminal: each column from its output down to its input, with a line for each box,
repeated layers in a bracket, and the branch of a residual connection between `╮` and `╯`."""

from collections.abc import Iterator, Sequence

from heedful.look.architecture import Add, Architecture, Beside, Box, Column, DrawnResidual, Link, Part, Repeat

WIDTH = 80  # characters of a line


def text(drawn: Architecture) -> str:
    lines = [drawn.title, f"{drawn.parameters:,} parameters", ""]
    if drawn.joined is not None:
        lines += [f"  ▲ {drawn.gives}", _line("  │ ", drawn.joined, ()), ""]
    for column in reversed(drawn.columns):
        lines += [*_column(column, drawn.links), ""]
    return "\n".join([*lines, *drawn.notes]).rstrip() + "\n"


def _column(column: Column, links: Sequence[Link]) -> Iterator[str]:
    yield column.title
    yield from [f"  ▲ {column.gives}"] if column.gives else []
    yield from (f"  ├──▶ {link.label}" for link in links if link.source == column.title)
    for part in reversed(column.parts):
        if isinstance(part, Repeat):
            yield f"┌─┤ {part.times} x {f'({part.note})' if part.note else ''}".rstrip()
            for inner in reversed(part.parts):
                yield from _part("│ ", inner, links)
            yield "└─┤"
        else:
            yield from _part("  ", part, links)
    yield from [f"  ▲ {column.reads}"] if column.reads else []


def _part(before: str, part: Part, links: Sequence[Link]) -> Iterator[str]:
    match part:
        case DrawnResidual():
            if part.norm is None:
                yield f"{before}├◀╮ +"
            else:
                yield _line(f"{before}├◀╮ ", part.norm, links)
            for box in reversed(part.branch):
                yield _line(f"{before}│ │ ", box, links)
            yield f"{before}├─╯"
        case Beside():
            for box in part.boxes:
                yield _line(f"{before}├╴", box, links)
        case _:
            yield _line(f"{before}│ ", part, links)


def _line(before: str, box: Box | Add, links: Sequence[Link]) -> str:
    """A box with its notes, and its parameters at the right."""
    notes = [note for note in box.notes if note != f"{box.parameters:,}"]
    label = f"+ {box.label}" if isinstance(box, Add) else box.label
    comes = [f" ◀── {link.label or link.source}" for link in links if isinstance(box, Box) and link.target == box.name]
    said = f"{before}{label}{': ' if notes else ''}{', '.join(notes)}{''.join(comes)}"
    return f"{said} {f' {box.parameters:,}':.>{max(0, WIDTH - len(said) - 1)}}" if box.parameters else said
