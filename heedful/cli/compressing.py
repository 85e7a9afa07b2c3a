"""Smaller models: `heed distil` and `heed prune`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import chosen_of, united
from heedful.errors import InputError
from heedful.store import files
from heedful.tasks import TASKS
from heedful.tasks.shared.options import Device, Json, Run, Settings, StudentOptions, parameters_of
from heedful.tasks.shared.terminal import tell

DISTIL_OPTIONS = {
    **parameters_of(StudentOptions),
    **united(row.lesson_options() for row in TASKS.values() if row.lesson is not None),
}


def distil(teacher: Run, options: dict[str, Any], device: Device = "auto", as_json: Json = False) -> None:
    """Train a smaller model to answer as a larger one, its teacher.

    Models of texts and pictures learn the teacher's probabilities beside the data (--set distil.temperature=4). For a
    translator the teacher translates the sources of the data first, which is kept in a file: the same command again
    continues what was interrupted, and another student may learn from it too.

    Example: heed distil runs/big --data pairs.tsv --preset transformer-tiny --out runs/small
    """
    import torch

    from heedful.run.begin import checked
    from heedful.run.device import chosen_device
    from heedful.run.train import train
    from heedful.tasks.load import row_of_run
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.verbs.compress import lesson_of

    given = {name: options.pop(name) for name in parameters_of(StudentOptions)}
    given["out"] = files.with_proper_name(given["out"])
    student, where, shown = StudentOptions(**given), chosen_device(device), ProgressLine()
    chosen = chosen_of(row_of_run(teacher).lesson_options(), options, DISTIL_OPTIONS, str(teacher))
    lesson = lesson_of(teacher, student, chosen)
    checked(lesson.recipe, student.out, resume=False)  # where no run can be, the teacher does nothing for it
    for line in lesson.prepare(where):
        shown.say(line)
    row = TASKS[lesson.recipe.task]
    finished = shown.follow(train(row, lesson.recipe, student.out, device=torch.device(where)))
    if finished is None:
        return
    shown.told(finished, student.out)
    tell({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}, (), as_json=as_json)


def prune(
    run: Run,
    out: Annotated[Path, typer.Option(help="Where the pruned run goes.")] = Path("runs/pruned"),
    share: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.99, help="Of the weights, the smallest, become zeros.", show_default="0.5"),
    ] = None,
    pattern: Annotated[
        str,
        typer.Option(metavar="N:M", help="In place of a share: N of each M weights side by side stay, as 2:4."),
    ] = "",
    settings: Settings = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Set the smallest weights of a model to zero, and train the others on.

    The linear maps in blocks are pruned, by one threshold for all. The training takes a tenth of the run's steps, at a
    tenth of its rate, unless --set says otherwise; --set train.steps=0: none. Zeros make a compressed file smaller,
    but nothing faster on a CPU.

    Example: heed prune runs/demo --out runs/half --share 0.5
    """
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.verbs.compress import prune as pruned

    if share is not None and pattern:
        raise InputError("--share and --pattern", fix="leave one out")
    shown, given = ProgressLine(), settings or ()
    events = pruned(run, out, share=0.5 if share is None else share, pattern=pattern, settings=given, device=device)
    finished = shown.follow(events)
    if finished is not None and finished.steps:
        shown.told(finished, out)
    scores = {} if finished is None else finished.scores
    tell({"out": str(out), "steps": 0 if finished is None else finished.steps, "scores": scores}, (), as_json=as_json)
