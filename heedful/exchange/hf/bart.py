"""BART (Lewis et al. 2020), as the Hub holds it.

It is the Transformer with learned positions, a norm of the embeddings and a bias on the logits. The first position is
row 2 of their tables and row 0 of ours: nothing looks up the two before, which are zeros on the way back.

Which tokens begin, end and pad a text is no part of our configuration: `config_to_hf` is told, and who imports reads it
from theirs (`decoder_start_token_id`, `forced_bos_token_id`, `eos_token_id`, `pad_token_id`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, modules
from heedful.models.seq2seq import Seq2SeqConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their BartConfig).
    keys=seq2seq.stack_keys(activation="gelu", d_model=1024, n_heads=16, d_ff=4096, n_layers=12)
    | {
        "activation_dropout": Key(0.0, "{decoder,encoder}.block.mlp_dropout"),
        "dropout": Key(0.1, "{decoder.block,encoder.block,source,target}.dropout"),
        "max_position_embeddings": Key(1024, "{source,target}.context_length"),
        "scale_embedding": Key(False, "{source,target}.scaled"),
        "vocab_size": Key(50265, "{source,target}.vocab_size"),
    },
    always={
        "{source,target}.position_embeddings": "learned",
        "{source,target}.norm_eps": 1e-5,
        "output_bias": True,
        "init": "normal",
    },
    # Another value would make another model, or another training.
    fixed=seq2seq.FIXED
    | {
        "add_final_layer_norm": False,
        "extra_pos_embeddings": 2,
        "model_type": "bart",
        "normalize_before": False,
        "normalize_embedding": True,
        "static_position_embeddings": False,
        "tie_word_embeddings": True,
    },
    # These have no effect on the model's mathematics.
    irrelevant=seq2seq.IRRELEVANT_TEXT,
)

UNUSED = 2  # rows of their tables of positions
_BIAS = "final_logits_bias"
AROUND_BLOCKS = (
    *modules({"model.encoder.layernorm_embedding": "source.norm", "model.decoder.layernorm_embedding": "target.norm"}),
    Rule("model.encoder.embed_positions.weight", "source.position_embeddings.table.weight", unused=UNUSED),
    Rule("model.decoder.embed_positions.weight", "target.position_embeddings.table.weight", unused=UNUSED),
    *seq2seq.SHARED,
    Rule(_BIAS, "head.bias", "row"),
)
RULES = (*seq2seq.block_rules(), *AROUND_BLOCKS)
config_from_hf = keys.reader(Seq2SeqConfig, TABLE)


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds the bare model (BartModel), as those of the first ones do, under the names that
    they have in the whole, and with the bias on the logits, which is then zero; any other file as it is."""
    if "shared.weight" not in theirs:
        return dict(theirs)
    shared = theirs["shared.weight"]
    bias = {_BIAS: torch.zeros(1, shared.shape[0], dtype=shared.dtype)}
    return bias | {name if name == _BIAS else f"model.{name}": tensor for name, tensor in theirs.items()}


def _said(config: Seq2SeqConfig, *, start: int, end: int, first: int | None = None) -> dict[str, Any]:
    """`first`: what every text begins with after `start`, in BART the token that begins a source too."""
    begin = start if first is None else first
    return {"bos_token_id": begin, "forced_bos_token_id": first, "forced_eos_token_id": end}


TOKENS = {"bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
FAMILY = replace(
    seq2seq.family("BART", "BartForConditionalGeneration", TABLE, config_from_hf, always(RULES), _said, TOKENS),
    whole=whole,
)
