"""A forward pass, step by step: `heed trace`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.store import files
from heedful.tasks.shared.options import Run
from heedful.tasks.shared.terminal import printable, refuse_unused, say

if TYPE_CHECKING:
    from heedful.look.passes_drawn import Passed

KINDS = (".html", ".svg")


def trace(
    run: Run,
    given: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="The text, or the file of a picture.")],
    pair: Annotated[
        str | None, typer.Option(help="A second text; for a translator, what has been said already.")
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="LANGUAGE", help="Of a translator: the language to translate to, of several.")
    ] = "",
    from_language: Annotated[str, typer.Option(metavar="LANGUAGE", help="Likewise the language of the text.")] = "",
    tag: Annotated[
        str, typer.Option("--tag", metavar="NAME", help="Likewise the kind of translation, of those learnt.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="A .html or .svg file.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for a dark slide (.svg).")] = False,
    device: Annotated[
        str, typer.Option(help="cpu: a pass is followed there, wherever the model was trained.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each step.")] = False,
) -> None:
    """Follow a forward pass step by step: shapes, a few numbers, and each step's share of parameters and operations.

    Example: heed trace runs/demo "My sister buys three apples." --out trace.html
    """
    if out is not None and out.suffix not in KINDS:
        raise InputError(f"{out.suffix or 'no suffix'} is no trace", where=str(out), fix="--out x.html or x.svg")
    if out is None or out.suffix != ".svg":
        refuse_unused("is of a picture", {"--dark": dark}, fix="--out x.svg")
    if out is not None:
        files.need_output(out)
    from heedful.look import passes_drawn
    from heedful.run.device import chosen_device
    from heedful.verbs.trace import records
    from heedful.verbs.trace import trace as follow

    chosen_device(device, cpu_only="heed trace")
    traced = follow(run, given, pair, to=to, from_language=from_language, tag=tag)
    if as_json:
        for record in records(traced):
            print(json.dumps(record, ensure_ascii=False))
    said = ", ".join(f"{printable(name)} {chance:.3f}" for name, chance in traced.says)
    passed = passes_drawn.Passed(
        f"{traced.model}: {run.resolve().name}",
        f"{printable(given)} → {' · '.join(map(printable, traced.tokens))}",
        f"says {said}" if said else "",
        traced.steps,
        traced.parameters,
        traced.operations,
    )
    if out is not None:
        made = passes_drawn.page(passed).encode() if out.suffix == ".html" else passes_drawn.picture(passed, dark=dark)
        files.write_output(out, made)
        say(str(out))
    elif not as_json:
        print(told(passed))


def told(passed: "Passed") -> str:
    """The pass as text for a terminal: a line for each step."""
    from heedful.look.passes_drawn import numbers_in_words, shape_in_words, share

    rows: list[tuple[str, ...]] = [("step", "gives", "parameters", "operations", "begins with")]
    for step in passed.steps:
        parts = (share(step.parameters, passed.parameters), share(step.operations, passed.operations))
        shares = [f"{100 * part:.1f} %" if part else "" for part in parts]
        rows.append((step.name, shape_in_words(step.gives), *shares, numbers_in_words(step)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    aligned = "<<>>>"
    lines = [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, aligned, widths, strict=True)).rstrip()
        for row in rows
    ]
    whole = f"{passed.parameters:,} parameters, {passed.operations:,} operations"
    return "\n".join(line for line in (passed.given, *lines, whole, passed.said) if line)
