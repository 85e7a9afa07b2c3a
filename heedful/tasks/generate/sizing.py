"""A language model that fits a budget of minutes on this machine: its size, and its training schedule.

On tiny shakespeare (characters, two cores, one minute) a model 64 wide ended at 1.70 nats, 128 at 1.68, 192 at 1.77,
256 at 1.85, 384 at 2.06: a model that is too large sees too little text, and the capacity of one that is too small is
soon used up. Best was the largest model that sees about `TOKENS` tokens per parameter.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.data.batches import TextBatch
from heedful.data.text.documents import Documents, read_documents
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.recipe import override
from heedful.run.resume import begun_recipe
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.generate.recipe import GenerateRecipe
from heedful.tasks.shared.preparing.opened import prepared_documents
from heedful.training.optim import OptimConfig, Optimizer
from heedful.training.precision import DTYPES, choose_precision

PRESET = "llama-nano"
WIDTHS = (64, 128, 192, 256, 384, 512, 768)
TOKENS = 1.5  # that the model should see, for each of its parameters
CONTEXT, BATCH = 128, 2048  # tokens
CHARACTERS = {"chars": 1.0, "bytes": 1.0, "bpe": 3.5, "unigram": 3.5}  # per token, about
EPOCHS = 5.0  # of the text, above which dropout helps
TRIAL = 3  # steps that are timed
OWN = ("optimizer", "lr", "warmup", "average", "tokens")  # the settings of `train` that are chosen


def sized(
    recipe: GenerateRecipe, out: Path, device: torch.device, corpus: Documents | None = None
) -> tuple[GenerateRecipe, str]:
    """Chooses a model and a schedule for the recipe's `train.minutes` on a device. Returns the recipe, and the choice
    with its reasons in a line. `corpus` replaces the recipe's data.

    A run that has begun in `out` keeps its choice. Raises InputError or MissingError.
    """
    minutes = recipe.train.minutes
    assert minutes is not None
    if (out / "recipe.yaml").is_file():
        begun = begun_recipe(GenerateRecipe, out)
        kept: dict[str, Any] = {"preset": begun.preset, "model": begun.model}
        kept |= {f"train.{key}": getattr(begun.train, key) for key in OWN}
        return override(recipe, kept), f"sized as {out} was begun"
    data = recipe.data
    if corpus is None and not data.path:
        raise InputError("no data was given", fix="--data PATH: a .txt or .jsonl file, or a folder of such")
    if corpus is None:
        corpus = prepared_documents(data.path, None) or read_documents(data.path)
    prepared = corpus.prepared
    held = prepared.stored.tokens if prepared else sum(map(len, corpus.train)) / CHARACTERS[data.tokenizer]
    vocabulary = {"chars": 400, "bytes": 260}.get(data.tokenizer, data.vocab_size)
    dtype = DTYPES[choose_precision(device).precision]
    model: dict[str, Any] = {}
    size, seen = 0, 0.0
    for width in WIDTHS:
        larger = _shape(width)
        count, rate = _trial(larger, vocabulary, device, dtype)
        if model and rate * 60 * minutes < TOKENS * count:
            break
        model, size, seen = larger, count, rate * 60 * minutes
    epochs = seen / max(1.0, held)
    model["dropout"] = 0.0 if epochs < 1 else 0.1 if epochs < EPOCHS else 0.2
    plan = {"optimizer": "muon", "lr": 3e-3, "warmup": 50, "average": 0.99, "tokens": BATCH}
    settings = {"preset": PRESET, "model": model} | {f"train.{key}": value for key, value in plan.items()}
    why = (
        f"{minutes:g} minutes: {model['n_layers']} layers {model['d_model']} wide, {size:,} parameters, as this "
        f"machine gets through about {seen:,.0f} tokens ({epochs:.1f} times the text); dropout {model['dropout']:g}"
    )
    return override(recipe, settings), why


def _shape(width: int) -> dict[str, Any]:
    """The fields of the preset's row for a model of this width."""
    heads, hidden = width // 32, 16 * round(width / 6)
    sizes = {"n_layers": 2 + width // 64, "d_model": width, "n_heads": heads, "kv_heads": heads, "d_ff": hidden}
    return sizes | {"context_length": CONTEXT}


def _trial(shape: dict[str, Any], vocabulary: int, device: torch.device, dtype: torch.dtype) -> tuple[int, float]:
    """The number of parameters, and the tokens per second of training."""
    config = lm_config(replace(LANGUAGE_MODELS[PRESET], **shape), vocab_size=vocabulary)
    with torch.random.fork_rng():
        model = make_model(config).to(device, dtype).train()
        rows = torch.randint(4, vocabulary, (BATCH // CONTEXT, CONTEXT + 1))
    batch = TextBatch(rows[:, :-1], rows[:, 1:], torch.ones_like(rows[:, 1:]))
    optimizer = Optimizer(model, OptimConfig(optimizer="muon"))
    spent = []
    for _ in range(1 + TRIAL):
        begin = time.perf_counter()
        loss = next_token_loss(model, batch, across=True)
        loss.total.backward()
        optimizer.collect()
        optimizer.step(0.0, optimizer.norm(loss.count), loss.count)
        spent.append(time.perf_counter() - begin)
    return sum(p.numel() for p in model.parameters()), BATCH / sorted(spent[1:])[TRIAL // 2]
