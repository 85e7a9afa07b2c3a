"""What compressing a model costs and saves: whole, in 8 and 4 bits, pruned, and as a smaller student.

    python -m benchmarks.compression --data PATH/TO/data --out runs/compressed [--only TREC] [--scale 0.5]

A translator (Multi30k, English to German), a classifier on an encoder (TREC), a language model (Tiny Shakespeare, by
characters) and a Vision Transformer (Fashion-MNIST) learn for a fixed number of steps, times `--scale`. Each is scored
as it is, with weights in 8 and in 4 bits, and pruned by half and by 2:4 (`heed prune`, which trains on for a fifth of
the steps); and a student of about a quarter of its size, which it taught (`heed distil`) or which learnt from the data
alone. `bytes` are those of the weights: in float32 as a file has them, in 8 and 4 bits as they lie in memory; `packed`
those of the file by gzip. Speed is by processor time, of scoring the held-out data, which differs by a tenth from one
time to the next. What is in OUT is not made again.
"""

import argparse
import gzip
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from benchmarks import datasets, few_pairs
from heedful.apply.inference import GROUP
from heedful.data.text.corpus import read_parallel
from heedful.run.events import Event, Finished
from heedful.run.folder import parameters, read_saved, read_textless_run
from heedful.store import files
from heedful.store.model import MODEL
from heedful.tasks import TASKS, scoring_options
from heedful.tasks.load import load_model
from heedful.tasks.shared.options import StudentOptions
from heedful.verbs.compress import lesson_of, prune
from heedful.verbs.evaluate import scored
from heedful.verbs.train import planned, train

SCORED = 200  # pairs
PRUNED_FOR = 0.2  # of the steps
HEADER = ("", "parameters", "zeros", "bytes, MB", "packed, MB", "seconds", "score")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A model and its student, by their settings."""

    task: str
    data: str  # a folder of the datasets
    score: str
    steps: int
    settings: Sequence[str]
    whole: Sequence[str]
    student: Sequence[str]


KINDS = (
    Kind(
        task="translate",
        data="multi30k",
        score="bleu",
        steps=1500,
        settings=["data.vocab_size=6000", "train.lr=4e-3", "train.warmup=200"],
        whole=["model.encoder_layers=4", "model.decoder_layers=4"],
        student=["model.d_model=96", "model.d_ff=384", "model.encoder_layers=2", "model.decoder_layers=1"],
    ),
    Kind(
        task="classify",
        data="trec",
        score="accuracy",
        steps=600,
        settings=["preset=encoder-tiny", "data.vocab_size=4000"],
        whole=["model.n_layers=4", "model.d_model=128"],
        student=["model.n_layers=2", "model.d_model=64"],
    ),
    Kind(
        task="generate",
        data="tinyshakespeare/input.txt",
        score="loss",
        steps=1000,
        settings=["preset=llama-nano", "data.tokenizer=chars", "model.context_length=128", "train.optimizer=muon"],
        whole=["model.n_layers=4", "model.d_model=192", "model.d_ff=512", "model.n_heads=6", "model.kv_heads=3"],
        student=["model.n_layers=2", "model.d_model=128", "model.d_ff=320"],
    ),
    Kind(
        task="classify-images",
        data="fashion_mnist",
        score="accuracy",
        steps=1000,
        settings=["preset=vit-nano28", "model.patch=7"],
        whole=["model.n_layers=4", "model.d_model=128"],
        student=["model.n_layers=2", "model.d_model=64"],
    ),
)


def readable(kind: Kind, data: Path, made: Path) -> str:
    """The data as `heed train` reads them: of pairs few to score, and questions in lines."""
    if kind.task == "translate" and not made.exists():
        corpus = read_parallel(str(data), source="en", target="de")
        tests = {name: pairs.rows(range(SCORED)) for name, pairs in corpus.tests.items()}
        name, first = next(iter(tests.items()))
        few_pairs.write(
            made, ("en", "de"), {"train": corpus.train, "valid": corpus.valid.rows(range(SCORED)), name: first}
        )
    elif kind.data == "trec" and not made.exists():
        datasets.write(made, datasets.trec(data))
    return str(made if made.exists() else data)


def finish(events: Iterable[Event]) -> None:
    assert any(isinstance(event, Finished) for event in events)


def trained(kind: Kind, path: str, out: Path, scale: float) -> Iterator[tuple[str, Path]]:
    """The runs of a kind, of which those are trained that are not there."""
    steps = max(10, round(scale * kind.steps))
    settings = [*kind.settings, f"train.steps={steps}", f"train.eval_every={max(5, steps // 3)}"]
    for name, own in (("whole", kind.whole), ("student, not taught", kind.student)):
        run = out / name.replace(", ", "-").replace(" ", "-")
        if not (run / "scores.json").is_file():
            finish(train(planned(kind.task, run, {"data.path": path}, settings=[*settings, *own])[0], run))
        yield name, run
    whole, taught = out / "whole", out / "student-taught"
    if not (taught / "scores.json").is_file():
        row = TASKS[kind.task]
        preset = next((one.partition("=")[2] for one in kind.settings if one.startswith("preset=")), "transformer-tiny")
        own = [one for one in settings if not one.startswith("preset=")]
        student = StudentOptions(data=[path], preset=preset, out=taught, settings=[*own, *kind.student])
        lesson = lesson_of(whole, student, row.lesson_options()())
        for line in lesson.prepare("cpu"):
            print(line, flush=True)
        finish(train(lesson.recipe, taught))
    yield "student, taught", taught
    for name, pattern in (("pruned, 50 %", ""), ("pruned, 2:4", "2:4")):
        run = out / f"pruned-{pattern.replace(':', '-') or 'half'}"
        if not (run / "scores.json").is_file():
            more = [f"train.steps={max(5, round(PRUNED_FOR * steps))}", "train.eval_every=1000000"]
            if run.exists():
                files.remove_tree(run)
            finish(prune(whole, run, pattern=pattern, settings=more, device="cpu"))
        yield name, run


def weight_bytes(run: Path, weights: str) -> float:
    """The bytes of a run's weights: of those of linear maps as `heedful.apply.inference` holds them."""
    model = read_textless_run(run)[0]
    maps = [each for each in model.modules() if isinstance(each, nn.Linear)]
    if weights == "float32":
        return 4.0 * sum(map(torch.numel, parameters(model).values()))
    within = {f"{name}.weight" for name, each in model.named_modules() if isinstance(each, nn.Linear)}
    others = 4 * sum(tensor.numel() for name, tensor in parameters(model).items() if name not in within)
    if weights == "int8":
        return others + sum(each.weight.numel() + 4 * each.out_features for each in maps)
    return others + sum(each.weight.numel() * (1 / 2 + 4 / GROUP) for each in maps)


def row_of(name: str, kind: Kind, path: str, run: Path, weights: str) -> tuple[str, ...]:
    served = load_model(run, device="cpu", weights=weights)
    options = scoring_options(TASKS[kind.task])(data=path)
    begin = time.process_time()
    found = next(iter(scored(served, options)))
    seconds = time.process_time() - begin
    saved, data = read_saved(run), files.read_bytes(run / MODEL, limit=1 << 40)
    packed = f"{len(gzip.compress(data)) / 1e6:.2f}" if weights == "float32" else "-"
    return (
        name if weights == "float32" else f"{name}, {weights}",
        f"{saved.parameters:,}",
        f"{saved.zeros / saved.parameters:.0%}",
        f"{weight_bytes(run, weights) / 1e6:.2f}",
        packed,
        f"{seconds:.1f}",
        f"{found.scores[kind.score]:.{2 if kind.score == 'bleu' else 4}f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the datasets")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=[kind.task for kind in KINDS], action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="of the steps of all trainings")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for kind in KINDS:
        if chosen.only and kind.task not in chosen.only:
            continue
        out = chosen.out / kind.task
        path = readable(kind, chosen.data / kind.data, out / "data")
        print(f"\n{kind.task}, {kind.data}: {max(10, round(chosen.scale * kind.steps)):,} steps, {kind.score}\n")
        for line in (HEADER, ("---",) * len(HEADER)):
            print(f"| {' | '.join(line)} |", flush=True)
        for name, run in trained(kind, path, out, chosen.scale):
            for weights in ("float32", "int8", "int4") if name == "whole" else ("float32",):
                print(f"| {' | '.join(row_of(name, kind, path, run, weights))} |", flush=True)


if __name__ == "__main__":
    main()
