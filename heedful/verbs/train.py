"""Training, as the command line and Python both ask for it: one place decides what is chosen where nothing is said."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.errors import InputError
from heedful.run.device import chosen_device
from heedful.run.recipe import AUTO, Recipe, override
from heedful.run.train import Event
from heedful.run.train import train as run_training
from heedful.tasks import TASKS
from heedful.tasks.recipes import read_recipe, saved_recipe

# How a model is tuned that was imported, and so has no rates of its own (Devlin et al. 2019, appendix A.3).
TUNING = ("train.optimizer=adam", "train.lr=5e-5", "train.warmup=100")
# Adapters begin as zeros and take more (Hu et al. 2021, appendix D).
ADAPTING = ("train.optimizer=adam", "train.lr=5e-4", "train.warmup=100")


def planned(
    recipe: Recipe | str,
    out: Path,
    given: Mapping[str, object],
    *,
    settings: Sequence[str] = (),
    resume: bool = False,
    device: str = "auto",
) -> tuple[Recipe, list[str]]:
    """The recipe of a training into `out`, and lines that tell what was chosen for it.

    `recipe` is one, or the name of a task or of a recipe file. What is `given` overrides it, by key, such as
    "train.minutes" (None: not given), and `settings` (key=value) last. A model is sized for its minutes where the task
    can do that and no size is chosen, here or (by "preset=auto") when the training begins; one that begins with an
    imported model takes that model's usual rates. Raises InputError or MissingError.
    """
    made = read_recipe(recipe) if isinstance(recipe, str) else recipe
    by_file = isinstance(recipe, str) and recipe not in TASKS
    given = {key: value for key, value in given.items() if value is not None}
    if resume and "data.path" not in given and (out / "recipe.yaml").is_file():
        made = saved_recipe(out)
    said = made.given | {setting.partition("=")[0] for setting in settings}
    timed = [setting for setting in settings if setting.partition("=")[0] == "train.minutes"]
    told: list[str] = []
    if "method" in given:
        if not made.METHOD:
            raise InputError(f"--method is not used by {made.task}", fix="leave it out")
        given[made.METHOD] = given.pop("method")
    made = override(made, [*(f"{key}={_as_yaml(value)}" for key, value in given.items()), *timed])
    budget = None if isinstance(recipe, str) and not timed and "train.minutes" not in given else made.train.minutes
    row = TASKS[made.task]
    chosen = given.get("preset") or any(key.split(".")[0] in ("preset", "model") for key in said)
    sizes = chosen or made.start_from or made.model
    if budget is not None and row.sized is not None and not sizes and not by_file:
        made, why = row.sized()(made, out, torch.device(chosen_device(device)))
        told.append(why)
    if budget is not None and made.SIZES and not sizes and not by_file:
        made = override(made, [f"preset={AUTO}"])
    start = Path(made.start_from) if made.start_from else None
    imported = start is not None and (start / "task.json").is_file() and not (start / "recipe.yaml").is_file()
    whole = override(made, settings)
    adapting = whole.train.lora > 0
    own, why = row.tuned()(whole) if row.tuned is not None and start is not None and not by_file else ({}, "")
    usual = (ADAPTING if adapting else TUNING) if imported or adapting else ()
    rates = [f"{key}={_as_yaml(value)}" for key, value in own.items()] or [*usual]
    rates = [rate for rate in rates if rate.partition("=")[0] not in said]
    if rates and not by_file:
        made = override(made, rates)
        whose = "adapters are" if adapting else "an imported model is" if imported else "the model is"
        told.append(f"{whose} tuned with {', '.join(rates)}, {why and f'{why}, '}unless --set says otherwise")
    return override(made, settings), told


def train(
    recipe: Recipe, out: Path, *, resume: bool = False, corpus: Any = None, device: str = "auto"
) -> Iterator[Event]:
    """Trains into the folder `out`, or continues the training that is there: see `heedful.run.train`. `device` is a
    word that `chosen_device` knows."""
    where = None if device == "auto" else torch.device(chosen_device(device))
    return run_training(TASKS[recipe.task], recipe, out, resume=resume, corpus=corpus, device=where)


def _as_yaml(value: object) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value)
