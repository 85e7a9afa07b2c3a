"""`heed answer`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.tasks.answer.options import AnswerOptions
from heedful.tasks.shared.line_by_line import answer_lines, in_two, one_each
from heedful.tasks.shared.options import Device, Json, Run, Weights, option_of
from heedful.tasks.shared.terminal import Command, printable

if TYPE_CHECKING:
    from heedful.tasks.answer.use import AnsweredQuestion


def answer(
    run: Run,
    questions: Annotated[
        list[str] | None, typer.Argument(help="Questions; without any, lines of standard input.")
    ] = None,
    context: Annotated[
        str | None, option_of("context", AnswerOptions, help="The text that tells the answer, or a file that holds it.")
    ] = None,
    top: Annotated[int, option_of("top", AnswerOptions)] = 1,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Answer questions by a stretch of a text: SCORE TAB ANSWER, an empty one where the text does not tell.

    On standard input a context of its own may follow a question, after a TAB.

    Example: heed answer runs/answer "Who led the team in sacks?" --context article.txt
    """
    import os

    from heedful.data.lines import read_lines
    from heedful.tasks.answer.use import Answerer, answer_questions
    from heedful.tasks.shared.served import load_in_bits

    model = load_in_bits(Answerer.load, run, device, weights)
    if context is not None and os.path.isfile(context):
        context = "\n".join(read_lines(context))

    def answers(lines: list[str], first: int) -> Iterator[Sequence["AnsweredQuestion"]]:
        asked, contexts = zip(*(in_two(line, questions) for line in lines), strict=True)
        options = AnswerOptions(context=context or "", contexts=contexts, top=top)
        return one_each(answer_questions(model, asked, options))

    def show(found: "AnsweredQuestion") -> Iterator[str]:
        return (f"{one['score']:.3f}\t{printable(one['text'])}" for one in found["answers"])

    answer_lines(questions, answers, show, as_json=as_json)


COMMANDS = (Command("answer", answer),)
