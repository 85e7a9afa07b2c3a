"""The body of a model that understands texts, a language model or an encoder: a new one of a preset's size, or that of
another run."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from heedful.core.config import from_json, to_json
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.models import config_from
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, Bidirectional, Decoder, encoder, language_model
from heedful.tasks.folder import read_tokenizers
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import Start, copy_weights

GROWN = ("embed.tokens.weight", "head.weight", "head.bias")  # of a language model, have a row a token
HEADS = ("transform.", "head.", "pairs.")  # of an encoder, that its texts' understanding does not need
POOLER = "pooler."


def read_body(
    recipe: Recipe, texts: Iterable[str], begun: Path | None, start: Start | None, *, pooler: bool
) -> tuple[Tokenizer, LMConfig | EncoderConfig]:
    """The tokenizer, and the body's configuration for it: of `start`, or new ones, made of the texts. An encoder keeps
    no head but, where it is asked for, its pooler."""
    config: LMConfig | EncoderConfig
    if start is not None:
        tokenizer, config = start.source, config_from(start.model, where=f"{recipe.start_from}/config.json")
    else:
        known, data = None if begun is None else read_tokenizers(begun), recipe.data
        tokenizer = known[0] if known else train_tokenizer(texts, kind=data.tokenizer, size=data.vocab_size)
        where = f"model (preset {recipe.preset})"
        if recipe.preset in ENCODERS:
            row = from_json(Bidirectional, to_json(ENCODERS[recipe.preset]) | recipe.model, where=where)
            config = encoder(row, vocab_size=tokenizer.size)
        else:
            size = from_json(Decoder, to_json(LANGUAGE_MODELS[recipe.preset]) | recipe.model, where=where)
            config = language_model(size, vocab_size=tokenizer.size)
    if isinstance(config, EncoderConfig):
        config = replace(config, words=False, pairs=False, pooler=pooler)
    return tokenizer, config


def copy_body(body: LM | Encoder, folder: str) -> None:
    """The weights of the run in `folder`. What it did not have stays as it is: rows for more tokens, a pooler."""
    if isinstance(body, LM):
        copy_weights(body, folder, grown=GROWN)
    elif body.pooler is None:
        copy_weights(body, folder, without=(*HEADS, POOLER))
    else:
        copy_weights(body, folder, without=HEADS, new=(POOLER,))
