"""Scores, facts and checks of a model: `heed eval`, `info`, `check` and `restore`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from heedful.cli.options import chosen_of, united
from heedful.errors import InputError
from heedful.run.task import NoOptions
from heedful.tasks import TASKS, scoring_options
from heedful.tasks.shared.options import Device, Json, Run, Weights
from heedful.tasks.shared.terminal import printable, say

EVAL_OPTIONS = united(scoring_options(row) for row in TASKS.values())


def evaluate(
    run: Run, options: dict[str, Any], device: Device = "auto", weights: Weights = "float32", as_json: Json = False
) -> None:
    """Score a model on data by the measures of the field.

    Translations by sacreBLEU's BLEU and chrF, summaries by ROUGE, a text or a painter's pictures by their
    likelihood, answers by accuracy, trees by EVALB's brackets, boxes by mAP, masks by mean IoU, decisions by the
    return of episodes that are played, structures by the precision of contacts and lDDT.

    A language model answers a .jsonl file whose first line has an "input": {"input": ..., "answer": ...}, perhaps
    with "choices": [...]. All other data is plain text to it.

    Example: heed eval runs/demo --source test.en --target test.fr --beam 5
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.load import row_of_run
    from heedful.verbs.evaluate import evaluate as scored

    engine = options["engine"]
    device = chosen_device(device, weights=weights, engine=engine)
    row = row_of_run(run)
    chosen = NoOptions() if row.evaluate is None else chosen_of(scoring_options(row), options, EVAL_OPTIONS, str(run))
    tests: dict[str, dict[str, Any]] = {}
    show = say if as_json else partial(print, flush=True)
    for name, scores, told, notes, _ in scored(run, chosen, device=device, engine=engine, weights=weights):
        for note in notes:
            say(note)
        show(printable(f"{name}: {told}", keep="\n\t"))
        tests[name] = scores
    if as_json:
        first = next(iter(tests.values()))
        print(json.dumps(first | ({"tests": tests} if len(tests) > 1 else {})))


def info(
    name: Annotated[str | None, typer.Argument(help="A run's folder or a preset; without any, the presets.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SIDE=LANGUAGE", help="Name a translator's languages: source=en, target=de; repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell what a run or a preset is.

    Example: heed info transformer-base
    """
    from heedful.verbs.presets import presets_by_task

    if settings:
        if name is None:
            raise InputError("languages of which run?", where="--set", fix="heed info RUN --set source=en")
        from heedful.verbs.info import name_languages

        name_languages(Path(name), settings)
    if name is None:
        presets = presets_by_task()
        print(json.dumps(presets) if as_json else "\n".join(_listed(presets)))
        return
    from heedful.verbs.info import describe

    facts = describe(name)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        print(f"{key:{width}}  {printable(str(round(value, 3) if isinstance(value, float) else value))}")


def _listed(presets: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """The lines of the presets by task, with their parameters: tasks with the same presets share a heading, and a task
    whose presets are among those of others refers to these."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for task, sizes in presets.items():
        tasks.setdefault((*sizes,), []).append(task)
    united = [own for own in tasks if {*own} == {name for part in tasks if {*part} < {*own} for name in part}]
    width = max(len(name) for sizes in presets.values() for name in sizes)
    for own, named in tasks.items():
        wider = next((other for other in tasks if {*own} < {*other} and other not in united), None)
        if own in united:
            parts = " or ".join(tasks[part][0] for part in tasks if {*part} < {*own})
            yield f"{', '.join(named)}: as for {parts}"
        elif wider is not None:
            but = ", ".join(name for name in wider if name not in own)
            line = f"{', '.join(named)}: as for {tasks[wider][0]}, but {but}"
            yield from wrap(line, 80, subsequent_indent="  ", break_on_hyphens=False)
        else:
            yield f"{', '.join(named)}:"
            yield from (f"  {name:{width}}  {presets[named[0]][name]:>15,} parameters" for name in own)
    yield "\nheed info PRESET tells more of one, and heed train TASK --preset PRESET takes it"


def check(run: Run, device: Device = "auto", as_json: Json = False) -> None:
    """Check the laws that a model must keep on your own model, and the files of its folder.

    Example: heed check runs/demo
    """
    from heedful.run.device import chosen_device
    from heedful.verbs.check import check as check_run

    laws = []
    show = say if as_json else print
    for law in check_run(run, device=chosen_device(device)):
        laws.append(law)
        if law.figure is None:
            show(f"-       {law.name}")
        else:
            show(f"{'ok' if law.holds else 'BROKEN':6}  {law.name:40}  {law.figure:.1e}  (at most {law.limit:.0e})")
        if law.otherwise:
            show(f"        otherwise {law.otherwise}")
        for note in law.notes:
            show(f"        {note}")
    broken = [law.name for law in laws if not law.holds]
    measured = sum(law.figure is not None for law in laws)
    show(f"all {measured} laws hold" if not broken else f"{len(broken)} of {measured} laws broken: {', '.join(broken)}")
    if as_json:
        print(json.dumps({"laws": [asdict(law) | {"holds": law.holds} for law in laws], "broken": len(broken)}))
    if broken:
        raise typer.Exit(1)


def restore(run: Run, as_json: Json = False) -> None:
    """Make a damaged model again, from the newest sound checkpoint of its training.

    Example: heed restore runs/demo
    """
    from heedful.run.restore import restore_model
    from heedful.tasks.load import refuse_other_task, row_of_run

    fitted: Mapping[str, str] = {}
    if (run / "task.json").is_file():
        refuse_other_task(run)
        fitted = row_of_run(run).fitted
    made = restore_model(run, say, fitted=[*fitted])
    if made.config:
        say(f"{run / 'config.json'} is written again, by the checkpoint of step {made.step:,}")
    best = "the same as before" if made.same else "those that were saved were of another step, or of several"
    written = f"the weights of step {made.step:,}; {best}"
    say(f"{made.out}: {written if made.weights else 'the weights are sound, and stay as they are'}")
    for aside in filter(None, (made.config_aside, made.aside)):
        say(f"the damaged file is now {aside}")
    for name in made.removed:
        say(f"{name} is removed, as it was fitted to other weights; made again by: {fitted[name].format(run=run)}")
    if as_json:
        print(json.dumps(asdict(made)))
