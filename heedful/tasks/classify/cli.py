"""`heed classify`, of texts and of pictures."""

from collections.abc import Iterable
from typing import Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.shared.cli import Command, Device, Json, Run, given, tell, texts_in_twos


def classify(
    run: Run,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Texts, or files of pictures; without any, lines of standard input.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="A second text, or a question, for each.")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="An answer to choose; give it twice or more.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say of texts, or pictures, what they are: the labels that the model has learnt, with their probabilities.

    On standard input a second text follows a TAB.

    Example: heed classify runs/classify "A fine film." --json
    """
    from heedful.run.device import chosen_device
    from heedful.run.folder import task_name
    from heedful.tasks.classify.use import Classified, ClassifyOptions, TextClassifier, classify_texts
    from heedful.tasks.classify_images.use import ImageClassifier, LabelledPicture, classify_pictures

    def show(answers: Iterable[Classified | LabelledPicture]) -> None:
        for found in answers:
            best = found["labels"][0]
            tell(found, f"{best['label']}\t{best['score']:.3f}\t{found['input']}", as_json=as_json)

    if task_name(run)[0] == ImageClassifier.task:
        if pair or choice:
            option = "--pair" if pair else "--choice"
            raise InputError(f"{option} is not used by a model of pictures", where=str(run), fix="leave it out")
        pictures = ImageClassifier.load(run, device=chosen_device(device))
        for files in given(inputs):
            show(classify_pictures(pictures, files))
        return
    model = TextClassifier.load(run, device=chosen_device(device))
    for texts, pairs in texts_in_twos(inputs):
        show(classify_texts(model, texts, ClassifyOptions(pair=pair or "", pairs=pairs, choices=tuple(choice or ()))))


COMMANDS = (Command("classify", classify),)
