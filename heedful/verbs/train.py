"""Training, for the command line and Python: this module chooses what is not given."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.errors import InputError
from heedful.run.device import chosen_device
from heedful.run.events import Event, Finished, Note
from heedful.run.recipe import AUTO, Recipe, override
from heedful.run.resume import flat
from heedful.run.train import train as run_training
from heedful.store import files
from heedful.tasks import DEFAULT, TASKS
from heedful.tasks.recipes import by_key, read_recipe, saved_recipe
from heedful.tasks.shared.progress import ProgressLine

# The rates for tuning an imported model, which has none of its own (Devlin et al. 2019, appendix A.3).
TUNING = ("train.optimizer=adam", "train.lr=5e-5", "train.warmup=100")
# Adapters begin as zeros and need higher rates (Hu et al. 2021, appendix D).
ADAPTING = ("train.optimizer=adam", "train.lr=5e-4", "train.warmup=100")


def planned(
    recipe: Recipe | str,
    out: Path,
    given: Mapping[str, object],
    options: Mapping[str, object] | None = None,
    *,
    settings: Sequence[str] = (),
    resume: bool = False,
    device: str = "auto",
    corpus: Any = None,
) -> tuple[Recipe, list[str]]:
    """The recipe of a training into `out`, and lines that say what was chosen.

    `recipe` is a recipe, or the name of a task or of a recipe file. It is overridden by `given`, by keys such as
    "train.minutes" (None: not given), by the task's own `options`, by name, and finally by `settings` (key=value). If
    there is a budget of minutes and no size is given, the size is chosen here or (by "preset=auto") when the training
    begins, for tasks that can do so. A training that starts from an imported model gets the usual rates for tuning, and
    a new model the settings that suit its data. `corpus` replaces the recipe's data. Raises InputError, MissingError or
    StorageError.
    """
    files.need_access(out)
    given = {key: str(value) if isinstance(value, Path) else value for key, value in given.items() if value is not None}
    named, data = _named(recipe, out, resume=resume and "data.path" not in given)
    chosen_device(device)  # raises for a missing device before data are read
    given = given | data | by_key(options or {}, named.task)
    keys = {setting.partition("=")[0] for setting in settings}
    said = named.given | keys
    timed = [setting for setting in settings if setting.partition("=")[0] == "train.minutes"]
    asked = override(override(named, given), timed)
    if isinstance(recipe, str) and recipe not in TASKS:  # a recipe file is used as it is
        return override(asked, settings), []
    limited = asked.train.minutes is not None and (timed or "train.minutes" in given or not isinstance(recipe, str))
    chosen = given.get("preset") or any(key.split(".")[0] in ("preset", "model") for key in said)
    sizes = limited and not (chosen or asked.start_from or asked.model)
    sized, told = _sized(asked, out, device, corpus) if sizes else (asked, [])
    whole = override(sized, settings)
    if whole.start_from and (given.get("preset") or "preset" in keys):
        what = f"the preset {whole.preset} beside the run {whole.start_from} to begin with"
        raise InputError(what, where="heed train", fix="leave out --preset or --from: a run has its own sizes")
    from_nothing = isinstance(recipe, str) and not (chosen or sized.start_from)
    suited, what, why = _suited(whole, out, corpus) if from_nothing else _rates(whole)
    rates = [rate for rate in suited if rate.partition("=")[0] not in said]
    if not rates:
        return whole, told
    told.append(f"{what} with {', '.join(rates)}, {why and f'{why}, '}unless --set says otherwise")
    return override(override(sized, rates), settings), told


def _named(recipe: Recipe | str, out: Path, *, resume: bool) -> tuple[Recipe, dict[str, object]]:
    """The recipe, and the path of its data if only the run that is continued has it."""
    named = read_recipe(recipe) if isinstance(recipe, str) else recipe
    if resume and (out / "recipe.yaml").is_file():
        saved = saved_recipe(out)
        if isinstance(recipe, str) and recipe in (DEFAULT, saved.task):  # only the task is named
            return saved, {}
        if named.task == saved.task and not named.data.path:
            return named, {"data.path": saved.data.path}
    return named, {}


def _sized(recipe: Recipe, out: Path, device: str, corpus: Any) -> tuple[Recipe, list[str]]:
    """Chooses a size for the recipe's minutes: now if the task's row can, otherwise when the data are known."""
    sized = TASKS[recipe.task].sized
    if sized is not None:
        recipe, why = sized()(recipe, out, torch.device(chosen_device(device)), corpus)
        return recipe, [why]
    return override(recipe, {"preset": AUTO}) if recipe.SIZES else recipe, []


def _rates(recipe: Recipe) -> tuple[list[str], str, str]:
    """Settings for a training that starts from another model, what is tuned, and the reason."""
    if not recipe.start_from:
        return [], "", ""
    start, tuned, adapting = Path(recipe.start_from), TASKS[recipe.task].tuned, recipe.train.lora > 0
    imported = (start / "task.json").is_file() and not (start / "recipe.yaml").is_file()
    own, why = tuned()(recipe) if tuned is not None else ({}, "")
    usual = (ADAPTING if adapting else TUNING) if imported or adapting else ()
    what = "adapters are" if adapting else "an imported model is" if imported else "the model is"
    return as_settings(own) or [*usual], f"{what} tuned", why


def _suited(recipe: Recipe, out: Path, corpus: Any) -> tuple[list[str], str, str]:
    """The same for a new model: settings that suit its data, where they differ from the recipe's. A training that has
    begun keeps its own."""
    suited = TASKS[recipe.task].suited
    own, why = ({}, "") if suited is None else suited()(recipe, corpus)
    if own and (out / "recipe.yaml").is_file() and (saved := saved_recipe(out)).task == recipe.task:
        begun = flat(saved.model_dump(mode="json"))
        own, why = {key: begun[key] for key in own if key in begun}, "as it was begun"
    usual = flat(recipe.model_dump(mode="json"))
    return as_settings({key: one for key, one in own.items() if one != usual.get(key)}), "the model is trained", why


def as_settings(own: Mapping[str, Any]) -> list[str]:
    """As `--set` takes them: "key=value", from a dict by dotted keys, or of dicts."""
    return [f"{key}={json.dumps(value, default=str)}" for key, value in flat({**own}).items()]


def train(
    recipe: Recipe,
    out: Path,
    *,
    resume: bool = False,
    corpus: Any = None,
    device: str = "auto",
    choices: Sequence[str] = (),
) -> Generator[Event, None, None]:
    """Trains into the folder `out`, or continues the training that is there: see `heedful.run.train`. `device` is a
    word for `chosen_device`; `choices` are the lines of `planned`."""
    where = None if device == "auto" else torch.device(chosen_device(device))
    row = TASKS[recipe.task]
    return run_training(row, recipe, out, resume=resume, corpus=corpus, device=where, choices=choices)


def watched(
    training: Generator[Event, None, None],
    callback: Callable[[Event], object] | None,
    reworded: Callable[[str], str],
    *,
    progress: bool,
) -> Finished | None:
    """The end of a training, of which each event is given to `callback`, with notes that are `reworded`, and shown if
    there is to be `progress`. None if it did not finish here."""

    def passed() -> Iterator[Event]:
        for event in training:
            match event:
                case Note():
                    given: Event = replace(event, text=reworded(event.text))
                case Finished():
                    given = replace(event, verdict=reworded(event.verdict))
                case _:
                    given = event
            if callback is not None:
                callback(given)
            yield given

    with closing(training):
        if not progress:
            return next((event for event in passed() if isinstance(event, Finished)), None)
        shown = ProgressLine()
        finished = shown.follow(passed())
        if finished is not None:
            shown.say(finished.verdict)
        return finished
