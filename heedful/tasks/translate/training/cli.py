"""`heed back-translate`: a model translates one side of a corpus, and another learns from that."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from heedful.decode.settings import DecodingOptions
from heedful.tasks.shared.options import Device, Json, Offered, Run, by_groups
from heedful.tasks.shared.terminal import Command, tell

BEAM = ("beam", "length_penalty")


@dataclass(frozen=True, kw_only=True)
class TellingOptions:
    """Where it computes, and how it tells what came out."""

    device: Device = "auto"
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class DrawingOptions:
    """Whether translations are searched for."""

    sample: Annotated[bool, typer.Option("--sample", help="Draw the translations in place of searching.")] = False


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
    search: Annotated[DecodingOptions, Offered(*BEAM, "seed", **dict.fromkeys(BEAM))],
    told: TellingOptions,
) -> None:
    """Make pairs to train on of texts that have no translation, by a model of the other direction.

    For a translator from English to German RUN translates German to English, and the texts are German.

    Example: heed back-translate runs/de-en german.txt --out back.tsv
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.tasks.translate.training.distil import planned_back_translation, write_pairs

    if drawing.sample:
        search["samples"] = 1
    else:
        search.pop("seed")
    asked, shown = (direction.from_language, direction.to), ProgressLine()
    writing = planned_back_translation(run, texts, out, search, asked)
    for line in write_pairs(writing, chosen_device(told.device)):
        shown.say(line)
    shown.say(f"heed train translate --data PAIRS --synthetic {out}    # trains on them beside your own pairs")
    tell({"out": str(out), "pairs": len(writing.texts)}, (), as_json=told.as_json)


COMMANDS = (Command("back-translate", back_translate, group="Train"),)
