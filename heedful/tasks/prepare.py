"""From a recipe and its data to what can be trained on: tokenizers, token ids, and the model's configuration.

Whatever is wrong with either is found here, before anything is written.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.text import Corpus, Pairs, read_parallel
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models.presets import TRANSLATORS, translator
from heedful.tasks.recipe import Recipe
from heedful.tasks.translate import Ids


@dataclass(frozen=True)
class Prepared:
    source: Tokenizer
    target: Tokenizer
    pairs: list[tuple[Ids, Ids]]
    notes: list[str]
    fingerprint: str  # of the training pairs
    config: Any  # of the model

    @property
    def tokenizer_hash(self) -> str:
        return f"{self.source.fingerprint} {self.target.fingerprint}"


def read(recipe: Recipe) -> Corpus:
    if not recipe.data.path:
        raise InputError("no data was given", fix="--data PATH: a folder, a .tsv, .csv or .jsonl file")
    return read_parallel(recipe.data.path, source=recipe.data.source or None, target=recipe.data.target or None)


def prepare(recipe: Recipe, corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer] | None = None) -> Prepared:
    """Trains the tokenizers, where they are not given. Raises InputError."""
    row = TRANSLATORS[recipe.preset]
    row = from_json(type(row), to_json(row) | recipe.model, where=f"model (preset {recipe.preset})")
    data, pairs = recipe.data, corpus.train
    notes = list(corpus.notes)
    source, target = tokenizers or _trained(recipe, pairs)
    encoded = list(zip(source.encode(pairs.source), target.encode(pairs.target), strict=True))
    kept = [pair for pair in encoded if max(map(len, pair)) < data.longest]
    if len(kept) < len(encoded):
        notes.append(f"{len(encoded) - len(kept):,} pairs of more than {data.longest} tokens are left out")
    if not kept:
        what = f"every pair is longer than data.longest = {data.longest} tokens"
        raise InputError(what, where=pairs.name, fix="--set data.longest=1000")
    digest = hashlib.sha256()
    for side in (*pairs.source, "", *pairs.target):
        digest.update(side.encode() + b"\n")
    config = translator(row, source_vocab=source.size, target_vocab=target.size, joint=data.joint)
    return Prepared(source, target, kept, notes, digest.hexdigest(), config)


def _trained(recipe: Recipe, pairs: Pairs) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers trained on both sides together, or on each alone."""
    kind, size = recipe.data.tokenizer, recipe.data.vocab_size
    if recipe.data.joint:
        tokenizer = train_tokenizer([*pairs.source, *pairs.target], kind=kind, size=size)
        return tokenizer, tokenizer
    source, target = (train_tokenizer(side, kind=kind, size=size) for side in (pairs.source, pairs.target))
    return source, target
