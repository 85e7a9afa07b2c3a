"""A model's figure 1: `heed draw`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.errors import InputError
from heedful.store import files
from heedful.tasks.shared.options import Json
from heedful.tasks.shared.terminal import PICTURES, say


def draw(
    name: Annotated[str, typer.Argument(metavar="PRESET|RUN", help="A preset, or the folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="A .svg, .png or .txt file; without it, to the terminal.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for a dark slide.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a model's architecture as figure 1 of its paper does, from its configuration.

    Example: heed draw transformer-base --out base.svg
    """
    if out is not None and out.suffix not in (*PICTURES, ".txt"):
        what = f"{out.suffix or 'no suffix'} is not a drawing"
        raise InputError(what, where=str(out), fix="--out x.svg, x.png or x.txt")
    if dark and (out is None or out.suffix == ".txt"):
        say("--dark is not used by a drawing in letters")
    if out is not None:
        files.need_output(out)
    from heedful.look.architecture_text import text
    from heedful.verbs.draw import drawn, facts

    figure = drawn(name)
    if out is None:
        if not as_json:
            print(text(figure), end="")
    elif out.suffix == ".txt":
        files.write_output(out, text(figure).encode())
    else:
        from heedful.look.architecture_layout import picture

        files.write_output(out, picture(figure, PICTURES[out.suffix], dark=dark))
    if out is not None:
        say(str(out))
    if as_json:
        print(json.dumps(facts(figure) | ({} if out is None else {"out": str(out)})))
