"""`heed answer`."""

from typing import Annotated

import typer

from heedful.tasks.shared.cli import Command, Device, Json, Run, tell, texts_in_twos


def answer(
    run: Run,
    questions: Annotated[
        list[str] | None, typer.Argument(help="Questions; without any, lines of standard input.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="The text that tells the answer, or a file that holds it.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers to each.")] = 1,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Answer questions by a stretch of a text: SCORE TAB ANSWER, an empty one where the text does not tell.

    On standard input a context of its own may follow a question, after a TAB.

    Example: heed answer runs/answer "Who led the team in sacks?" --context article.txt
    """
    import os

    from heedful.data.lines import read_lines
    from heedful.run.device import chosen_device
    from heedful.tasks.answer.use import Answerer, AnswerOptions, answer_questions

    model = Answerer.load(run, device=chosen_device(device))
    if context is not None and os.path.isfile(context):
        context = "\n".join(read_lines(context))
    for asked, contexts in texts_in_twos(questions):
        options = AnswerOptions(context=context or "", contexts=contexts, top=top)
        for found in answer_questions(model, asked, options):
            tell(found, (f"{one['score']:.3f}\t{one['text']}" for one in found["answers"]), as_json=as_json)


COMMANDS = (Command("answer", answer),)
