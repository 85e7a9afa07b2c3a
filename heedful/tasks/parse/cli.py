"""`heed parse`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.tasks.parse.options import ParseOptions
from heedful.tasks.shared.line_by_line import answer_lines, one_each
from heedful.tasks.shared.options import Beam, Device, Json, Run
from heedful.tasks.shared.terminal import Command

if TYPE_CHECKING:
    from heedful.tasks.parse.use import ParsedText


def parse(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Beam = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Parse sentences into constituents, each a line of brackets. Words and punctuation stand apart.

    Example: heed parse runs/parse "The cat sleeps on the mat ."
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.parse.use import Parser, parse_texts

    parser = Parser.load(run, device=chosen_device(device))

    def answers(lines: list[str], first: int) -> Iterator[Sequence["ParsedText"]]:
        return one_each(parse_texts(parser, lines, ParseOptions(beam=beam)))

    def show(found: "ParsedText") -> str:
        return found["tree"]

    answer_lines(texts, answers, show, as_json=as_json)


COMMANDS = (Command("parse", parse),)
