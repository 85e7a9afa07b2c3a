"""Marian's translators (Junczys-Dowmunt et al. 2018), as the Hub holds more than a thousand of them: OPUS-MT.

    config = config_from_hf(json.loads(text))
    model = Seq2Seq(config)
    weights = to_ours(rules(config), their_weights, dict(model.named_parameters()))

It is the Transformer with the sines of the positions before the cosines, and a bias on the logits. Which tokens begin,
end and pad a sentence is no part of our configuration: `config_to_hf` is told, and who imports reads it from theirs
(`decoder_start_token_id`, `eos_token_id`, `pad_token_id`).
"""

from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.seq2seq import Seq2SeqConfig

# What they leave out of a file is what these say (their MarianConfig).
USED: dict[str, Any] = {
    "activation_function": "gelu",
    "attention_dropout": 0.0,
    "d_model": 1024,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
    "decoder_layers": 12,
    "decoder_vocab_size": None,
    "dropout": 0.1,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "encoder_layers": 12,
    "max_position_embeddings": 1024,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "vocab_size": 58101,
}

# What they are where a config.json does not say.
TOKENS = {"decoder_start_token_id": 58100, "eos_token_id": 0, "pad_token_id": 58100}

# Another value would make another model, or another training.
FIXED: dict[str, Any] = {
    "activation_dropout": 0.0,
    "add_final_layer_norm": False,
    "chunk_size_feed_forward": 0,
    "decoder_layerdrop": 0.0,
    "encoder_layerdrop": 0.0,
    "is_decoder": False,
    "is_encoder_decoder": True,
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}

# These say nothing about the model's mathematics.
IRRELEVANT = EVERYWHERE | {
    "add_bias_logits",  # the bias is always there
    "bad_words_ids",
    "classif_dropout",
    "classifier_dropout",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "init_std",
    "num_hidden_layers",  # of a time when there was one number for both
}

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
    Rule("final_logits_bias", "head.bias", "row"),
    Rule("model.encoder.embed_positions.weight", None),
    Rule("model.decoder.embed_positions.weight", None),
)


def rules(config: Seq2SeqConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: which of their matrices are one differs."""
    target = "source" if config.tied == "all" else "target"
    head = "head.weight" if config.tied == "none" else f"{target}.tokens.weight"
    shared = (Rule("model.shared.weight", "source.tokens.weight"),) if config.tied == "all" else ()
    return (
        *shared,
        Rule("model.encoder.embed_tokens.weight", "source.tokens.weight"),
        Rule("model.decoder.embed_tokens.weight", f"{target}.tokens.weight"),
        Rule("lm_head.weight", head),
        *RULES,
    )


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> Seq2SeqConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    vocab_sizes = (got["vocab_size"], got["decoder_vocab_size"] or got["vocab_size"])
    shared, tied = got["share_encoder_decoder_embeddings"], got["tie_word_embeddings"]
    if shared and not tied:
        raise InputError("tie_word_embeddings is False where the sides share one matrix", where=where)
    if shared and vocab_sizes[0] != vocab_sizes[1]:
        raise InputError(f"vocabularies of {vocab_sizes[0]} and {vocab_sizes[1]} share one matrix", where=where)

    def stack(side: str, *, looks_at_memory: bool) -> dict[str, Any]:
        attention = {"n_heads": got[f"{side}_attention_heads"], "dropout": got["attention_dropout"]}
        block = {
            "attention": attention,
            "cross": attention if looks_at_memory else None,
            "d_ff": got[f"{side}_ffn_dim"],
            "activation": activation(got, "activation_function", where=where),
            "dropout": got["dropout"],
        }
        return {"n_layers": got[f"{side}_layers"], "block": block}

    def embed(vocab_size: int) -> dict[str, Any]:
        return {
            "vocab_size": vocab_size,
            "scaled": got["scale_embedding"],
            "position_embeddings": "sinusoidal",
            "sines_first": True,
            "context_length": got["max_position_embeddings"],
            "dropout": got["dropout"],
        }

    ours = {
        "d_model": got["d_model"],
        "source": embed(vocab_sizes[0]),
        "target": embed(vocab_sizes[1]),
        "encoder": stack("encoder", looks_at_memory=False),
        "decoder": stack("decoder", looks_at_memory=True),
        "tied": "all" if shared else "output" if tied else "none",
        "output_bias": True,
    }
    return from_json(Seq2SeqConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, complete with the special tokens' numbers.

    Raises InputError for a configuration that Marian has no words for, and names what it is.
    """
    encoder, decoder = config.encoder.block, config.decoder.block
    theirs = FIXED | {
        "architectures": ["MarianMTModel"],
        "activation_function": activation_to_hf(decoder.activation),
        "attention_dropout": decoder.attention.dropout,
        "d_model": config.d_model,
        "decoder_attention_heads": decoder.attention.n_heads,
        "decoder_ffn_dim": decoder.d_ff,
        "decoder_layers": config.decoder.n_layers,
        "decoder_vocab_size": config.target.vocab_size,
        "dropout": decoder.dropout,
        "encoder_attention_heads": encoder.attention.n_heads,
        "encoder_ffn_dim": encoder.d_ff,
        "encoder_layers": config.encoder.n_layers,
        "scale_embedding": config.source.scaled,
        "share_encoder_decoder_embeddings": config.tied == "all",
        "tie_word_embeddings": config.tied != "none",
        "vocab_size": config.source.vocab_size,
        "max_position_embeddings": config.target.context_length,
        "bos_token_id": start,
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "forced_eos_token_id": end,
        "pad_token_id": pad,
    }
    nothing_lost(config, config_from_hf(theirs), "Marian")
    return theirs
