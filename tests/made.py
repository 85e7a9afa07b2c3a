"""A tiny language pair, in which words are reversed and in capitals, and a recipe that learns it in seconds."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import train_tokenizer
from heedful.models import make_model
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.events import Finished, Trained
from heedful.run.recipe import Recipe, override, row_of
from heedful.tasks.recipes import build
from heedful.tasks.translate.spec import TranslatorSpec
from heedful.tasks.translate.use import Translator
from heedful.verbs.train import train
from loud import make_loud
from trainer import ends

SYLLABLES = ["ba", "de", "gi", "ko", "lu", "ma", "ne", "pi", "ro", "su"]
TRANSFORMER: dict[str, Any] = {
    "preset": "transformer-tiny",
    "model": {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1},
    "data": {"vocab_size": 300},
    "train": {"steps": 12, "save_every": 4, "eval_every": 6, "eval_sentences": 20, "tokens": 512, "row": 32},
    "decode": {"beam": 2, "longest": 8},
}
DECODER = TRANSFORMER | {
    "preset": "decoder-tiny",
    "model": {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 2},
}
RECURRENT = TRANSFORMER | {"preset": "rnn-small", "model": dict.fromkeys(("d_embed", "d_align", "d_readout"), 16)}
RECURRENT["model"]["d_hidden"] = 24
# 40 million weights, in 16 blocks
DEEP = TRANSFORMER | {"model": {"d_model": 256, "n_heads": 2, "d_ff": 4096, "encoder_layers": 8, "decoder_layers": 8}}

# The files that the folder of a finished run has, at least.
RUN_FILES = {"recipe.yaml", "environment.json", "data.json", "metrics.jsonl", "scores.json", "README.md", "plots"}
RUN_FILES |= {"config.json", "model.safetensors", "tokenizer.json", "task.json", "samples", "checkpoints"}


def backwards(count: int, seed: int) -> Pairs:
    draw = random.Random(seed)
    source = [" ".join(draw.choice(SYLLABLES) for _ in range(draw.randint(2, 6))) for _ in range(count)]
    return Pairs(source, [" ".join(reversed(line.upper().split())) for line in source], f"made-{seed}")


def made_corpus(train: int = 400, held_out: int = 24) -> Corpus:
    return Corpus(
        backwards(train, 1),
        backwards(held_out, 2),
        {"test": backwards(held_out, 3)},
        "made",
        (),
        ("a note",),
        source="low",
        target="high",
    )


def made_recipe(base: dict[str, Any] = TRANSFORMER, **train: object) -> Recipe:
    """The recipe with changed keys of `train`."""
    return override(build(base, where="test"), [f"train.{key}={value}" for key, value in train.items()])


def random_translator(corpus: Corpus, base: dict[str, Any], **about: object) -> Translator:
    """A translator for this recipe with random weights, large enough to give different translations."""
    tokenizer = train_tokenizer([*corpus.train.source, *corpus.train.target], kind="bpe", size=300)
    torch.manual_seed(4)
    row = row_of(TRANSLATORS, build(base, where="test"))
    net = make_model(translator_config(row, source_vocab=tokenizer.size, target_vocab=tokenizer.size, joint=True))
    make_loud(net, std=0.3)
    told = {"task": "translate", "source": "low", "target": "high", **about}
    return Translator(net, tokenizer, tokenizer, TranslatorSpec.read(told))


def with_about(model: Translator, **about: object) -> Translator:
    """The same translator with these keys in its task.json; None takes one out."""
    kept = {key: value for key, value in (model.about | about).items() if value is not None}
    return model.changed(spec=TranslatorSpec.read(kept))


def finished(events: Iterable[object]) -> Finished:
    """The last event of a training."""
    *_, last = events
    assert isinstance(last, Finished)
    return last


def goes_on_alike(recipe: Recipe, corpus: Any, folder: Path, *, after: int) -> None:
    """A training that is interrupted after this step and continued gives the same result as one that is not, bit for
    bit."""
    whole, cut = folder / "whole", folder / "cut"
    scores = finished(train(recipe, whole, corpus=corpus)).scores
    events = train(recipe, cut, corpus=corpus)
    assert any(isinstance(event, Trained) and event.step.step == after for event in events)
    events.close()
    assert finished(train(recipe, cut, corpus=corpus)).scores == scores
    assert ends(cut) == ends(whole)
