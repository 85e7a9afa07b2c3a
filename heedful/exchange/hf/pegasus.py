"""Pegasus (Zhang et al. 2020), as the Hub holds it: the pre-norm Transformer with biases everywhere, one matrix for
source, target and output, and the sines of the positions before the cosines.

Which tokens begin, end and pad a text is no part of our configuration: `config_to_hf` is told, and who imports reads it
from theirs (`decoder_start_token_id`, `eos_token_id`, `pad_token_id`).
"""

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from heedful.core.embed import sinusoidal
from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.keys import Key
from heedful.exchange.hf.rules import Rule, modules
from heedful.models.seq2seq import Seq2SeqConfig

# With what each is where a file leaves it out (their PegasusConfig).
KEYS = seq2seq.stack_keys(activation="gelu", d_model=1024, n_heads=16, d_ff=4096, n_layers=12) | {
    "activation_dropout": Key(0.0, "{decoder,encoder}.block.mlp_dropout"),
    "dropout": Key(0.1, "{decoder.block,encoder.block,source,target}.dropout"),
    "max_position_embeddings": Key(1024, "{source,target}.context_length"),
    "scale_embedding": Key(False, "{source,target}.scaled"),
    "vocab_size": Key(50265, "{source,target}.vocab_size"),
}
ALWAYS = {
    "{source,target}.position_embeddings": "sinusoidal",
    "{source,target}.sines_first": True,
    "{encoder,decoder}.block.order": "pre",
    "{encoder,decoder}.final_norm": True,
    "output_bias": True,
}

# What they are where a config.json does not say.
TOKENS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}

# Another value would make another model, or another training.
FIXED = seq2seq.FIXED | {
    "add_final_layer_norm": True,
    "model_type": "pegasus",
    "normalize_before": True,
    "normalize_embedding": False,
    "static_position_embeddings": True,
    "tie_word_embeddings": True,
}
IRRELEVANT = seq2seq.IRRELEVANT_TEXT | {
    "early_stopping",
    "extra_pos_embeddings",
    "length_penalty",
    "min_length",
    "no_repeat_ngram_size",
    "task_specific_params",
}

_SHARED = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
RULES = (
    *seq2seq.block_rules("in_norm"),
    *modules({f"model.{stack}.layer_norm": f"{stack}.norm" for stack in ("encoder", "decoder")}),
    Rule("model.encoder.embed_positions.weight", None),
    Rule("model.decoder.embed_positions.weight", None),
    *(Rule(f"{name}.weight", "source.tokens.weight") for name in _SHARED),
    Rule("final_logits_bias", "head.bias", "row"),
)


def rules(config: Seq2SeqConfig) -> tuple[Rule, ...]:
    """The table, which is one for all of them."""
    return RULES


def made(config: Seq2SeqConfig) -> dict[str, Tensor]:
    """Their tables of positions, whose numbers we compute."""
    table = sinusoidal(torch.arange(config.source.context_length), config.d_model, sines_first=True)
    return {f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")}


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> Seq2SeqConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = keys.understood(theirs, KEYS, FIXED, IRRELEVANT, where)
    return keys.built(Seq2SeqConfig, ALWAYS | keys.in_ours(KEYS, got, where), where)


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, complete with the special tokens' numbers.

    Raises InputError for a configuration that Pegasus cannot hold, and names what it is.
    """
    theirs = FIXED | keys.in_theirs(KEYS, config)
    theirs |= {
        "architectures": ["PegasusForConditionalGeneration"],
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "forced_eos_token_id": end,
        "pad_token_id": pad,
    }
    keys.nothing_lost(config, config_from_hf(theirs), "Pegasus")
    return theirs
