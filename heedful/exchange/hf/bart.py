"""BART (Lewis et al. 2020), as the Hub holds it.

It is the Transformer with learned positions, a norm of the embeddings and a bias on the logits. The first position is
row 2 of their tables and row 0 of ours: nothing looks up the two before, which are zeros on the way back.

Which tokens begin, end and pad a text is no part of our configuration: `config_to_hf` is told, and who imports reads it
from theirs (`decoder_start_token_id`, `forced_bos_token_id`, `eos_token_id`, `pad_token_id`).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.core.config import from_json
from heedful.exchange.hf.keys import EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.seq2seq import Seq2SeqConfig

# What they leave out of a file is what these say (their BartConfig).
USED: dict[str, Any] = {
    "activation_dropout": 0.0,
    "activation_function": "gelu",
    "attention_dropout": 0.0,
    "d_model": 1024,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
    "decoder_layers": 12,
    "dropout": 0.1,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "encoder_layers": 12,
    "max_position_embeddings": 1024,
    "scale_embedding": False,
    "vocab_size": 50265,
}

# What they are where a config.json does not say.
TOKENS = {"bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}

# Another value would make another model, or another training.
FIXED: dict[str, Any] = {
    "add_final_layer_norm": False,
    "chunk_size_feed_forward": 0,
    "decoder_layerdrop": 0.0,
    "encoder_layerdrop": 0.0,
    "extra_pos_embeddings": 2,
    "is_decoder": False,
    "is_encoder_decoder": True,
    "model_type": "bart",
    "normalize_before": False,
    "normalize_embedding": True,
    "static_position_embeddings": False,
    "tie_word_embeddings": True,
}

# These say nothing about the model's mathematics.
IRRELEVANT = EVERYWHERE | {
    "add_bias_logits",  # the bias is always there
    "bad_words_ids",
    "classif_dropout",
    "classifier_dropout",
    "early_stopping",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "init_std",
    "length_penalty",
    "min_length",
    "no_repeat_ngram_size",
    "num_hidden_layers",  # of a time when there was one number for both
    "output_past",
    "prefix",
    "task_specific_params",
}

UNUSED = 2  # rows of their tables of positions
_BIAS = "final_logits_bias"
_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "self_attn_layer_norm": "self_residual.out_norm",
    "fc1": "mlp.up",
    "fc2": "mlp.down",
    "final_layer_norm": "mlp_residual.out_norm",
}
_CROSS = {
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.out",
    "encoder_attn_layer_norm": "cross_residual.out_norm",
}
RULES = (
    *(
        Rule(f"model.{stack}.layers.{{i}}.{theirs}.{kind}", f"{stack}.blocks.{{i}}.{ours}.{kind}")
        for stack, block in (("encoder", _BLOCK), ("decoder", _BLOCK | _CROSS))
        for theirs, ours in block.items()
        for kind in ("weight", "bias")
    ),
    *(
        Rule(f"model.{stack}.layernorm_embedding.{kind}", f"{side}.norm.{kind}")
        for stack, side in (("encoder", "source"), ("decoder", "target"))
        for kind in ("weight", "bias")
    ),
    Rule("model.encoder.embed_positions.weight", "source.position_embeddings.table.weight", unused=UNUSED),
    Rule("model.decoder.embed_positions.weight", "target.position_embeddings.table.weight", unused=UNUSED),
    *(
        Rule(name, "source.tokens.weight")
        for name in (
            "model.shared.weight",
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
            "lm_head.weight",
        )
    ),
    Rule(_BIAS, "head.bias", "row"),
)


def rules(config: Seq2SeqConfig) -> tuple[Rule, ...]:
    """The table, which is one for all of them."""
    return RULES


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds the bare model (BartModel), as those of the first ones do, under the names that
    they have in the whole, and with the bias on the logits, which is then zero; any other file as it is."""
    if "shared.weight" not in theirs:
        return dict(theirs)
    shared = theirs["shared.weight"]
    bias = {_BIAS: torch.zeros(1, shared.shape[0], dtype=shared.dtype)}
    return bias | {name if name == _BIAS else f"model.{name}": tensor for name, tensor in theirs.items()}


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> Seq2SeqConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)

    def stack(side: str, *, looks_at_memory: bool) -> dict[str, Any]:
        attention = {"n_heads": got[f"{side}_attention_heads"], "dropout": got["attention_dropout"]}
        block = {
            "attention": attention,
            "cross": attention if looks_at_memory else None,
            "d_ff": got[f"{side}_ffn_dim"],
            "activation": activation(got, "activation_function", where=where),
            "mlp_dropout": got["activation_dropout"],
            "dropout": got["dropout"],
        }
        return {"n_layers": got[f"{side}_layers"], "block": block}

    embed = {
        "vocab_size": got["vocab_size"],
        "scaled": got["scale_embedding"],
        "position_embeddings": "learned",
        "context_length": got["max_position_embeddings"],
        "norm_eps": 1e-5,
        "dropout": got["dropout"],
    }
    ours = {
        "d_model": got["d_model"],
        "source": embed,
        "target": embed,
        "encoder": stack("encoder", looks_at_memory=False),
        "decoder": stack("decoder", looks_at_memory=True),
        "output_bias": True,
        "init": "normal",
    }
    return from_json(Seq2SeqConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int, first: int | None = None) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, complete with the special tokens' numbers. `first`: what
    every text begins with after `start`, in BART the token that begins a source too.

    Raises InputError for a configuration that BART has no words for, and names what it is.
    """
    encoder, decoder = config.encoder.block, config.decoder.block
    theirs = FIXED | {
        "architectures": ["BartForConditionalGeneration"],
        "activation_dropout": decoder.mlp_dropout,
        "activation_function": activation_to_hf(decoder.activation),
        "attention_dropout": decoder.attention.dropout,
        "d_model": config.d_model,
        "decoder_attention_heads": decoder.attention.n_heads,
        "decoder_ffn_dim": decoder.d_ff,
        "decoder_layers": config.decoder.n_layers,
        "dropout": decoder.dropout,
        "encoder_attention_heads": encoder.attention.n_heads,
        "encoder_ffn_dim": encoder.d_ff,
        "encoder_layers": config.encoder.n_layers,
        "max_position_embeddings": config.source.context_length,
        "scale_embedding": config.source.scaled,
        "vocab_size": config.source.vocab_size,
        "bos_token_id": start if first is None else first,
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "forced_bos_token_id": first,
        "forced_eos_token_id": end,
        "pad_token_id": pad,
    }
    nothing_lost(config, config_from_hf(theirs), "BART")
    return theirs
