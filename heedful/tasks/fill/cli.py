"""`heed fill`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from heedful.tasks.fill.options import FillOptions
from heedful.tasks.shared.line_by_line import answer_lines
from heedful.tasks.shared.options import Device, Json, Run, Texts, Weights, option_of
from heedful.tasks.shared.terminal import Command, printable

if TYPE_CHECKING:
    from heedful.tasks.fill.use import FilledMask


def fill(
    run: Run,
    texts: Texts = None,
    top: Annotated[int, option_of("top", FillOptions)] = 5,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Name what may stand in place of each "<mask>" in a text, a line for each, with probabilities.

    Example: heed fill runs/fill "The cat sat on the <mask>." --top 3
    """
    from heedful.tasks.fill.use import Filler, fill_each
    from heedful.tasks.shared.served import load_in_bits

    filler = load_in_bits(Filler.load, run, device, weights)

    def answers(lines: list[str], first: int) -> Iterator[list["FilledMask"]]:
        return fill_each(filler, lines, FillOptions(top=top))

    def show(found: "FilledMask") -> str:
        listed = "  ".join(f"{_piece(one['token'])} {one['score']:.3f}" for one in found["candidates"])
        return f"{printable(found['text'])}\t{listed}"

    answer_lines(texts, answers, show, as_json=as_json)


def _piece(token: str) -> str:
    """A token with its spaces made visible; an empty one is the space that is part of it."""
    return printable(token).replace(" ", "▁") or "▁"


COMMANDS = (Command("fill", fill),)
