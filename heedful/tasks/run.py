"""A training run: a recipe in, a folder out.

`train` is a generator of events; the command line draws them, a program may ignore them. The folder that it fills
can be read by a person, used as a model as soon as the first score is there, and gone on from at any time.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from heedful.data.batches import bucket_rows
from heedful.data.text import Corpus, Pairs
from heedful.errors import InputError, MissingError
from heedful.look.draw import curves, to_bytes
from heedful.models import make_model
from heedful.store import files
from heedful.store.checkpoint import Checkpoint, clean, load_newest, rotate, save_checkpoint
from heedful.store.lock import run_lock
from heedful.tasks.card import environment, model_card
from heedful.tasks.folder import load_weights, parameters, write_run
from heedful.tasks.prepare import Prepared, prepare, read
from heedful.tasks.recipe import Recipe, parse, write
from heedful.tasks.translate import TranslationTask, Translator, cross_entropy
from heedful.train.loop import Budget, State, Step, fit
from heedful.train.optim import Average, OptimConfig, Optimizer
from heedful.train.precision import DTYPES, Precision, choose_precision

LOG_EVERY = 20  # steps between two lines of metrics.jsonl
GOING_ON = {
    "steps",
    "epochs",
    "minutes",
    "eval_every",
    "eval_sentences",
    "save_every",
    "keep",
}  # may change on resuming


@dataclass(frozen=True)
class Note:
    """A line that a person should see."""

    text: str


@dataclass(frozen=True)
class Trained:
    """One optimizer step, and how fast things go."""

    step: Step
    lr: float
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class Measured:
    """The averaged weights on the validation pairs; `best` so far by BLEU."""

    step: int
    valid_loss: float
    bleu: float
    chrf: float
    best: bool


@dataclass(frozen=True)
class Saved:
    """A checkpoint that no crash can lose any more."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The best model's scores on each test set, by the recipe's search."""

    steps: int
    minutes: float
    scores: dict[str, dict[str, float | str]]


Event = Note | Trained | Measured | Saved | Finished


def train(recipe: Recipe, out: Path, *, resume: bool = False, corpus: Corpus | None = None) -> Iterator[Event]:
    """Trains into the folder `out`, or goes on with the training that is there.

    `corpus` stands in for the recipe's data. Raises InputError before the first step for whatever is wrong with the
    recipe or the data, leaving nothing behind; NonFiniteError where training breaks down.
    """
    begun = (out / "recipe.yaml").is_file()
    if resume and not begun:
        raise MissingError("there is no run to go on with", where=str(out), fix="leave out --resume to begin one")
    if begun:
        _same_recipe(recipe, out)
    elif out.exists() and any(out.iterdir()):
        raise InputError("the folder is not empty and holds no run", where=str(out), fix="choose another --out")
    corpus = corpus or read(recipe)
    prepared = prepare(recipe, corpus, out if begun else None)
    files.make_folder(out)
    with run_lock(out):
        clean(out)
        yield from _train(recipe, out, corpus, prepared)


def saved_recipe(out: Path) -> Recipe:
    """The recipe of the run in `out`."""
    path = out / "recipe.yaml"
    if not path.is_file():
        raise MissingError("there is no run to go on with", where=str(out), fix="check --out")
    return parse(path.read_text(encoding="utf-8"), where=str(path))


def _train(recipe: Recipe, out: Path, corpus: Corpus, prepared: Prepared) -> Iterator[Event]:
    for note in prepared.notes:
        yield Note(note)
    plan = recipe.train
    newest = load_newest(out, warn := _Warnings())
    yield from map(Note, warn.lines)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision, why = _precision(recipe, newest, device)
    yield Note(f"training in {precision} on {device.type} with {torch.get_num_threads()} threads: {why}")

    state = _state(recipe, prepared, device, precision)
    task = TranslationTask(prepared.pairs, plan, packs=state.model.packs)
    best = Best()
    if newest is not None:
        best = _restore(state, newest, prepared, out)
        yield Note(f"going on from step {state.step}")
    sizes = (
        f"{prepared.source.size:,} and {prepared.target.size:,}"
        if not recipe.data.joint
        else f"{prepared.source.size:,}"
    )
    count = sum(parameter.numel() for parameter in state.average.model.parameters())
    batches = task.batches(state.epoch)
    yield Note(
        f"{len(prepared.pairs):,} pairs, {sizes} tokens in the vocabulary, {count:,} parameters, "
        f"{len(batches) / plan.accumulate:,.0f} steps an epoch"
    )
    if newest is None:
        files.write_text(out / "recipe.yaml", write(recipe))
        files.write_json(out / "environment.json", environment(device, precision))
        files.write_json(out / "data.json", _data_facts(recipe, corpus, prepared))

    translator_ = Translator(state.average.model, prepared.source, prepared.target, _about(recipe, corpus))
    valid = corpus.valid.rows(range(min(plan.eval_sentences, len(corpus.valid))))
    budget = Budget(steps=plan.steps, epochs=plan.epochs, minutes=plan.minutes)
    if (plan.steps, plan.epochs, plan.minutes) == (None, None, None):
        budget = replace(budget, epochs=10.0)
    due = Due(plan.eval_every, plan.save_every, state)
    rates: list[float] = []
    losses: list[tuple[float, int]] = []
    last: Step | None = None

    def measure() -> Measured:
        nonlocal best
        result = _measure(translator_, valid, state.step, best, out)
        if result.best:
            best = Best(result.bleu, state.step)
            about = translator_.about
            write_run(
                out, state.average.model, parameters(state.average.model), prepared.source, prepared.target, about
            )
        return result

    def save() -> Saved:
        _save(state, best, prepared, precision, out)
        rotate(out, plan.keep)
        return Saved(state.step)

    for step in fit(task, state, budget, accumulate=plan.accumulate):
        rates = [*rates[-19:], step.count / max(1e-9, step.seconds - (last.seconds if last else 0.0))]
        losses.append((step.loss * step.count, step.count))
        last = step
        left = step.seconds * (1 / max(step.progress, 1e-6) - 1)
        yield Trained(step, step.lr * plan.lr, sum(rates) / len(rates), left)
        if step.step % LOG_EVERY == 0:
            _log(out, step, losses, plan.lr)
            losses.clear()
        if due.measures(step):
            yield measure()
        if due.saves(step):
            yield save()
    if state.step == 0:
        raise InputError("the budget ends before the first step", where="train", fix="--set train.steps=1000")
    if due.measured != state.step:
        yield measure()
    if due.saved != state.step:
        yield save()
    yield _finish(recipe, corpus, out, state)


@dataclass(frozen=True)
class Best:
    bleu: float = -1.0
    step: int = 0


class _Warnings:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)


class Due:
    """When to measure and when to save: as told, or about ten times in all."""

    def __init__(self, measure_every: int | None, save_every: int | None, state: State) -> None:
        self.measure_every, self.save_every = measure_every, save_every
        self.measured = self.saved = state.step
        self.tenth: int | None = (
            0 if state.step == 0 else None
        )  # None: where a resumed training stands is not known yet

    def measures(self, step: Step) -> bool:
        if self.measure_every is not None:
            due = step.step % self.measure_every == 0
        else:
            tenth = int(step.progress * 10)
            due, self.tenth = self.tenth is not None and tenth > self.tenth, tenth
        if due:
            self.measured = step.step
        return due

    def saves(self, step: Step) -> bool:
        due = step.step % self.save_every == 0 if self.save_every is not None else self.measured == step.step
        if due:
            self.saved = step.step
        return due


def _same_recipe(recipe: Recipe, out: Path) -> None:
    """Raises InputError where going on would be another training than the one that was begun."""
    old, new = (flat(r.model_dump(mode="json")) for r in (saved_recipe(out), recipe))
    changed = sorted(
        key
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key) and key not in {f"train.{k}" for k in GOING_ON}
    )
    if changed:
        key = changed[0]
        what = f"this run was begun with {key} = {old.get(key)!r}, not {new.get(key)!r}"
        raise InputError(what, where=str(out), fix="choose another --out, or the same recipe to go on")


def flat(data: dict, prefix: str = "") -> dict[str, object]:
    """Nested keys joined by dots."""
    out: dict[str, object] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def _precision(recipe: Recipe, newest: Checkpoint | None, device: torch.device) -> tuple[Precision, str]:
    if newest is not None:
        return newest.json("state.json")["precision"], "as this run was begun"
    if recipe.train.precision != "auto":
        return recipe.train.precision, "as the recipe says"
    return choose_precision(device)


def _state(recipe: Recipe, prepared: Prepared, device: torch.device, precision: Precision) -> State:
    plan = recipe.train
    torch.manual_seed(plan.seed)
    model = make_model(prepared.config).to(device)
    average = Average(model, plan.average)
    optim = OptimConfig(
        optimizer=plan.optimizer,
        lr=plan.lr,
        muon_lr=plan.muon_lr,
        weight_decay=plan.weight_decay,
        clip=plan.clip,
        schedule=plan.schedule,
        warmup=plan.warmup,
    )
    model = model.to(DTYPES[precision])
    optimizer = Optimizer(model, optim)
    optimizer.load_masters(parameters(average.model))  # what bf16 rounded away
    return State(model=model, optimizer=optimizer, average=average, seed=plan.seed)


def _save(state: State, best: Best, prepared: Prepared, precision: Precision, out: Path) -> None:
    optimizer = state.optimizer
    masters = {name: master.detach() for name, master in zip(optimizer.names, optimizer.masters, strict=True)}
    position = {key: getattr(state, key) for key in ("seed", "step", "epoch", "batch", "tokens", "seconds")}
    facts = {"precision": precision, "best": asdict(best), "data": prepared.fingerprint, "position": position}
    contents = {
        "weights.safetensors": masters,
        "average.safetensors": parameters(state.average.model),
        "optimizer.safetensors": optimizer.state(),
        "state.json": facts,
    }
    finite = all(bool(master.isfinite().all()) for master in masters.values())
    save_checkpoint(out, state.step, contents, finite=finite, facts={})


def _restore(state: State, checkpoint: Checkpoint, prepared: Prepared, out: Path) -> Best:
    facts = checkpoint.json("state.json")
    if facts["data"] != prepared.fingerprint:
        what = "the training pairs are not those that this run was begun with"
        raise InputError(what, where=str(out), fix="choose another --out, or bring the old data back")
    load_weights(state.average.model, checkpoint.tensors("average.safetensors"), where=str(checkpoint.path))
    state.optimizer.load_masters(checkpoint.tensors("weights.safetensors"))
    state.optimizer.load_state(checkpoint.tensors("optimizer.safetensors"))
    for key, value in facts["position"].items():
        setattr(state, key, value)
    return Best(**facts["best"])


@torch.inference_mode()
def _measure(translator: Translator, valid: Pairs, step: int, best: Best, out: Path) -> Measured:
    """The validation loss, given the target's words; and BLEU and chrF of greedy translations, with a few to read."""
    sides = translator.source.encode(valid.source), translator.target.encode(valid.target)
    pairs = [pair for pair in zip(*sides, strict=True) if all(pair)]
    losses = [cross_entropy(translator.model, batch) for batch in bucket_rows(pairs, range(len(pairs)), tokens=4096)]
    loss = sum(float(each.total) for each in losses) / sum(each.count for each in losses)
    scores, made = translator.evaluate(valid, beam=1)
    result = Measured(step, loss, scores.bleu, scores.chrf, scores.bleu >= best.bleu)
    row = {"step": step, "valid_loss": loss, "bleu": scores.bleu, "chrf": scores.chrf}
    files.append_line(out / "metrics.jsonl", json.dumps(row, allow_nan=False))
    shown = zip(made[:8], valid.target, strict=False)
    lines = [f"source     {t.source}\nmodel      {t.text}\nreference  {reference}\n" for t, reference in shown]
    files.make_folder(out / "samples")
    files.write_text(out / "samples" / f"step-{step}.txt", "\n".join(lines))
    return result


def _log(out: Path, step: Step, losses: Sequence[tuple[float, int]], lr: float) -> None:
    row = {
        "step": step.step,
        "epoch": step.epoch,
        "train_loss": sum(total for total, _ in losses) / sum(count for _, count in losses),
        "lr": step.lr * lr,
        "norm": step.norm,
        "seconds": step.seconds,
    }
    files.append_line(out / "metrics.jsonl", json.dumps(row, allow_nan=False))


def _data_facts(recipe: Recipe, corpus: Corpus, prepared: Prepared) -> dict[str, object]:
    return {
        "files": [{"path": str(path), "sha256": files.size_and_sha256(path)[1]} for path in corpus.files],
        "source": corpus.source,
        "target": corpus.target,
        "pairs": {"train": len(corpus.train), "valid": len(corpus.valid)}
        | {name: len(pairs) for name, pairs in corpus.tests.items()},
        "trained_on": len(prepared.pairs),
        "fingerprint": prepared.fingerprint,
        "vocabulary": {"source": prepared.source.size, "target": prepared.target.size, "joint": recipe.data.joint},
        "notes": prepared.notes,
    }


def _about(recipe: Recipe, corpus: Corpus) -> dict[str, object]:
    """task.json: what the model is for, and how it searches unless told otherwise."""
    decode = recipe.decode.model_dump()
    return {"task": "translate", "source": corpus.source, "target": corpus.target, "decode": decode}


def _finish(recipe: Recipe, corpus: Corpus, out: Path, state: State) -> Finished:
    """Scores the best model on the test sets, and writes what a reader of the folder wants to know."""
    best = Translator.load(out)
    scores: dict[str, dict[str, float | str]] = {}
    for name, pairs in corpus.tests.items():
        found, _ = best.evaluate(pairs)
        scores[name] = {key: value for key, value in asdict(found).items() if value is not None}
    finished = Finished(state.step, state.seconds / 60, scores)
    rows = [files.parse_json(line.encode(), where=out) for line in files.read_lines(out / "metrics.jsonl")]
    files.make_folder(out / "plots")
    figure = curves(rows, scores=("bleu", "chrf"), title=out.name)
    files.write_bytes(out / "plots" / "training.png", to_bytes(figure, "png"))
    files.write_json(out / "scores.json", asdict(finished))
    files.write_text(out / "README.md", model_card(out, recipe, corpus, finished.scores, finished.minutes, rows))
    return finished
