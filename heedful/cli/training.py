"""Training: `heed demo` and `heed train`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.common import Json, Progress, Settings, app, told


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    settings: Settings = [],  # noqa: B006  # typer copies it
    as_json: Json = False,
) -> None:
    """Train, measure, use and look inside a translator, on text made on the spot.

    Example: heed demo
    """
    from heedful.tasks import demo as task
    from heedful.tasks.recipe import override

    shown = Progress()
    shown.say("a phrasebook, English to French: 60,000 pairs to learn from, 1,000 unseen ones to be tested on")
    finished = shown.follow(task.train_demo(out, override(task.recipe(), settings)))
    if finished is None:
        return
    test = finished.scores["test"]
    shown.say(
        f"\n{100 * test['exact']:.1f} % of {task.TESTED:,} unseen sentences exactly right, BLEU {test['bleu']:.1f}, "
        f"after {finished.minutes:.1f} minutes of training\n"
    )
    for source, text in task.examples(out):
        shown.say(f"  {source}\n    -> {text}")
    picture, page = task.pictures(out)
    shown.say(f"\nwho looked at whom: {picture} and, to explore in a browser, {page}")
    shown.say(f'\nnext:\n  ./heed translate {out} "My sister is reading a book."')
    shown.say(f'  ./heed look {out} "My sister is reading a book." --out look.html')
    shown.say(
        "  ./heed train translate --data PAIRS.tsv --out runs/mine     # your own: source TAB target, a pair a line"
    )
    if as_json:
        scores = {key: test[key] for key in ("exact", "bleu", "chrf")}
        print(json.dumps(scores | {"minutes": finished.minutes}))


@app.command()
def train(
    task: Annotated[
        str,
        typer.Argument(
            help="translate, summarise, generate, classify, tag, answer, fill, denoise, parse, classify-images, "
            "detect, segment, match, paint, or a recipe file (.py, .yaml)."
        ),
    ] = "translate",
    out: Annotated[Path | None, typer.Option(help="Where the run goes.", show_default="runs/TASK")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A folder, a .tsv, .csv or .jsonl file, or hf:NAME; of pictures, an idx file, or shapes."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Language, column or key to translate from.")] = None,
    target: Annotated[str | None, typer.Option(help="Language, column or key to translate to.")] = None,
    preset: Annotated[str | None, typer.Option(help="The size of the model; heed info lists them.")] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Begin with the model of this run.", show_default=False)
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="How long to train; sizes a language model for it where none is chosen."),
    ] = None,
    settings: Settings = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that is in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on your own data. The same command again goes on with what was interrupted.

    Example: heed train translate --data pairs.tsv --out runs/mine --set train.minutes=10
    """
    from heedful.tasks.recipe import TASKS, TUNING, override, read_recipe
    from heedful.tasks.resume import saved_recipe
    from heedful.tasks.run import train as run_training

    recipe = read_recipe(task)
    out = out or Path("runs") / Path(task).stem
    given: dict[str, Any] = {
        "data.path": data,
        "data.source": source,
        "data.target": target,
        "preset": preset,
        "start_from": start_from,
    }
    if resume and data is None and (out / "recipe.yaml").is_file():
        recipe = saved_recipe(out)
    given = {key: value for key, value in given.items() if value is not None}
    if minutes is not None:
        given["train.minutes"] = minutes
    recipe = override(recipe, [f"{key}={json.dumps(value)}" for key, value in given.items()])
    shown = Progress()
    chosen = (preset, start_from, *(setting for setting in settings if setting.startswith("model.")))
    if minutes is not None and task == "generate" and not any(chosen):
        from heedful.tasks.sizing import sized

        recipe, why = sized(recipe, out)
        shown.say(why)
    start = Path(start_from or "")
    if start_from and task in TASKS and (start / "task.json").is_file() and not (start / "recipe.yaml").is_file():
        recipe = override(recipe, TUNING)
        shown.say(f"an imported model is tuned with {', '.join(TUNING)}, unless --set says otherwise")
    recipe = override(recipe, settings)
    finished = shown.follow(run_training(recipe, out, resume=resume))
    if finished is None:  # one of several ranks, of which the first tells how it went
        return
    for name, each in finished.scores.items():
        numbers = [told(key, value) for key, value in each.items() if not isinstance(value, str)]
        shown.say(f"{name}: {', '.join(numbers)}")
    shown.say(f"{out}: after {finished.minutes:.1f} minutes of training; {out}/README.md tells the rest")
    if as_json:
        print(json.dumps({"steps": finished.steps, "minutes": finished.minutes, "scores": finished.scores}))
