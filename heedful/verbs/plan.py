"""What a training will take, before it begins: `heed plan`."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.errors import InputError
from heedful.models import preset as preset_config
from heedful.models.counts import PARAMETERS
from heedful.run.device import best_device
from heedful.run.passes import BatchShape, passed
from heedful.run.plan import (
    MOST,
    STATE,
    USUAL_SHARE,
    Machine,
    Plan,
    Shard,
    as_settings,
    devices_of,
    measured_seconds,
    nearest,
    plan,
    setting_of,
    shape_of_data,
)
from heedful.run.recipe import AUTO, Recipe, override
from heedful.run.train import budget_of
from heedful.tasks import TASKS
from heedful.tasks.recipes import read_recipe

UNITS = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
LONGEST = 30.0  # seconds of a step that is still measured


@dataclass(frozen=True)
class Planned:
    """A plan, on other numbers of devices too, and what fits instead where it does not."""

    recipe: Recipe
    shape: BatchShape
    plan: Plan
    others: Sequence[Plan]  # on 1, 2, 4 ... 1,024 devices
    amount: float  # of `shape.unit` in the data
    epochs: float
    measured: bool  # whether the share of the peak was measured here
    instead: Plan | None  # the setting most like it that fits
    settings: Sequence[str]  # what makes that of the recipe
    largest: str  # of the task's presets, by its weights and optimizer; "": none fits

    def record(self, price: float | None) -> dict[str, Any]:
        """As plain data; with a `price` of an hour of a device, the cost too."""
        record = _record(self.plan, price) | {
            "preset": self.recipe.preset,
            "unit": self.shape.unit,
            "amount": self.amount,
            "examples_a_step": self.shape.examples * self.plan.setting.batches,
            "epochs": self.epochs,
            "measured": self.measured,
            "devices": [_record(other, price) for other in self.others],
        }
        if self.instead is not None:
            record["instead"] = _record(self.instead, price) | {"set": [*self.settings]}
        return record | ({} if self.plan.fits else {"largest_preset": self.largest})


def _record(planned: Plan, price: float | None) -> dict[str, Any]:
    setting = planned.setting
    return {
        "on": planned.machine if setting.devices == 1 else f"{setting.devices}x{planned.machine}",
        "precision": setting.precision,
        "shard": setting.shard,
        "parameters": planned.parameters,
        "steps": planned.steps,
        "memory": planned.memory,
        "needed": planned.needed,
        "room": planned.room,
        "fits": planned.fits,
        "flops": planned.operations,
        "share": planned.share,
        "wire": planned.wire,
        "step_seconds": planned.step_seconds,
        "hours": planned.hours,
        "device_hours": planned.device_hours,
        "disk": planned.disk,
    } | ({} if price is None else {"cost": planned.device_hours * price})


def amount_of(text: str, where: str) -> float:
    """The number that "4.5M", "300B" or "29000" is. Raises InputError."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kMBT]?)", text.replace(",", ""))
    number = float(match[1]) * UNITS.get(match[2], 1.0) if match else 0.0
    if not number:
        raise InputError(f"{text!r} is no amount", where=where, fix="such as 29000, 4.5M or 300B")
    return number


def planned(
    name: str,
    given: Mapping[str, object],
    *,
    amounts: Mapping[str, str],
    words: float | None = None,
    on: str | None = None,
    shard: Shard = "none",
    share: float | None = None,
    settings: Sequence[str] = (),
) -> Planned:
    """The plan of a task or recipe file. `given` and `settings` override its keys, as of `heed train`; of `amounts`, by
    the unit of the task's batches, one is needed unless data are given, which are then read. Raises InputError or
    MissingError."""
    recipe = override(override(read_recipe(name), {k: v for k, v in given.items() if v is not None}), settings)
    shape, config, amount, fewest = _data_of(recipe, amounts, words)
    here = best_device()
    machine, devices, precision = devices_of(recipe, on, here)
    setting = setting_of(recipe, precision, devices, shard)
    taken = passed(config, shape, precision, explicit=machine.kind == "cpu")
    an_epoch = max(1, math.ceil(amount / shape.examples / recipe.train.accumulate))
    first = plan(taken, machine, setting, steps=1, share=share or USUAL_SHARE)
    measured = on is None and share is None and first.fits and first.step_seconds < LONGEST
    if measured:
        seconds = recipe.train.accumulate * measured_seconds(config, shape, setting, here)
        share = USUAL_SHARE * first.step_seconds / seconds
    share = share or USUAL_SHARE
    steps = _steps(recipe, fewest, an_epoch, plan(taken, machine, setting, steps=1, share=share).step_seconds)
    whole = plan(taken, machine, setting, steps=steps, share=share, keep=recipe.train.keep)
    counts = () if on is None else (2**i for i in range(MOST.bit_length()))
    others = [replace_devices(whole, count, taken, machine, recipe) for count in counts]
    other = None if whole.fits else nearest(taken, machine, setting)
    instead = other and plan(other[0], machine, other[1], steps=steps, share=share, keep=recipe.train.keep)
    return Planned(
        recipe=recipe,
        shape=shape,
        plan=whole,
        others=others,
        amount=amount,
        epochs=steps / an_epoch,
        measured=measured,
        instead=instead,
        settings=[] if other is None else as_settings(recipe, shape, setting, other[1]),
        largest=_largest(recipe, machine),
    )


def replace_devices(whole: Plan, devices: int, taken: Any, machine: Machine, recipe: Recipe) -> Plan:
    """The same plan on another number of devices."""
    setting = replace(whole.setting, devices=devices)
    return plan(taken, machine, setting, steps=whole.steps, share=whole.share, keep=recipe.train.keep)


def _data_of(recipe: Recipe, amounts: Mapping[str, str], words: float | None) -> tuple[BatchShape, Any, float, float]:
    """The shape of a batch, the configuration, the amount of data, and the fewest steps of a training of this recipe:
    by its data where it has some."""
    row = TASKS[recipe.task]
    if row.batch is None or recipe.preset == AUTO or recipe.start_from or recipe.train.lora:
        known = ", ".join(name for name, other in TASKS.items() if other.batch is not None)
        what = "only a new model of a preset is planned"
        raise InputError(what, where=recipe.task, fix=f"name a --preset, of one of these tasks: {known}")
    if recipe.data.path:
        if amounts:
            raise InputError(f"--{next(iter(amounts))} beside data, which are counted", fix="leave out one of them")
        return _read(recipe)
    vocabulary = getattr(recipe.data, "vocab_size", None)
    config = preset_config(recipe.preset, vocab_size=vocabulary, changes=recipe.model)
    shape = row.batch()(recipe, config) if words is None else row.batch()(recipe, config, words)
    if [*amounts] != [shape.unit]:
        raise InputError("how much data?", where="heed plan", fix=f"--{shape.unit} 4.5M, or --data PATH")
    return shape, config, amount_of(amounts[shape.unit], f"--{shape.unit}"), 0.0


def _read(recipe: Recipe) -> tuple[BatchShape, Any, float, float]:
    """The same by the recipe's data, read as a training would read them."""
    row = TASKS[recipe.task]
    assert row.job is not None
    assert row.batch is not None
    job = row.job()(recipe)
    shape, amount = shape_of_data(row.batch()(recipe, job.config), job)
    return shape, job.config, amount, float(job.fewest_steps)


def _steps(recipe: Recipe, fewest: float, an_epoch: int, seconds: float) -> int:
    """How many steps a training of this recipe makes, of so many seconds each."""
    budget = budget_of(recipe.train, fewest / an_epoch)
    bounds = [budget.steps or math.inf]
    bounds += [math.inf if budget.epochs is None else math.ceil(budget.epochs * an_epoch)]
    bounds += [math.inf if budget.minutes is None else math.ceil(60 * budget.minutes / seconds)]
    return int(min(bounds))


def _largest(recipe: Recipe, machine: Machine) -> str:
    """The largest of the task's presets whose weights and optimizer a device holds; "" where none does."""
    fitting = [name for name in type(recipe).PRESETS() if STATE * PARAMETERS[name] < machine.memory]
    return max(fitting, key=PARAMETERS.__getitem__, default="")
