"""Smaller models of a run: a student that learns from it, and the run itself without its smallest weights."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.errors import InputError, MissingError
from heedful.metrics.names import in_words
from heedful.run.begin import make_job
from heedful.run.device import chosen_device
from heedful.run.events import Event, Finished, Note
from heedful.run.folder import MASK, need_empty, parameters, pruned_from, read_textless_run, write_masks
from heedful.run.pruning import pruned, write_beginning
from heedful.run.recipe import DistilledRecipe, Recipe, overridden, plain_recipe, validated
from heedful.run.task import Lesson, Task
from heedful.run.train import train
from heedful.store import files
from heedful.tasks import TASKS, trained
from heedful.tasks.load import row_of_run
from heedful.tasks.recipes import saved_recipe
from heedful.tasks.shared.options import StudentOptions
from heedful.verbs.saving import save_trained
from heedful.verbs.train import planned

BUDGET = ("steps", "epochs", "minutes")
TENTH = 0.1  # of the steps and the rate of a training, by default, after pruning (Han et al. 2015, section 4.1)
STARTS = ("task", "preset", "start_from", "model", "train", "distil")  # what a student does not take of its teacher


def lesson_of(teacher: Path, student: StudentOptions, options: Any) -> Lesson:
    """How a student of this run is trained; `options` are those of its task. Raises InputError or MissingError."""
    row = row_of_run(teacher)
    if student.preset and student.start:
        raise InputError("--preset and --from", fix="leave one out: a student that begins with a run has its sizes")
    if row.lesson is not None:
        return row.lesson()(teacher, student, options)
    if row.recipe is None or not _may_be_taught(row):
        teach = [name for name, each in trained().items() if each.lesson or _may_be_taught(each)]
        what = f"a model for {row.name!r} does not teach"
        raise InputError(what, where=str(teacher), fix=f"those for {', '.join(teach)} do")
    sections = {name: section for name, section in plain_recipe(teacher).items() if name not in STARTS}
    taught = {**sections, "task": row.name, "distil": {"teacher": str(teacher)}}
    recipe = validated(row.recipe(), taught, where=str(teacher / "recipe.yaml"))
    given: dict[str, object] = {"preset": student.preset, "start_from": student.start or None}
    given |= {"data.path": student.path, "train.minutes": student.minutes}
    return Lesson(planned(recipe, student.out, given, settings=student.settings or ())[0])


def _may_be_taught(row: Task) -> bool:
    return row.recipe is not None and issubclass(row.recipe(), DistilledRecipe)


def prune(
    run: Path,
    out: Path,
    *,
    share: float = 0.5,
    pattern: str = "",
    settings: Sequence[str] = (),
    corpus: Any = None,
    device: str = "auto",
) -> Generator[Event, None, None]:
    """Makes the run `out` of `run`, without its smallest weights (`heedful.training.pruning`), measures it, and trains
    the others on, as its recipe says with these settings, on its data or a `corpus`. Without these nothing is measured
    or trained, and nothing trained with `train.steps=0`. The same call again continues the training. Raises InputError,
    MissingError or StorageError."""
    row_of_run(run)  # raises where it is no run
    where, out = torch.device(chosen_device(device)), files.with_proper_name(out)
    files.need_access(out)
    if not (out / MASK).is_file():
        need_empty(out)
    recipe, trains = _recipe_after(run, settings)
    job, missing = None, "the run does not say what it was trained on"
    if recipe is not None and (corpus is not None or recipe.data.path):
        try:
            job = make_job(TASKS[recipe.task], recipe, corpus, run, where)
        except MissingError as error:
            missing = str(error)
    model = read_textless_run(run)[0]
    masks = pruned(model, share=share, pattern=pattern)
    count, stay = sum(map(torch.numel, masks.values())), pattern or f"{1 - share:.0%}"
    kept = f"of {count:,} weights in linear maps of blocks {stay} stay"
    start = f"from the model in `{run}`, pruned: {kept};"
    begun = pruned_from(out) == start and (out / "recipe.yaml").is_file()  # by the same command
    if not begun:
        save_trained(run, model, out)
        write_masks(out, masks, start)
        yield Note(kept)
        if job is None or recipe is None:
            yield Note(f"neither measured nor trained: {missing}")
            return
        write_beginning(out, job, parameters(model), where)
        scores = job.finish(out, str(where))
        for test, each in scores.items():
            numbers = (in_words(key, value) for key, value in each.items() if not isinstance(value, str))
            yield Note(f"pruned, {test}: {', '.join(numbers)}")
        if not trains:
            files.write_json(out / "scores.json", {"steps": 0, "minutes": 0.0, "scores": scores})
            yield Finished(0, 0.0, scores)
    if trains and recipe is not None:
        yield from train(TASKS[recipe.task], recipe, out, resume=True, corpus=corpus, device=where)


def _recipe_after(run: Path, settings: Sequence[str]) -> tuple[Recipe | None, bool]:
    """The recipe by which a pruned model is trained on, if the run has one, and whether it is: by default in a tenth of
    the steps, at a tenth of the rate."""
    if not (run / "recipe.yaml").is_file():
        return None, False
    recipe, keys = saved_recipe(run), {setting.partition("=")[0].strip() for setting in settings}
    plan: dict[str, object] = {"train.lora": 0} | {f"train.{key}": None for key in BUDGET}
    if not keys & plan.keys():
        if not (run / "scores.json").is_file():
            raise InputError("the training has not ended", where=str(run), fix="--set train.steps=1000")
        plan["train.steps"] = max(1, round(TENTH * files.read_json(run / "scores.json")["steps"]))
    plan |= {f"train.{key}": TENTH * getattr(recipe.train, key) for key in ("lr", "muon_lr")}
    data = overridden(overridden(recipe.model_dump(mode="json"), plan), settings)
    trains = data["train"]["steps"] != 0
    if not trains:
        data["train"]["steps"] = None
    recipe = validated(type(recipe), data, where="--set")
    if recipe.train.lora:
        raise InputError("adapters are added to zeros too", where="train.lora", fix="leave it out")
    return recipe, trains
