"""`heed distil` and `heed back-translate`: a model translates one side of a corpus, and another learns from that."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from heedful.store import files
from heedful.tasks.shared.cli import Beam, Command, Device, Json, LengthPenalty, Run, Seed, Settings, tell
from heedful.tasks.shared.options import by_groups

PRESET = "transformer-deep-shallow"  # of a student that begins with nothing

Rerank = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RUN",
        help="Choose among the beam by this run too, of the same or the other direction; may be given again.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class BeamOptions:
    """How the model that writes searches."""

    beam: Beam = None
    length_penalty: LengthPenalty = None


@dataclass(frozen=True, kw_only=True)
class TeachingOptions:
    """Who teaches beside the teacher, what of, and where it is kept."""

    data: Annotated[
        list[str] | None,
        typer.Option(help="Pairs, as for heed train; may be given again.", show_default=False),
    ] = None
    source: Annotated[str | None, typer.Option(help="Language, column or key to translate from.")] = None
    target: Annotated[str | None, typer.Option(help="Language, column or key to translate to.")] = None
    together: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="RUN", help="Let this run teach too, as one model; may be given again."),
    ] = None
    rerank: Rerank = None
    taught: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the teacher's translations are kept.", show_default="OUT.taught.tsv"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class StudentOptions:
    """Who learns, and how."""

    preset: Annotated[
        str | None, typer.Option(help="The size of the student; heed info lists them.", show_default=PRESET)
    ] = None
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Begin with the weights of this run, such as the teacher, in place of a preset; with --set "
            "model.decoder_layers=1 with those of so many of its layers.",
        ),
    ] = ""
    out: Annotated[Path, typer.Option(help="Where the student goes.")] = Path("runs/student")
    originals: Annotated[
        float,
        typer.Option(min=0.0, help="How often an epoch has each pair as it was, beside the teacher's; 0: not at all."),
    ] = 1.0
    minutes: Annotated[float | None, typer.Option(min=0.01, help="How long to train the student.")] = None
    settings: Settings = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TellingOptions:
    """Where it computes, and how it tells what came out."""

    device: Device = "auto"
    as_json: Json = False


@by_groups
def distil(
    teacher: Run,
    *,
    teaching: TeachingOptions,
    student: StudentOptions,
    search: BeamOptions,
    told: TellingOptions,
) -> None:
    """Train a smaller translator on the translations of a larger one, its teacher.

    The teacher translates the sources of the data first, which is kept in a file: the same command again continues what
    was interrupted, and another student may learn from it too.

    Example: heed distil runs/big --data pairs.tsv --preset transformer-tiny --out runs/small
    """
    import torch

    from heedful.decode.settings import chosen
    from heedful.run.begin import checked
    from heedful.run.device import chosen_device
    from heedful.run.train import train
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate import TRANSLATE
    from heedful.tasks.translate.training.distil import planned_distillation, write_pairs

    shown, where, out = ProgressLine(), chosen_device(told.device), files.with_proper_name(student.out)
    decoding = chosen(beam=search.beam, length_penalty=search.length_penalty)
    writing, recipe = planned_distillation(teacher, teaching, student, decoding)
    checked(recipe, out, resume=False)  # where no run can be, nothing is translated for it
    for line in write_pairs(writing, where):
        shown.say(line)
    finished = shown.follow(train(TRANSLATE, recipe, out, device=torch.device(where)))
    if finished is None:
        return
    shown.told(finished, out)
    tell({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}, (), as_json=told.as_json)


@dataclass(frozen=True, kw_only=True)
class DrawingOptions(BeamOptions):
    """The same, or how it draws."""

    sample: Annotated[bool, typer.Option("--sample", help="Draw the translations in place of searching.")] = False
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class BackTranslationDirection:
    """The direction, for a model of several languages."""

    to: Annotated[str, typer.Option(metavar="LANGUAGE", help="The language to make sources in, of several.")] = ""
    from_language: Annotated[str, typer.Option(metavar="LANGUAGE", help="The language of the texts, of several.")] = ""


@by_groups
def back_translate(
    run: Run,
    texts: Annotated[
        list[str], typer.Argument(help="Files of texts, one a line, in the language that RUN reads; or of pairs.")
    ],
    out: Annotated[Path, typer.Option(help="A .tsv file for the pairs: what RUN makes, and the text.")],
    *,
    direction: BackTranslationDirection,
    drawing: DrawingOptions,
    told: TellingOptions,
) -> None:
    """Make pairs to train on of texts that have no translation, by a model of the other direction.

    For a translator from English to German RUN translates German to English, and the texts are German.

    Example: heed back-translate runs/de-en german.txt --out back.tsv
    """
    from heedful.decode.settings import chosen
    from heedful.run.device import chosen_device
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate.training.distil import planned_back_translation, write_pairs

    settings = chosen(beam=drawing.beam, length_penalty=drawing.length_penalty)
    if drawing.sample:
        settings["samples"], settings["seed"] = 1, drawing.seed
    asked, shown = (direction.from_language, direction.to), ProgressLine()
    writing = planned_back_translation(run, texts, out, settings, asked)
    for line in write_pairs(writing, chosen_device(told.device)):
        shown.say(line)
    shown.say(f"heed train translate --data PAIRS --synthetic {out}    # trains on them beside your own pairs")
    tell({"out": str(out), "pairs": len(writing.texts)}, (), as_json=told.as_json)


COMMANDS = (
    Command("distil", distil, group="Train"),
    Command("back-translate", back_translate, group="Train"),
)
