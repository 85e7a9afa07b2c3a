"""What compressing a model costs and saves: four models whole, in 8 and 4 bits, pruned, and as a smaller student.

    python -m benchmarks.compression --data PATH/TO/data --out runs/compressed [--only TREC] [--scale 1]

A translator (Multi30k, English to German), a classifier on an encoder (TREC), a language model (Tiny Shakespeare, by
characters) and a Vision Transformer (Fashion-MNIST) learn for a fixed number of steps, `--scale` times those of STEPS.
Each is then measured as it is, with weights in 8 and 4 bits, pruned by half and by 2:4 (`heed prune`, then trained for a
fifth of its steps), and beside a student of a quarter to a half of its size, taught by it and not taught. The quality
is that on held-out data; `held` are the bytes of the weights in memory, `packed` those of model.safetensors after gzip,
of 8 and 4 bits those of the weights themselves. Speed is by processor time on one thread, of the same inputs each time;
the least of three passes. What is in OUT is not made again.
"""

import argparse
import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import heedful
from heedful.run.events import Event, Finished, Note
from heedful.store import files
from heedful.store.tensors import pack
from heedful.tasks.shared.options import StudentOptions
from heedful.verbs.compress import lesson_of, prune
from heedful.verbs.train import planned, train

PASSES, INPUTS = 3, 32
HEADER = ("", "parameters", "zeros", "held, MB", "packed, MB", "quality", "inputs a second of processor time")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A model and its student, by presets and settings; `quality` is the name of its score."""

    task: str
    data: Callable[[Path, Path], str]  # of the datasets, and of a folder that may be filled
    settings: Sequence[str]
    whole: Sequence[str]
    student: Sequence[str]
    steps: int
    quality: str
    uses: Callable[[Any, Sequence[str]], object]
    inputs: Callable[[Path], Sequence[str]]


def trec(data: Path, made: Path) -> str:
    """The questions as tables of texts and labels."""
    files.make_folder(made)
    for name in ("train", "test"):
        rows = (line.split(" ", 1) for line in (data / "trec" / f"{name}.txt").read_text("utf-8").splitlines())
        files.write_text(made / f"{name}.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for label, text in rows))
    return str(made)


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()[:INPUTS]


KINDS = {
    "Multi30k, BLEU": Kind(
        task="translate",
        data=lambda data, made: str(data / "multi30k"),
        settings=["data.source=en", "data.target=de", "data.vocab_size=6000", "preset=transformer-tiny"],
        whole=["model.encoder_layers=4", "model.decoder_layers=4", "train.lr=4e-3", "train.warmup=200"],
        student=["model.encoder_layers=2", "model.decoder_layers=1", "train.lr=4e-3", "train.warmup=200"],
        steps=1500,
        quality="bleu",
        uses=lambda model, texts: model.translate(texts),
        inputs=lambda data: lines(data / "multi30k" / "test_2016_flickr.en"),
    ),
    "TREC, accuracy": Kind(
        task="classify",
        data=trec,
        settings=["data.vocab_size=4000", "preset=encoder-tiny"],
        whole=["model.n_layers=4", "model.d_model=256", "model.n_heads=4"],
        student=["model.n_layers=2", "model.d_model=64", "model.n_heads=4"],
        steps=600,
        quality="accuracy",
        uses=lambda model, texts: model.classify(texts),
        inputs=lambda data: [line.split(" ", 1)[1] for line in lines(data / "trec" / "test.txt")],
    ),
    "Tiny Shakespeare, nats a character": Kind(
        task="generate",
        data=lambda data, made: str(data / "tinyshakespeare" / "input.txt"),
        settings=["data.tokenizer=chars", "preset=llama-nano", "model.context_length=128"],
        whole=["model.n_layers=4", "model.d_model=192", "model.n_heads=6", "model.kv_heads=3", "model.d_ff=512"],
        student=["model.n_layers=2", "model.d_model=96", "model.n_heads=3", "model.kv_heads=3", "model.d_ff=256"],
        steps=1000,
        quality="loss",
        uses=lambda model, texts: model.likelihood(texts),
        inputs=lambda data: [" ".join(lines(data / "tinyshakespeare" / "input.txt"))] * 8,
    ),
    "Fashion-MNIST, accuracy": Kind(
        task="classify-images",
        data=lambda data, made: str(data / "fashion_mnist"),
        settings=["preset=vit-nano28", "model.patch=7"],
        whole=["model.d_model=128", "model.n_layers=4"],
        student=["model.d_model=64", "model.n_heads=4", "model.n_layers=2"],
        steps=1000,
        quality="accuracy",
        uses=lambda model, pictures: model.classify(pictures),
        inputs=lambda data: [],
    ),
}
