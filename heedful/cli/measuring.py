"""How likely texts are to a model, what it is, and whether it keeps its laws: `heed score`, `info` and `check`."""

import json
from typing import Annotated, Any

import typer

from heedful.cli.common import Device, Json, Run, app, input_lines


@app.command()
def score(
    run: Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of standard input.")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="A text that may follow; give it twice or more.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Tell how likely texts are to a language model: log-probability (nats) and tokens of each.

    With choices, tell how likely each of them is after the text, the likeliest first.

    Example: heed score runs/text "Once upon a time"
    """
    from heedful.data.text import sanitise
    from heedful.tasks.device import chosen_device
    from heedful.tasks.generate import LanguageModel

    model = LanguageModel.load(run, device=chosen_device(device))
    for lines in [texts] if texts else input_lines():
        lines = [sanitise(line) for line in lines]
        if choice:
            _choose(model, lines, [sanitise(each) for each in choice], as_json=as_json)
            continue
        for text, found in zip(lines, model.likelihood(lines), strict=True):
            if as_json:
                row = {"text": text, "logprob": -found.nats, "tokens": found.tokens}
                print(json.dumps(row, ensure_ascii=False), flush=True)
            else:
                print(f"{-found.nats:.3f}\t{found.tokens}\t{text}", flush=True)


def _choose(model: Any, contexts: list[str], choices: list[str], *, as_json: bool) -> None:
    for context in contexts:
        found = model.choose(context, choices)
        if as_json:
            row = {"text": context, "choices": [each._asdict() for each in found]}
            print(json.dumps(row, ensure_ascii=False), flush=True)
        else:
            for each in found:
                print(f"{each.logprob:.3f}\t{each.tokens}\t{each.choice}", flush=True)


@app.command()
def info(
    name: Annotated[str | None, typer.Argument(help="A run's folder or a preset; without any, the presets.")] = None,
    as_json: Json = False,
) -> None:
    """Tell what a run or a preset is.

    Example: heed info transformer-base
    """
    from heedful.tasks.info import describe

    facts = describe(name)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        print(f"{key:{width}}  {value if not isinstance(value, float) else round(value, 3)}")


@app.command()
def check(run: Run, as_json: Json = False) -> None:
    """Check the laws that a model must keep on your own model, and the files of its folder.

    Example: heed check runs/demo
    """
    from dataclasses import asdict

    from heedful.tasks.check import check as check_run

    laws = []
    for law in check_run(run):
        laws.append(law)
        if law.figure is None:
            print(f"-       {law.name}")
        else:
            print(f"{'ok' if law.holds else 'BROKEN':6}  {law.name:40}  {law.figure:.1e}  (at most {law.limit:.0e})")
        for note in law.notes:
            print(f"        {note}")
    broken = [law.name for law in laws if not law.holds]
    if as_json:
        print(json.dumps({"laws": [asdict(law) | {"holds": law.holds} for law in laws], "broken": len(broken)}))
    if broken:
        raise typer.Exit(1)
