"""Marian's translators (Junczys-Dowmunt et al. 2018), as the Hub holds more than a thousand of them: OPUS-MT.

    config = config_from_hf(json.loads(text))
    model = Seq2Seq(config)
    weights = to_ours(rules(config), their_weights, dict(model.named_parameters()))

It is the Transformer with the sines of the positions before the cosines, and a bias on the logits. Which tokens begin,
end and pad a sentence is no part of our configuration: `config_to_hf` is told, and who imports reads it from theirs
(`decoder_start_token_id`, `eos_token_id`, `pad_token_id`).
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule
from heedful.models.seq2seq import Seq2SeqConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their MarianConfig).
    keys=seq2seq.stack_keys(activation="gelu", d_model=1024, n_heads=16, d_ff=4096, n_layers=12)
    | {
        "decoder_vocab_size": Key(None, "target.vocab_size"),
        "dropout": Key(0.1, "{decoder.block,encoder.block,source,target}.dropout"),
        "max_position_embeddings": Key(1024, "{target,source}.context_length"),
        "scale_embedding": Key(False, "{source,target}.scaled"),
        "share_encoder_decoder_embeddings": Key(True),
        "tie_word_embeddings": Key(True),
        "vocab_size": Key(58101, "source.vocab_size"),
    },
    always={
        "{source,target}.position_embeddings": "sinusoidal",
        "{source,target}.sines_first": True,
        "output_bias": True,
    },
    # Another value would make another model, or another training.
    fixed=seq2seq.FIXED
    | {
        "activation_dropout": 0.0,
        "add_final_layer_norm": False,
        "model_type": "marian",
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
    },
    irrelevant=seq2seq.IRRELEVANT_TEXT | {"extra_pos_embeddings"},
)

RULES = (
    *seq2seq.block_rules(),
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


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> Seq2SeqConfig:
    got = TABLE.understood(theirs, where)
    got["decoder_vocab_size"] = got["decoder_vocab_size"] or got["vocab_size"]
    shared, tied = got["share_encoder_decoder_embeddings"], got["tie_word_embeddings"]
    if shared and not tied:
        raise InputError("tie_word_embeddings is False where the sides share one matrix", where=where)
    if shared and got["vocab_size"] != got["decoder_vocab_size"]:
        sizes = f"{got['vocab_size']} and {got['decoder_vocab_size']}"
        raise InputError(f"vocabularies of {sizes} share one matrix", where=where)
    values = TABLE.in_ours(got, where) | {"tied": "all" if shared else "output" if tied else "none"}
    return keys.built(Seq2SeqConfig, values, where)


def _said(config: Seq2SeqConfig, *, start: int, end: int) -> dict[str, Any]:
    shared = {"share_encoder_decoder_embeddings": config.tied == "all", "tie_word_embeddings": config.tied != "none"}
    return shared | {"bos_token_id": start, "forced_eos_token_id": end}


TOKENS = {"decoder_start_token_id": 58100, "eos_token_id": 0, "pad_token_id": 58100}
FAMILY = replace(
    seq2seq.family("Marian", "MarianMTModel", TABLE, config_from_hf, rules, _said, TOKENS),
    recast=seq2seq.biased_sines_first,
)
