"""Chooses a preset for a budget of minutes, where none is named, by timing them on this machine with the actual data.

It is the task's usual preset; a smaller one if that would make too few steps or has too many parameters for the data; a
larger one if there is enough time and data. Every preset reads texts of the same length as the usual one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from heedful.data.parts import Parts
from heedful.models import make_model
from heedful.run.job import Job
from heedful.run.recipe import AUTO, Recipe, override
from heedful.run.resume import begun_recipe
from heedful.run.task import Task
from heedful.store import files
from heedful.training.loop import Budget, CachingTask, Step, TrainState, fit, steps_in
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.precision import DTYPES, choose_precision

STEPS = 500  # that a model must make, at least
EACH = 20  # parameters for each token of the data, at most
SEEN = 1.0  # tokens that a model larger than the usual one must see for each of its parameters, at least
TRIAL = 4  # steps of a trial, of which the quickest counts
HOPELESS = 8  # a model that would make less than STEPS / HOPELESS steps, judging by its size, is not tried


@dataclass(frozen=True)
class Trial:
    """How a model of a preset performs here."""

    preset: str
    parameters: int
    steps: float  # in the minutes
    tokens: int | None  # of the data, padding included; None: it has none
    epoch: int  # steps

    def lacks(self, *, usual: bool) -> str:
        """Why this size is too large; "" where it is not. `usual`: it is the usual one, or smaller."""
        seen = None if self.tokens is None else self.tokens * self.steps / self.epoch
        if self.steps < STEPS:
            return f"would make about {self.steps:,.0f} steps"
        if self.tokens is not None and self.parameters > EACH * self.tokens:
            return f"has {self.parameters:,} parameters for {self.tokens:,} tokens of data"
        if not usual and (seen is None or seen < SEEN * self.parameters):
            return f"would see too little for its {self.parameters:,} parameters"
        return ""


def with_begun_preset(recipe: Recipe, out: Path) -> Recipe:
    """The recipe, with the preset that was chosen for the run in `out` if one has begun there."""
    if recipe.preset != AUTO or not (out / "recipe.yaml").is_file():
        return recipe
    begun = begun_recipe(type(recipe), out)
    return override(recipe, {"preset": begun.preset, "model": begun.model})


def sized_job(
    task: Task, recipe: Recipe, corpus: Parts[Any] | None, device: torch.device
) -> tuple[Job[Any, Any, Any], str]:
    """A job with the preset that suits the recipe's minutes, and a line that says what was chosen and why. The job's
    recipe has that preset."""
    assert task.job is not None
    kind, sizes, minutes = task.job(), recipe.SIZES, recipe.train.minutes
    assert minutes is not None
    usual = sizes.index(type(recipe).model_fields["preset"].default)
    job = kind(_of_size(recipe, sizes[0]), corpus)
    chosen, why = _trial(job, minutes, device), ""
    too_large = chosen.lacks(usual=True)
    with TemporaryDirectory() as folder:
        _keep(job, Path(folder))
        for number, preset in enumerate(sizes[1:], 1):
            if too_large:
                break
            larger = kind(_of_size(recipe, preset), job.corpus, Path(folder))
            if larger.config == job.config:
                continue
            tried = _trial(larger, minutes, device, chosen)
            why = tried.lacks(usual=number <= usual)
            if why:
                why = f"; {preset} {why}"
                break
            job, chosen = larger, tried
    if too_large:
        few = f"would need {STEPS}" if chosen.steps < STEPS else too_large
        why = f", the smallest, though it {few}"
    told = (
        f"{minutes:g} minutes: {chosen.preset}, {chosen.parameters:,} parameters, about {chosen.steps:,.0f} steps{why}"
    )
    return job, told


def _of_size(recipe: Recipe, preset: str) -> Recipe:
    """The recipe with this preset, and the context length of the usual one."""
    rows = type(recipe).PRESETS()
    usual = type(recipe).model_fields["preset"].default
    longest = [getattr(rows[name], "context_length", None) for name in (usual, preset)]
    model = {} if longest[0] == longest[1] else {"context_length": longest[0]}
    return override(recipe, {"preset": preset, "model": model})


def _keep(job: Job[Any, Any, Any], folder: Path) -> None:
    """Saves what the jobs of other sizes can use again."""
    files.write_json(folder / "data.json", job.facts())
    for name, data in job.tokenizers().items():
        files.write_bytes(folder / name, data)


def _trial(job: Job[Any, Any, Any], minutes: float, device: torch.device, smaller: Trial | None = None) -> Trial:
    """Times a few steps; none if the model is far too large, judging by a smaller one."""
    plan = job.recipe.train
    torch.manual_seed(plan.seed)
    model = make_model(job.config).to(device, DTYPES[choose_precision(device).precision])
    count = sum(parameter.numel() for parameter in model.parameters())
    task = CachingTask(job.task(model))
    batches = task.batches(0, model)
    tokens = _tokens(batches)
    epoch = max(1, steps_in(len(batches), plan.accumulate))
    if smaller is not None and smaller.steps * smaller.parameters * HOPELESS < STEPS * count:
        return Trial(job.recipe.preset, count, smaller.steps * smaller.parameters / count, tokens, epoch)
    state = TrainState(
        model=model, optimizer=Optimizer(model, OptimConfig()), average=Average(model, 0.0), seed=plan.seed
    )
    seconds = [0.0]
    steps = fit(task, state, Budget(steps=TRIAL), accumulate=plan.accumulate, tolerant=True, halves=job.halves)
    for step in steps:
        if isinstance(step, Step):
            seconds.append(step.seconds)
            if step.seconds > 60 * minutes / STEPS * TRIAL:
                break
    spent = min((after - before for before, after in pairwise(seconds)), default=1.0)
    return Trial(job.recipe.preset, count, 60 * minutes / max(spent, 1e-9), tokens, epoch)


def _tokens(batches: Sequence[Any]) -> int | None:
    """How many tokens the first tensors of all batches have; None where a batch has no tensor."""
    first = [next((part.numel() for part in batch if isinstance(part, Tensor)), None) for batch in batches]
    return None if None in first else sum(count for count in first if count is not None)
