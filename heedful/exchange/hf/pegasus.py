"""Pegasus (Zhang et al. 2020), as the Hub holds it: the pre-norm Transformer with biases everywhere, one matrix for
source, target and output, and the sines of the positions before the cosines.

Which tokens begin, end and pad a text is no part of our configuration: `config_to_hf` is told, and who imports reads it
from theirs (`decoder_start_token_id`, `eos_token_id`, `pad_token_id`).
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.core.embed import sinusoidal
from heedful.exchange.hf import bart, keys, seq2seq
from heedful.exchange.hf.keys import KeyTable
from heedful.exchange.hf.rules import Rule, always
from heedful.models.seq2seq import Seq2SeqConfig

TABLE = KeyTable(
    keys=bart.TABLE.keys,
    always={
        "{source,target}.position_embeddings": "sinusoidal",
        "{source,target}.sines_first": True,
        "{encoder,decoder}.block.order": "pre",
        "{encoder,decoder}.final_norm": True,
        "output_bias": True,
    },
    # Another value would make another model, or another training.
    fixed=seq2seq.FIXED
    | {
        "add_final_layer_norm": True,
        "model_type": "pegasus",
        "normalize_before": True,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
    },
    irrelevant=seq2seq.IRRELEVANT_TEXT | {"extra_pos_embeddings"},
)

RULES = (
    *seq2seq.block_rules("in_norm"),
    Rule("model.encoder.embed_positions.weight", None),
    Rule("model.decoder.embed_positions.weight", None),
    *seq2seq.SHARED,
    Rule("final_logits_bias", "head.bias", "row"),
)
config_from_hf = keys.reader(Seq2SeqConfig, TABLE)


def made(config: Seq2SeqConfig) -> dict[str, Tensor]:
    """Their tables of positions, whose numbers we compute."""
    table = sinusoidal(torch.arange(config.source.context_length), config.d_model, sines_first=True)
    return {f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")}


def _said(config: Seq2SeqConfig, *, start: int, end: int) -> dict[str, Any]:
    return {"forced_eos_token_id": end}


TOKENS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
FAMILY = replace(
    seq2seq.family("Pegasus", "PegasusForConditionalGeneration", TABLE, config_from_hf, always(RULES), _said, TOKENS),
    recast=seq2seq.biased_sines_first,
    made=made,
)
