"""A training run: a recipe in, a folder out.

`train` is a generator of events; the command line draws them, a program may ignore them. The folder that it fills
can be read by a person, used as a model as soon as the first score is there, and be continued at any time: by the
same command, after whatever ended it.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.data.parts import Parts
from heedful.errors import InputError, Interrupted, MissingError, NonFiniteError, RankError
from heedful.look.draw import curves, panels, to_bytes
from heedful.run.averaging import mean_of_last
from heedful.run.card import Scores, environment
from heedful.run.device import best_device
from heedful.run.job import Job
from heedful.run.log import Log, check_tensorboard
from heedful.run.measuring import SHARE, affordable_share, beside, too_little
from heedful.run.recipe import AUTO, Recipe, to_yaml
from heedful.run.resume import Progress, check_space, forget_after, restore, same_recipe, save_state
from heedful.run.sizing import sized_job, with_begun_preset
from heedful.run.state import new_state, precision_of
from heedful.run.task import Task
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, clean, load_newest, rotate
from heedful.store.lock import NAME, run_lock
from heedful.training.loop import NON_FINITE_FIX, Budget, Kept, Skipped, State, Step, fit
from heedful.training.precision import Precision
from heedful.training.ranks import Ranks, join_ranks
from heedful.training.signals import Leave, Signals

LOG_EVERY = 20  # steps between two lines of metrics.jsonl
EPOCHS = 10.0  # where no budget is given
SEEN = 5  # steps before the time that is left is told by them
PATIENCE = 10  # steps that may be skipped one after another, and times that training may be set back
AGAIN = "the same command continues from there"


@dataclass(frozen=True)
class Note:
    """A line that a person should see."""

    text: str


@dataclass(frozen=True)
class Trained:
    """One optimizer step, and how fast things go."""

    step: Step
    lr: float
    rate: float  # a second, of what its loss is a mean over
    counted: str  # what that is
    seconds_left: float | None  # until the budget is used up; None until there is an estimate


@dataclass(frozen=True)
class Measured:
    """The averaged weights on the validation data; `best` so far, by what the task ranks by."""

    step: int
    valid_loss: float
    scores: dict[str, float]
    best: bool
    sample: str | bytes = field(default="", repr=False)  # of what the model says, as text or a PNG


@dataclass(frozen=True)
class Checkpointed:
    """A checkpoint that no crash can lose any more."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The best model's scores on each test set, by the recipe's search."""

    steps: int
    minutes: float
    scores: Scores


Event = Note | Trained | Measured | Checkpointed | Finished


def train(
    task: Task,
    recipe: Recipe,
    out: Path,
    *,
    resume: bool = False,
    corpus: Parts[Any] | None = None,
    device: torch.device | None = None,
) -> Iterator[Event]:
    """Trains a model for a task into the folder `out`, or continues the training that is there.

    Under `torchrun` the ranks train together, and all but the first yield nothing. `corpus` stands in for the
    recipe's data, and `device` for the best one here. Raises InputError before the first step for whatever is wrong
    with the recipe or the data, leaving nothing behind; NonFiniteError where training breaks down; Interrupted, when
    all is saved, after SIGINT, SIGTERM or SIGUSR1.
    """
    with join_ranks() as ranks, ExitStack() as held:
        job, where = None, device or best_device()
        if ranks.first:
            recipe = with_begun_preset(recipe, out)
            if recipe.train.tensorboard:
                check_tensorboard()
            begun = _begun(recipe, out, resume=resume)
            if recipe.train.minutes is not None and corpus is None:
                yield Note("reading the data, which is not part of the minutes")
            job = _job(task, recipe, corpus, out if begun else None, where)
            recipe = job.recipe
            files.make_folder(out)
            held.enter_context(run_lock(out))
            if _begun(recipe, out, resume=resume) != begun:
                what = "another training has begun here a moment ago"
                raise InputError(what, where=str(out), fix="run the same command again, or choose another --out")
            clean(out)
        signals = held.enter_context(Signals())
        yield from _Run(task, recipe, out, corpus, job, ranks, signals, where, held).events()


def _job(
    task: Task, recipe: Recipe, corpus: Parts[Any] | None, begun: Path | None, device: torch.device
) -> Job[Any, Any, Any]:
    if task.job is None:
        raise InputError(f"models for {task.name!r} are imported, and not trained here", fix="train another task")
    if recipe.preset != AUTO:
        return task.job()(recipe, corpus, begun)
    job, told = sized_job(task, recipe, corpus, device)
    job.notes.append(told)
    return job


def _begun(recipe: Recipe, out: Path, *, resume: bool) -> bool:
    """Whether there is a run in `out` to continue. Raises InputError or MissingError where it cannot be used."""
    begun = (out / "recipe.yaml").is_file()
    if resume and not begun:
        raise MissingError("there is no run to continue", where=str(out), fix="leave out --resume to begin one")
    if begun:
        same_recipe(recipe, out)
    elif out.exists() and not out.is_dir():
        raise InputError("is a file, not a folder", where=str(out), fix="choose another --out")
    elif out.exists() and any(
        path.name != NAME and not path.name.startswith(files.TEMPORARY) for path in out.iterdir()
    ):
        raise InputError("the folder is not empty and holds no run", where=str(out), fix="choose another --out")
    return begun


class _Run:
    """One call of `train`, on one rank."""

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        out: Path,
        corpus: Parts[Any] | None,
        job: Job[Any, Any, Any] | None,
        ranks: Ranks,
        signals: Signals,
        device: torch.device,
        held: ExitStack,
    ) -> None:
        self.recipe, self.plan, self.out, self.ranks, self.signals = recipe, recipe.train, out, ranks, signals
        self.counted = task.counted
        self.notes: list[str] = []
        self.device = device
        if job is not None:
            self.notes += job.notes
            newest = self._newest()
            precision, why = precision_of(recipe, newest, self.device)
            threads = torch.get_num_threads()
            self.notes.append(f"training in {precision} on {self.device.type} with {threads} threads: {why}")
            if newest is None:
                _write_first_files(recipe, out, job, environment(self.device, precision))
            ranks.share(precision)
        else:
            precision = ranks.share()  # the first rank has found no fault with anything, and the run is begun
            recipe = with_begun_preset(recipe, out)
            job = _job(task, recipe, corpus, out, device)
            newest = self._newest()
        self.job = job
        self.precision: Precision = precision
        self.state = new_state(recipe, job, self.device, precision, begins=newest is None)
        self.progress = Progress()
        if newest is not None:
            self._go_back(newest)
            self.notes.append(f"continuing from step {self.state.step}")
        if ranks.first:
            check_space(out, self.state, max(self.plan.keep, self.plan.average_last))
            self.log = Log(out, step=self.state.step, tensorboard=self.plan.tensorboard)
            held.callback(self.log.close)
        self.task = Kept(job.task(self.state.model))
        self.set_back = 0  # times, without a checkpoint in between

    def events(self) -> Iterator[Event]:
        for event in self._events():
            if self.ranks.first:
                yield event

    def _events(self) -> Iterator[Event]:
        plan, state, progress = self.plan, self.state, self.progress
        self._describe()
        yield from map(Note, self.notes)
        yield from self._choose_share()
        if progress.due:
            yield from self._measure()
        stopped = self._stops()
        steps = fit(
            self.task,
            state,
            self._budget(),
            accumulate=plan.accumulate,
            ranks=self.ranks,
            tolerant=plan.non_finite != "stop",
            signal=lambda: self.signals.number,
        )
        rates: list[float] = []
        before = state.seconds
        skipped = 0
        for step in () if stopped else self._with_ranks(steps):
            if isinstance(step, Skipped):
                skipped += 1
                yield from self._put_right(step, skipped)
                continue
            skipped = 0
            progress = self.progress
            rates = [*rates[-19:], step.count / max(1e-9, step.seconds - before)]
            before = step.seconds
            progress.add(step)
            left = self._left(step, len(rates))
            yield Trained(step, step.lr * plan.lr, sum(rates) / len(rates), self.counted, left)
            if step.step % LOG_EVERY == 0:
                self._log(step)
            if progress.measures(step, plan.eval_every):
                progress.due = self._affords(step)
                if progress.due and not step.signal:
                    yield from self._measure()
                stopped = self._stops()
            if step.signal or progress.saves(step, plan.save_every):
                yield self._save()
            if step.signal:
                raise self._interrupted(step.signal)
            if stopped:
                break
        del steps  # and whatever its threads hold
        if stopped:
            what = f"{plan.patience} measurements in a row found no better model than that of step"
            yield Note(f"stopped early: {what} {self.progress.best_step:,}, which is kept")
        if state.step == 0:
            raise InputError("the budget ends before the first step", where="train", fix="--set train.steps=1000")
        if self.progress.measured != state.step:
            yield from self._measure()
        if plan.average_last > 1 and self.progress.averaged != state.step:
            yield from self._measure_mean()
        if self.progress.saved != state.step:
            yield self._save()
        if self.ranks.first:
            try:
                with self.signals.giving_up():
                    finished, loss = _finish(self.job, self.out, state, self.progress, self.device)
            except Leave:
                raise self._interrupted(self.signals.number) from None
            yield from self._too_short(loss)
            yield finished

    def _describe(self) -> None:
        count = sum(parameter.numel() for parameter in self.state.average.model.parameters())
        steps = len(self.task.batches(self.state.epoch, self.state.model)) / self.plan.accumulate
        together = f", {self.ranks.size} ranks" if self.ranks.size > 1 else ""
        self.notes.append(f"{self.job.describe()}, {count:,} parameters, {steps:,.0f} steps an epoch{together}")

    def _budget(self) -> Budget:
        plan = self.plan
        if (plan.steps, plan.epochs, plan.minutes) != (None, None, None):
            return Budget(steps=plan.steps, epochs=plan.epochs, minutes=plan.minutes)
        batches = len(self.task.batches(self.state.epoch, self.state.model))
        return Budget(epochs=max(EPOCHS, self.job.fewest_steps / -(-batches // plan.accumulate)))

    def _too_short(self, loss: float) -> Iterator[Note]:
        """Says it where a training was too short for its scores to mean much. `loss`: of the best model, measured."""
        state, chance = self.state, self.job.chance()
        epochs = state.epoch + state.batch / len(self.task.batches(state.epoch, state.model))
        why = too_little(state.step, epochs, loss, chance, started=bool(self.recipe.start_from))
        if why:
            yield Note(f"trained too little: {why}; give it more time (--minutes, train.epochs) or a smaller --preset")

    @property
    def _frugal(self) -> bool:
        """Whether time is what bounds this training, and how often to measure is not said."""
        return self.plan.minutes is not None and self.plan.eval_every is None

    def _choose_share(self) -> Iterator[Note]:
        """Measures on as much of the validation data as a training for so many minutes can afford; a run that has begun
        on as much as before."""
        progress, minutes, job = self.progress, self.plan.minutes, self.job
        if minutes is None or not self._frugal or not self.ranks.first:
            return
        if progress.best is not None:  # a run of before shares were chosen measured on all
            progress.share = progress.share or 1.0
        if not progress.share:
            try:
                with self.signals.giving_up():
                    found = affordable_share(job, self.state.average.model, minutes)
            except Leave:  # the next step leaves
                return
            progress.share, progress.cost, progress.measuring = found
        if progress.share < 1:
            job.valid = job.portion(job.valid, progress.share)
        yield Note(beside(minutes, progress.share))

    def _stops(self) -> bool:
        """Whether `patience` is at its end, on all ranks as on the first."""
        patience = self.plan.patience
        return patience is not None and bool(self.ranks.share(self.progress.worse >= patience))

    def _affords(self, step: Step) -> bool:
        """Whether a measurement that is due is made: those of a frugal training take a fifth of its time at most."""
        return not self._frugal or self.progress.measuring + self.progress.cost <= SHARE * step.seconds

    def _left(self, step: Step, seen: int) -> float | None:
        """Seconds until the budget ends, told from the steps so far once some of this call have been seen."""
        bounds = [] if self.plan.minutes is None else [60 * self.plan.minutes - step.seconds]
        if seen >= SEEN and step.progress > 0:
            bounds.append(step.seconds * (1 / step.progress - 1))
        return max(0.0, min(bounds)) if bounds else None

    def _with_ranks(self, steps: Iterator[Step | Skipped]) -> Iterator[Step | Skipped]:
        """A rank that was told to leave need not say that the others have left."""
        try:
            yield from steps
        except RankError:
            if not self.signals.number:
                raise
            raise self._interrupted(self.signals.number) from None

    def _measure_mean(self) -> Iterator[Event]:
        """The mean of the last checkpoints, once they are all there: it is kept where it is better."""
        progress, state = self.progress, self.state
        progress.averaged = state.step
        progress.saved = -1  # what was measured is to be in the last one
        if not self.ranks.first:
            return
        model, count = mean_of_last(self.out, state, self.plan.average_last)
        for event in self._measure(model, averaged=count):
            if isinstance(event, Measured):
                how = "is better, and is kept" if event.best else "is no better, and is not kept"
                yield Note(
                    f"the mean of the last {count} checkpoints: validation loss {event.valid_loss:.4f}; it {how}"
                )
            yield event

    def _measure(self, mean: nn.Module | None = None, *, averaged: int = 0) -> Iterator[Event]:
        """On the validation data: the average of the weights, or this mean of so many checkpoints. A signal ends it,
        saves, and leaves: it is made up for when the run continues."""
        progress, state, model = self.progress, self.state, mean or self.state.average.model
        progress.due, progress.measured = False, state.step
        if not self.ranks.first:
            return
        begin = time.perf_counter()
        try:
            with self.signals.giving_up():
                found = self.job.measure(model)
        except Leave:
            if mean is None:
                progress.due = True
            else:
                progress.averaged = 0
            yield self._save()
            raise self._interrupted(self.signals.number) from None
        except NonFiniteError as error:
            raise NonFiniteError(error.what, where=f"step {state.step}, measured", fix=NON_FINITE_FIX) from None
        progress.cost = time.perf_counter() - begin
        progress.measuring += progress.cost
        self.log.measured(state.step, found, averaged=averaged)
        if mean is None:
            progress.worse = 0 if progress.best is None or found.rank > progress.best else progress.worse + 1
        best = progress.best is None or (found.rank >= progress.best if mean is None else found.rank > progress.best)
        if best:
            progress.best, progress.best_step, progress.best_averaged = found.rank, state.step, averaged > 0
            self.job.write(self.out, model)
        yield Measured(state.step, found.loss, found.scores, best, found.sample)

    def _save(self) -> Checkpointed:
        self.progress.saved = self.state.step
        self.set_back = 0
        if self.ranks.first:
            size = self.ranks.size
            save_state(self.out, self.state, self.progress, self.job, precision=self.precision, ranks=size)
            rotate(self.out, max(self.plan.keep, self.plan.average_last))
        return Checkpointed(self.state.step)

    def _log(self, step: Step) -> None:
        means = self.progress.means()
        row = {
            "step": step.step,
            "epoch": step.epoch,
            "train_loss": means.pop("train_loss"),
            "lr": step.lr * self.plan.lr,
            "norm": step.norm,
            "seconds": step.seconds,
            **means,
        }
        if self.ranks.first:
            self.log.add(row)

    def _interrupted(self, number: int) -> Interrupted:
        what = f"{signal.Signals(number).name}: saved at step {self.state.step}; {AGAIN}"
        return Interrupted(what, number=number, where=str(self.out))

    def _put_right(self, skipped: Skipped, times: int) -> Iterator[Note]:
        """Leaves a step out that was not finite, or goes back to the last checkpoint and leaves it out then."""
        error = skipped.error
        if self.plan.non_finite == "skip":
            if times >= PATIENCE:
                raise error
            yield Note(f"{error}: this step is left out")
            return
        damaged: list[str] = []
        good = load_newest(self.out, damaged.append, finite=True)
        yield from map(Note, damaged)
        self.set_back += 1
        if good is None or self.set_back > PATIENCE:
            raise error
        left_out = [*self.state.left_out, skipped.batch]
        self._go_back(good)
        self.state.left_out = left_out
        yield Note(f"{error}: back to step {self.state.step}, and this batch is left out")

    def _newest(self) -> Checkpoint | None:
        """The newest good checkpoint. Raises NonFiniteError where there are some, but of broken weights alone."""
        newest = load_newest(self.out, self.notes.append, finite=True)
        broken = load_newest(self.out, lambda line: None)
        if broken is not None and (newest is None or newest.step < broken.step):
            what = f"{broken.path}: weights that are not finite, left out"
            if newest is None:
                raise NonFiniteError(what, fix="choose another --out and a lower train.lr")
            self.notes.append(what)
        return newest

    def _go_back(self, checkpoint: Checkpoint) -> None:
        self.progress = restore(self.state, checkpoint, self.job, self.out)
        if self.ranks.first:
            averaged = self.progress.averaged == self.state.step
            forget_after(self.out, self.state.step, measured=not self.progress.due, averaged=averaged)


def _write_first_files(recipe: Recipe, out: Path, job: Job[Any, Any, Any], machine: dict[str, object]) -> None:
    """Writes what a run's folder holds from its first moment, the recipe first: with it, the run can be continued."""
    files.write_text(out / "recipe.yaml", to_yaml(recipe))
    files.write_json(out / "environment.json", machine)
    files.write_json(out / "data.json", job.facts())
    for name, data in job.tokenizers().items():
        files.write_bytes(out / name, data)


def _finish(
    job: Job[Any, Any, Any], out: Path, state: State, progress: Progress, device: torch.device
) -> tuple[Finished, float]:
    """Scores the best model on the test sets, and writes what a reader of the folder wants to know. The scores, and the
    best model's loss on the validation data."""
    finished = Finished(state.step, state.seconds / 60, job.finish(out, str(device)))
    rows = [files.parse_json(line.encode(), where=out) for line in files.read_whole_lines(out / "metrics.jsonl")]
    files.make_folder(out / "plots")
    figure = panels(rows, job.panels) if job.panels else curves(rows, scores=job.score_names, title=out.name)
    files.write_bytes(out / "plots" / "training.png", to_bytes(figure, "png"))
    files.write_json(out / "scores.json", asdict(finished))
    measured = (row for row in rows if row["step"] == progress.best_step and "valid_loss" in row)
    best = next(row for row in measured if ("averaged" in row) == progress.best_averaged)
    files.write_text(out / "README.md", job.card(out, finished.scores, best, finished.minutes))
    return finished, best["valid_loss"]
