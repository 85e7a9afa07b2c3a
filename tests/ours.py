"""Random models and tokenizers of ours, for conversions to other libraries and back."""

from pathlib import Path
from typing import Any

import torch

import heedful
from heedful.data.tokenizer import Kind, Tokenizer, train_tokenizer
from heedful.models.presets import LMSize
from heedful.store.model import read_model
from hub import LINES
from loud import make_loud
from saved import save_run

KINDS: tuple[Kind, ...] = ("bpe", "unigram", "chars", "bytes")
DECODERS = {
    "gpt2": LMSize(n_layers=2, d_model=16, n_heads=4, context_length=40),
    "gpt2, untied": LMSize(n_layers=2, d_model=16, n_heads=4, context_length=40, tied=False, d_ff=24),
    "llama": LMSize(style="llama", n_layers=2, d_model=16, n_heads=4, kv_heads=2, d_ff=24, context_length=40),
}


def own_tokenizer(kind: Kind) -> Tokenizer:
    return train_tokenizer([*LINES, "<s> <s> </s> </s> <unk>"] * 2, kind=kind, size=330)


def own_run(folder: Path, model: Any, source: Tokenizer, target: Tokenizer, about: dict[str, Any]) -> Any:
    make_loud(model, norm=1.0)
    save_run(folder, model.eval(), source, target, about)
    return heedful.load(folder)


def same_model(one: Path, other: Path) -> bool:
    first, second = read_model(one)[1], read_model(other)[1]
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
