"""`heed train`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import of_training
from heedful.store import files
from heedful.tasks import DEFAULT, trained
from heedful.tasks.shared.options import Device, Json, Settings

RECIPES = (".py", ".yaml", ".yml")
OPTIONS = of_training(trained().values())


def with_two_files(words: list[str]) -> list[str]:
    """The arguments of `heed train` with the option repeated before a second file: two files may follow --data, --valid
    and --test."""
    for option in ("--data", "--valid", "--test"):
        at = words.index(option) + 2 if option in words else len(words)
        if at < len(words) and not (words[at].startswith("-") or words[at] in trained() or words[at].endswith(RECIPES)):
            words = [*words[:at], option, *words[at:]]
    return words


def train(
    task: Annotated[str, typer.Argument(help=f"{', '.join(trained())}, or a recipe file (.py, .yaml).")] = DEFAULT,
    out: Annotated[Path | None, typer.Option(help="Where the run goes.", show_default="runs/TASK")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A folder, a .tsv, .csv, .jsonl or .json file, two files of two languages, a .zip, or hf:NAME; of "
            "pairs TMX, XLIFF, PO, .xlsx and Parquet too, and several, each with a weight (--data a.tmx --data "
            "b.tsv:0.2); of pictures, an idx file, or shapes.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="The size of the model; heed info lists them.")] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Begin with the model of this run.", show_default=False)
    ] = None,
    lora: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="RANK",
            help="With --from: learn low-rank adapters alone, which takes less memory.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="How long to train; sizes a language model for it where none is chosen."),
    ] = None,
    settings: Settings = None,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run that is in --out.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show details, which RUN/log.txt has in any case.")
    ] = False,
    as_json: Json = False,
    *,
    options: Mapping[str, Any],
) -> None:
    """Train a model on your own data. The same command again continues what was interrupted.

    Example: heed train translate --data pairs.tsv --out runs/mine --set train.minutes=10
    """
    from heedful.tasks.shared.progress import ProgressLine
    from heedful.verbs.train import planned
    from heedful.verbs.train import train as run_training

    out = files.with_proper_name(out or Path("runs") / Path(task).stem)
    path = data[0] if data and len(data) == 1 else data or None
    given: dict[str, object] = {"data.path": path, "preset": preset, "start_from": start_from}
    given |= {"train.lora": lora, "train.minutes": minutes}
    recipe, told = planned(task, out, given, options, settings=settings or (), resume=resume, device=device)
    shown = ProgressLine(verbose=verbose)
    finished = shown.follow(run_training(recipe, out, resume=resume, device=device, choices=told))
    if finished is None:  # not the first of several ranks, which reports the result
        return
    shown.told(finished, out)
    if as_json:
        print(json.dumps({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}))
