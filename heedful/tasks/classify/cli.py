"""`heed classify`, of texts, pictures and sounds."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.tasks.classify.options import ClassifyOptions
from heedful.tasks.shared.line_by_line import answer_lines, answers_to_pictures, in_two, one_each
from heedful.tasks.shared.options import Device, Json, Run, Weights, option_of
from heedful.tasks.shared.terminal import Command, printable, refuse_unused, tell

if TYPE_CHECKING:
    from heedful.tasks.classify.use import Classified
    from heedful.tasks.classify_images.use import LabelledFile


def classify(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Texts, or files of pictures or sounds; none: lines of standard input."),
    ] = None,
    pair: Annotated[str | None, option_of("pair", ClassifyOptions)] = None,
    choice: Annotated[list[str] | None, option_of("choices", ClassifyOptions)] = None,
    device: Device = "auto",
    weights: Weights = "float32",
    as_json: Json = False,
) -> None:
    """Say of texts, pictures or sounds what they are: the labels that the model has learnt, with their probabilities.

    On standard input a second text follows a TAB.

    Example: heed classify runs/classify "A fine film." --json
    """
    from heedful.run.device import chosen_device
    from heedful.run.folder import task_name
    from heedful.tasks.classify.use import TextClassifier, classify_texts
    from heedful.tasks.classify_images.use import ImageClassifier, classify_files
    from heedful.tasks.classify_sounds.use import SoundClassifier
    from heedful.tasks.shared.served import load_in_bits

    def show(found: "Classified | LabelledFile") -> str:
        best = found["labels"][0]
        return f"{printable(best['label'])}\t{best['score']:.3f}\t{printable(found['input'])}"

    of_files: dict[str, tuple[type[ImageClassifier | SoundClassifier], str]] = {
        ImageClassifier.task: (ImageClassifier, "picture"),
        SoundClassifier.task: (SoundClassifier, "sound"),
    }
    if (task := task_name(run)[0]) in of_files:
        kind, noun = of_files[task]
        given_options = {"--pair": bool(pair), "--choice": bool(choice), "--weights": weights != "float32"}
        refuse_unused(f"is not used by a model of {noun}s", given_options)
        classifier = kind.load(run, device=chosen_device(device))
        answers_of = partial(classify_files, classifier)
        for _, found in answers_to_pictures(inputs, answers_of, as_json=as_json, noun=noun):
            tell(found, show(found), as_json=as_json)
        return
    model = load_in_bits(TextClassifier.load, run, device, weights)

    def answers(lines: list[str], first: int) -> Iterator[Sequence["Classified"]]:
        texts, pairs = zip(*(in_two(line, inputs) for line in lines), strict=True)
        options = ClassifyOptions(pair=pair or "", pairs=pairs, choices=tuple(choice or ()))
        return one_each(classify_texts(model, texts, options))

    answer_lines(inputs, answers, show, as_json=as_json)


COMMANDS = (Command("classify", classify),)
