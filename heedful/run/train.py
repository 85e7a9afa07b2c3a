"""A training run: a recipe in, a folder out.

`train` is a generator of events; the command line prints them, a program may ignore them. The folder that it fills is
readable for people, is a usable model after the first measurement, and can be continued by the same command, whatever
ended the training.
"""

import json
import shlex
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.data.parts import Parts
from heedful.errors import InputError, Interrupted, RankError, counted
from heedful.look.draw import curves, panels, to_bytes
from heedful.run.averaging import mean_of_last, planned_steps
from heedful.run.begin import Begun, as_notes, begin, checked, make_job, prepare, reading
from heedful.run.device import best_device
from heedful.run.events import Checkpointed, Event, Finished, Note, Trained
from heedful.run.folder import METRICS
from heedful.run.job import Job
from heedful.run.log import Log
from heedful.run.measuring import (
    FALLING,
    QUICK,
    SHARE,
    TEN_TIMES,
    TIMES,
    Validation,
    measured_on,
    no_better_than_before,
    still_falling,
    too_little,
)
from heedful.run.prepared import PREPARED, is_prepared
from heedful.run.recipe import Recipe, TrainSection
from heedful.run.resume import Progress, best_row, check_space, forget_after, keep_recipe, restore, save_state
from heedful.run.state import new_state
from heedful.run.task import Task
from heedful.run.threads import Waits
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, clean, load_newest, rotate
from heedful.store.lock import run_lock
from heedful.training.loop import Budget, CachingTask, Skipped, Step, TrainState, fit, steps_in
from heedful.training.ranks import Ranks, join_ranks
from heedful.training.signals import Leave, Signals

LOG_EVERY = 20  # steps between two lines of metrics.jsonl
EPOCHS = 10.0  # of a training without a budget
SEEN = 5  # steps before the remaining time is estimated from them
PATIENCE = 10  # steps that may be skipped in a row, and times that a training may be set back
AGAIN = "the same command continues from there"


def train(
    task: Task,
    recipe: Recipe,
    out: Path,
    *,
    resume: bool = False,
    corpus: Parts[Any] | None = None,
    device: torch.device | None = None,
    choices: Iterable[str] = (),
) -> Generator[Event, None, None]:
    """Trains a model for a task into the folder `out`, or continues the training that is there.

    Under `torchrun` the ranks train together, and all but the first yield nothing. `corpus` replaces the recipe's data,
    and `device` the best device here; `choices` are lines on how the recipe came about. Raises InputError before the
    first step for whatever is wrong with the recipe or the data, leaving nothing behind; NonFiniteError where the
    training diverges; Interrupted after SIGINT, SIGTERM, SIGUSR1 or SIGHUP, once everything is saved.
    """
    if not torch.is_grad_enabled():
        what = "gradients are switched off here, by torch.no_grad or torch.inference_mode"
        raise InputError(what, fix="train outside of it")
    out = files.with_proper_name(out)
    with join_ranks() as ranks, ExitStack() as held:
        job, where, told = None, device or best_device(), [Note(line, detail=True) for line in choices]
        if ranks.first:
            recipe, begun = checked(recipe, out, resume=resume)
            yield from told
            if corpus is None:
                for note in prepare(task, recipe, out, begun=begun):
                    yield note
                    told.append(note)
                with_data = begun or is_prepared(out / PREPARED)
                if not with_data and (line := reading(recipe)):
                    yield Note(line)
                if task.job is not None:
                    corpus, lines = task.job().first_look(recipe, out if with_data else None)
                    first = [] if corpus is None else as_notes(lines, corpus, begun=begun)
                    yield from first
                    told += first
            job = make_job(task, recipe, corpus, out if begun else None, where)
            files.make_folder(out)
            held.enter_context(run_lock(out))
            if checked(job.recipe, out, resume=resume)[1] != begun:
                what = "another training has begun here a moment ago"
                raise InputError(what, where=str(out), fix="run the same command again, or choose another --out")
            clean(out)
        signals = held.enter_context(Signals())
        ready = begin(task, recipe, out, corpus, job, ranks, where, told)
        if ready.warning:
            yield Note(ready.warning)
            told.append(Note(ready.warning))
        run = _Run(task, out, ready, ranks, signals, where)
        with closing(run), Waits():
            run.keep(told)
            yield from run.events()


def budget_of(plan: TrainSection, fewest: float = 0.0) -> Budget:
    """When a training ends. `fewest`: epochs that it makes at least where its recipe does not say."""
    if (plan.steps, plan.epochs, plan.minutes) != (None, None, None):
        return Budget(steps=plan.steps, epochs=plan.epochs, minutes=plan.minutes)
    return Budget(epochs=max(EPOCHS, fewest))


class _Run:
    """One call of `train`, on one rank."""

    def __init__(
        self, task: Task, out: Path, begun: Begun, ranks: Ranks, signals: Signals, device: torch.device
    ) -> None:
        self.recipe, self.plan, self.job, self.precision = begun.recipe, begun.recipe.train, begun.job, begun.precision
        self.out, self.ranks, self.signals, self.device = out, ranks, signals, device
        self.answers = bool(task.asks)  # whether the model can be served
        self.counted, self.notes = begun.job.counted or task.counted, list(begun.notes)
        begins = begun.newest is None
        self.state = new_state(self.recipe, self.job, device, self.precision, begun.division, ranks, begins=begins)
        self.progress = Progress()
        if begun.newest is not None:
            self._go_back(begun.newest)
            self.notes.append(Note(f"continuing from step {self.state.step}"))
        elif ranks.first:
            forget_after(out, 0, measured=False, averaged=False)  # lines of an earlier attempt that saved nothing
        self.task = CachingTask(self.job.task(self.state.model))
        self.expected = self.state.seconds  # of the whole training, estimated from the last step
        self.set_back = 0  # times in a row, without a checkpoint in between
        if ranks.first:
            check_space(out, self.state, max(self.plan.keep, self.plan.average_last))
            self.log = Log(out, step=self.state.step, tensorboard=self.plan.tensorboard)
            self.validation = Validation(self.job, out, self.log, signals)
        ranks.gather([float(self.state.step)])  # waits until all ranks have read the checkpoint

    def keep(self, notes: Iterable[Note]) -> None:
        """Writes notes into the log."""
        if self.ranks.first:
            for note in notes:
                self.log.note(note.text)

    def close(self) -> None:
        if self.ranks.first:
            self.log.close()

    def events(self) -> Iterator[Event]:
        try:
            for event in self._events():
                if self.ranks.first:
                    if isinstance(event, Note):
                        self.keep([event])
                    yield event
        except Leave:  # a signal interrupted something that can be repeated
            if self.progress.saved != self.state.step:
                yield self._save()
            raise self._interrupted(self.signals.number) from None

    def _events(self) -> Iterator[Event]:
        plan, state = self.plan, self.state
        yield from [*self.notes, Note(self._described(), detail=True)]
        yield from self._begin_measuring()
        if self.progress.due:
            yield from self._measure()
        if not self._stops():
            yield from self._continued()
            yield from self._steps()
        if self._stops():
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
            with self.signals.giving_up():
                finished, best = _finish(self.job, self.out, state, self.progress, self.validation.floor, self.device)
            yield from map(Note, self.job.doubts(finished.scores))
            finished = self._judged(finished, best)
            self.keep([Note(finished.verdict)])
            yield finished

    def _continued(self) -> Iterator[Note]:
        """For a training that is continued: a note if its budget is used up; otherwise its recipe is saved."""
        if self.state.step == 0:
            return
        batches = len(self.task.batches(self.state.epoch, self.state.model))
        limits = {key: value for key, value in asdict(self._budget()).items() if value is not None}
        reached = [
            f"train.{key}={value}"
            for key, value in limits.items()
            if self._in_turns(Budget(**{key: value})).progress(self.state, batches, self.plan.accumulate) >= 1
        ]
        if reached:
            what = f"{' and '.join(reached)} is reached"
            now = f"{what}, at step {self.state.step:,}"
            yield Note(f"nothing is left to train: {now}; to train on, give more than that")
        elif self.ranks.first:
            keep_recipe(self.recipe, self.out)

    def _steps(self) -> Iterator[Event]:
        """Trains until the budget or the patience is used up."""
        plan, state = self.plan, self.state
        steps = fit(
            self.task,
            state,
            self._in_turns(self._budget()),
            accumulate=plan.accumulate,
            ranks=self.ranks,
            tolerant=plan.non_finite != "stop",
            signal=lambda: self.signals.number,
            halves=self.job.halves and not plan.compile,
        )
        recent: list[tuple[int, float]] = []  # of the last steps: the count of the loss, and the seconds
        before = state.seconds
        skipped = 0
        for step in self._with_ranks(steps):
            if isinstance(step, Skipped):
                skipped += 1
                yield from self._put_right(step, skipped)
                before = state.seconds
                continue
            skipped = 0
            progress = self.progress
            recent = [*recent[-19:], (step.count, step.seconds - before)]
            self.expected = before / step.progress if step.progress else step.seconds
            before = step.seconds
            progress.add(step)
            left = self._left(step, len(recent))
            counts, seconds = map(sum, zip(*recent, strict=True))
            yield Trained(step, step.lr * plan.lr, counts / max(1e-9, seconds), self.counted, left)
            if step.step % LOG_EVERY == 0:
                self._log(step)
            stopped = False
            if progress.measures(step, plan.eval_every):
                progress.due = bool(self.ranks.share(self._affords(step)))
                if progress.due and not step.signal:
                    yield from self._measure()
                stopped = self._stops()
            if step.signal or progress.saves(step.step, plan.save_every):
                yield self._save()
            if step.signal:
                raise self._interrupted(step.signal)
            if stopped:
                break

    def _described(self) -> str:
        """The data, the model, and the length of an epoch, in a line."""
        count = sum(parameter.numel() for parameter in self.state.average.model.parameters())
        steps = self._steps_an_epoch()
        together = f", {self.ranks.size} ranks" if self.ranks.size > 1 else ""
        return f"{self.job.describe()}, {count:,} parameters, {counted(steps, 'step')} an epoch{together}"

    def _budget(self) -> Budget:
        return budget_of(self.plan, self.job.fewest_steps / self._steps_an_epoch())

    def _in_turns(self, budget: Budget) -> Budget:
        """The same for the loop, which counts turns."""
        return budget if budget.epochs is None else replace(budget, epochs=budget.epochs * self.job.turns)

    def _steps_an_epoch(self) -> int:
        """About, where an epoch has several turns."""
        batches = len(self.task.batches(self.state.epoch, self.state.model))
        return steps_in(batches, self.plan.accumulate) * self.job.turns

    def _judged(self, finished: Finished, best: Mapping[str, Any]) -> Finished:
        """With what the model is good for, and what may come next. `best`: the model's row of metrics.jsonl."""
        state, job, run = self.state, self.job, shlex.quote(str(self.out))
        epochs = (state.epoch + state.batch / len(self.task.batches(state.epoch, state.model))) / job.turns
        loss, started = best["valid_loss"], bool(self.recipe.start_from)
        short = too_little(state.step, epochs, loss, job.chance(), started=started)
        falling = still_falling(files.read_json_lines(self.out / METRICS))
        few, instead = ("", []) if started else job.few_data()
        by_luck = self.progress.best is not None and self.progress.best <= self.validation.floor
        no_better = no_better_than_before(finished.scores)
        if no_better:
            told = f"{no_better}: keep {self.recipe.start_from}, or try another train.lr or other data"
            told += f"; {FALLING}" if falling else ""
        elif short:
            told = f"trained too little: {short}; give it more time (--minutes, train.epochs) or a smaller --preset"
        else:
            told = "of no use yet: no score is better than luck" if by_luck else job.good_for(finished.scores)
            told += f"; {FALLING}" if falling else f"; {few}" if few else ""
        unfinished = falling or (short and not no_better)
        longer = [self._longer(run)] if unfinished and self.recipe.data.path else []
        use = job.card_text(self.out, finished.scores, best).use
        served = [f"heed serve {run} --open"] if self.answers else []
        return replace(finished, verdict=told, commands=(*longer, *([] if longer else instead), *use, *served))

    def _longer(self, run: str) -> str:
        """The command that continues this training with twice its budget."""
        budget = {key: value for key, value in asdict(self._budget()).items() if value is not None}
        if "steps" in budget:  # it may have been lowered
            budget["steps"] = max(budget["steps"], self.state.step)
        keys = [f"train.{key}={json.dumps(2 * value)}" for key, value in budget.items()]
        return " --set ".join([f"heed train {self.recipe.task} --resume --out {run}", *keys])

    @property
    def _frugal(self) -> bool:
        """Whether measuring may take a fifth of the time: no interval between measurements is given."""
        return self.plan.eval_every is None

    def _begin_measuring(self) -> Iterator[Note]:
        """Takes the share of the validation data that a run that is continued has, or chooses one for its minutes."""
        if self.progress.share:
            if self.ranks.first:
                self.validation.take_share(self.progress.share)
        elif self._frugal and self.plan.minutes is not None:
            with self.state.whole() as model, suppress(Leave):  # the next step will leave
                if self.ranks.first:
                    room = SHARE * 60 * self.plan.minutes / TIMES
                    self.validation.choose_share(model, self.progress, room)
        if self.ranks.first:
            yield from self._measured_on()

    def _choose_share(self, model: nn.Module) -> Iterator[Note]:
        """Chooses it at the first measurement, where only the steps taken show how long the training is."""
        if self._frugal and not self.progress.share:
            room = max(QUICK, SHARE * self.expected / TEN_TIMES)
            self.validation.choose_share(model, self.progress, room)
            yield from self._measured_on()

    def _measured_on(self) -> Iterator[Note]:
        part, minutes = self.validation.part, self.plan.minutes
        if part < 1 or (minutes is not None and self.progress.share):
            yield Note(measured_on(part, minutes))

    def _stops(self) -> bool:
        """Whether `patience` is used up; the first rank decides for all."""
        patience = self.plan.patience
        return patience is not None and bool(self.ranks.share(self.progress.worse >= patience))

    def _affords(self, step: Step) -> bool:
        """Whether there is time for a measurement that is due: with a budget of minutes, in a fifth of those so far;
        with another, in a fifth of the whole training's, which is too little if even the smallest share costs more."""
        timed, cost = self.plan.minutes is not None, self.progress.cost
        within = self.progress.measuring + cost <= SHARE * (step.seconds if timed else self.expected)
        return not self._frugal or within or (not timed and cost <= QUICK)

    def _left(self, step: Step, seen: int) -> float | None:
        """Seconds until the budget ends, estimated from the steps of this call once there are enough of them."""
        bounds = [] if self.plan.minutes is None else [60 * self.plan.minutes - step.seconds]
        if seen >= SEEN and step.progress > 0:
            bounds.append(step.seconds * (1 / step.progress - 1))
        return max(0.0, min(bounds)) if bounds else None

    def _with_ranks(self, steps: Iterator[Step | Skipped]) -> Iterator[Step | Skipped]:
        """The steps; a rank that got a signal itself reports that, and not that the other ranks are gone."""
        try:
            yield from steps
        except RankError:
            if not self.signals.number:
                raise
            raise self._interrupted(self.signals.number) from None

    def _measure(self) -> Iterator[Event]:
        yield from self._by_first(self.state.whole(), self._measured)
        self.progress.due, self.progress.measured = False, self.state.step
        if self.progress.saved == self.state.step:  # saved before the measurement: that belongs in the checkpoint too
            self._save()

    def _measured(self, model: nn.Module) -> Iterator[Event]:
        yield from self._choose_share(model)
        yield self.validation.measure(model, self.state, self.progress)

    def _measure_mean(self) -> Iterator[Event]:
        """Measures the mean of the last checkpoints, and keeps it if it is better."""
        weights, count = mean_of_last(self.out, self.state, self.plan.average_last, self.plan.save_every)

        def measured(model: nn.Module) -> Iterator[Event]:
            measurement = self.validation.measure_mean(model, self.state, self.progress, count)
            how = "is better, and is kept" if measurement.best else "is no better, and is not kept"
            mean_of = counted(count, "checkpoint")
            yield Note(f"the mean of the last {mean_of}: validation loss {measurement.valid_loss:.4f}; it {how}")
            yield measurement

        yield from self._by_first(self.state.whole(weights), measured)
        self.progress.averaged = self.state.step
        self.progress.saved = -1  # the last checkpoint must include this measurement

    def _by_first(
        self, whole: AbstractContextManager[nn.Module], measure: Callable[[nn.Module], Iterator[Event]]
    ) -> Iterator[Event]:
        """What the first rank measures of the whole model. A signal that interrupts it ends it on all ranks."""
        left = 0
        with whole as model:
            if self.ranks.first:
                try:
                    yield from measure(model)
                except Leave:
                    left = self.signals.number
        if left := self.ranks.share(left):
            self.signals.number = self.signals.number or left
            raise Leave

    def _save(self) -> Checkpointed:
        self.progress.saved = self.state.step
        self.set_back = 0
        if self.ranks.first:
            self.log.keep()
        save_state(self.out, self.state, self.progress, self.job, precision=self.precision, ranks=self.ranks)
        if self.ranks.first:
            mean_of = planned_steps(self.out, self.plan.save_every)[: self.plan.average_last]
            rotate(self.out, self.plan.keep, protect=mean_of)
        return Checkpointed(self.state.step)

    def _log(self, step: Step) -> None:
        means = self.progress.means()
        row = {
            "step": step.step,
            "epoch": step.epoch // self.job.turns,
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
        """Skips a step that was not finite, or goes back to the last checkpoint, from where the batch is left out."""
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

    def _go_back(self, checkpoint: Checkpoint) -> None:
        self.progress = restore(self.state, checkpoint, self.job, self.out)
        if self.ranks.first:
            averaged = self.progress.averaged == self.state.step
            forget_after(self.out, self.state.step, measured=not self.progress.due, averaged=averaged)
            if self.progress.best_step:
                # Older checkpoints lack this loss; and a missing row is reported now, not at the end.
                self.progress.best_loss = best_row(self.out, self.progress)["valid_loss"]


def _finish(
    job: Job[Any, Any, Any], out: Path, state: TrainState, progress: Progress, floor: float, device: torch.device
) -> tuple[Finished, dict[str, Any]]:
    """Scores the best model on the test sets, and writes plots, scores and the model card. Returns the scores, and the
    best model's row of metrics.jsonl."""
    finished = Finished(state.step, state.seconds / 60, job.finish(out, str(device)))
    rows = files.read_json_lines(out / METRICS)
    files.make_folder(out / "plots")
    figure = panels(rows, job.panels) if job.panels else curves(rows, scores=job.score_names, title=out.name)
    files.write_bytes(out / "plots" / "training.png", to_bytes(figure, "png"))
    files.write_json(out / "scores.json", {key: vars(finished)[key] for key in ("steps", "minutes", "scores")})
    best = best_row(out, progress)
    by_loss = progress.best is not None and progress.best <= floor
    files.write_text(out / "README.md", job.card(out, finished.scores, best, finished.minutes, by_loss=by_loss))
    return finished, best
