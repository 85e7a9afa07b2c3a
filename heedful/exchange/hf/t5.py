"""T5 (Raffel et al. 2020) and its version 1.1, of which Flan-T5 is one, as the Hub holds them.

The first version has one matrix for source, target and output, and scales what goes into the last by d_model^-0.5; the
second has an output matrix of its own, and scales nothing. Their files say so by `tie_word_embeddings` False, or since
their fifth major version by `scale_decoder_outputs` False. Which tokens begin, end and pad a text is no part of our
configuration: `config_to_hf` is told, and who imports reads it from theirs (`decoder_start_token_id`, which is the
padding's, `eos_token_id`, `pad_token_id`).
"""

from dataclasses import replace
from typing import Any

from heedful.core.block import StackConfig
from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import ACTIVATIONS, EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.seq2seq import Seq2SeqConfig

# What they leave out of a file is what these say (their T5Config).
USED: dict[str, Any] = {
    "d_ff": 2048,
    "d_kv": 64,
    "d_model": 512,
    "dense_act_fn": None,  # what feed_forward_proj says, once more; so is the next
    "dropout_rate": 0.1,
    "feed_forward_proj": "relu",
    "is_gated_act": None,
    "layer_norm_epsilon": 1e-6,
    "num_decoder_layers": None,
    "num_heads": 8,
    "num_layers": 6,
    "relative_attention_max_distance": 128,
    "relative_attention_num_buckets": 32,
    "scale_decoder_outputs": None,
    "tie_word_embeddings": True,
    "vocab_size": 32128,
}

# What they are where a config.json does not say.
TOKENS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}

# Another value would make another model.
FIXED: dict[str, Any] = {
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": True,
    "model_type": "t5",
}

# These say nothing about the model's mathematics.
IRRELEVANT = EVERYWHERE | {
    "classifier_dropout",
    "initializer_factor",
    "n_positions",  # how long the texts of the first training were
    "output_past",
    "task_specific_params",
}

_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "out"}
_MLP = {"wi": "up", "wo": "down"}
_GATED = {"wi_0": "gate", "wi_1": "up", "wo": "down"}
BIAS = "SelfAttention.relative_attention_bias.weight"


def rules(config: Seq2SeqConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: whether the MLP is gated, and what the output matrix is, differs."""
    mlp = _GATED if config.encoder.block.gated else _MLP
    head = "source.tokens.weight" if config.tied == "all" else "head.weight"
    return (
        *_stack("encoder", {"SelfAttention": "self"}, mlp),
        *_stack("decoder", {"SelfAttention": "self", "EncDecAttention": "cross"}, mlp),
        # which the first files hold, and nothing ever read
        Rule("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", None),
        *(
            Rule(f"{name}.weight", "source.tokens.weight")
            for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
        ),
        Rule("lm_head.weight", head),
    )


def _stack(name: str, attentions: dict[str, str], mlp: dict[str, str]) -> tuple[Rule, ...]:
    """Their layers are numbered inside a block: attentions first, the MLP last."""
    table: dict[str, str] = {}
    for n, (theirs, ours) in enumerate(attentions.items()):
        table |= {f"layer.{n}.{theirs}.{own}": f"{ours}_attention.{part}" for own, part in _ATTENTION.items()}
        table[f"layer.{n}.layer_norm"] = f"{ours}_residual.in_norm"
    last = len(attentions)
    table |= {f"layer.{last}.DenseReluDense.{theirs}": f"mlp.{ours}" for theirs, ours in mlp.items()}
    table[f"layer.{last}.layer_norm"] = "mlp_residual.in_norm"
    return (
        *(
            Rule(f"{name}.block.{{i}}.{theirs}.weight", f"{name}.blocks.{{i}}.{ours}.weight")
            for theirs, ours in table.items()
        ),
        Rule(f"{name}.block.0.layer.0.{BIAS}", f"{name}.position.table.weight"),
        Rule(f"{name}.final_layer_norm.weight", f"{name}.norm.weight"),
    )


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> Seq2SeqConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    function, gated = _feed_forward(got, where)
    scaled = got["scale_decoder_outputs"]
    if scaled is None:
        scaled = got["tie_word_embeddings"]
    elif scaled and not got["tie_word_embeddings"]:
        raise InputError("scale_decoder_outputs is True where tie_word_embeddings is False", where=where)
    attention = {
        "n_heads": got["num_heads"],
        "head_dim": got["d_kv"],
        "scale": 1.0,
        "bias": False,
        "dropout": got["dropout_rate"],
    }

    def stack(n_layers: Any, *, looks_at_memory: bool) -> dict[str, Any]:
        block = {
            "attention": attention,
            "cross": attention if looks_at_memory else None,
            "d_ff": got["d_ff"],
            "order": "pre",
            "norm": "rms",
            "norm_eps": got["layer_norm_epsilon"],
            "activation": function,
            "gated": gated,
            "bias": False,
            "mlp_dropout": got["dropout_rate"],
            "dropout": got["dropout_rate"],
        }
        position = {
            "kind": "buckets",
            "buckets": got["relative_attention_num_buckets"],
            "furthest": got["relative_attention_max_distance"],
            "two_sided": not looks_at_memory,
        }
        return {
            "n_layers": n_layers,
            "block": block,
            "final_norm": True,
            "shared_position": position,
            "dropout": got["dropout_rate"],
        }

    embed = {
        "vocab_size": got["vocab_size"],
        "scaled": False,
        "position_embeddings": "none",
        "dropout": got["dropout_rate"],
    }
    decoder_layers = got["num_layers"] if got["num_decoder_layers"] is None else got["num_decoder_layers"]
    ours = {
        "d_model": got["d_model"],
        "source": embed,
        "target": embed,
        "encoder": stack(got["num_layers"], looks_at_memory=False),
        "decoder": stack(decoder_layers, looks_at_memory=True),
        "tied": "all" if scaled else "inputs",
        "scaled_output": scaled,
        "init": "t5",
    }
    return from_json(Seq2SeqConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, complete with the special tokens' numbers.

    Raises InputError for a configuration that T5 has no words for, and names what it is.
    """
    block, position = config.encoder.block, config.encoder.shared_position
    gated = "gated-" if block.gated else ""
    function = "gelu" if gated and block.activation == "gelu_tanh" else activation_to_hf(block.activation)
    theirs = FIXED | {
        "architectures": ["T5ForConditionalGeneration"],
        "d_ff": block.d_ff,
        "d_kv": block.attention.head_dim or config.d_model // block.attention.n_heads,
        "d_model": config.d_model,
        "dropout_rate": block.dropout,
        "feed_forward_proj": gated + function,
        "layer_norm_epsilon": block.norm_eps,
        "num_decoder_layers": config.decoder.n_layers,
        "num_heads": block.attention.n_heads,
        "num_layers": config.encoder.n_layers,
        "relative_attention_max_distance": position.furthest,
        "relative_attention_num_buckets": position.buckets,
        "scale_decoder_outputs": config.scaled_output,
        "tie_word_embeddings": config.tied == "all",
        "vocab_size": config.source.vocab_size,
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "pad_token_id": pad,
    }
    nothing_lost(_written_out(config), config_from_hf(theirs), "T5")
    return theirs


def _feed_forward(got: dict[str, Any], where: str) -> tuple[str, bool]:
    """The MLP's activation, and whether it is gated. Their "gated-gelu" is the tanh approximation."""
    said = str(got["feed_forward_proj"])
    gated, name = said.startswith("gated-"), said.removeprefix("gated-")
    given = {"feed_forward_proj": "gelu_new" if gated and name == "gelu" else name}
    function = activation(given, "feed_forward_proj", where=where)
    again, is_gated = got["dense_act_fn"], got["is_gated_act"]
    if (again is not None and ACTIVATIONS.get(str(again)) != function) or is_gated not in (None, gated):
        what = f"dense_act_fn {again!r} and is_gated_act {is_gated!r} where feed_forward_proj is {said!r}"
        raise InputError(what, where=where)
    return function, gated


def _written_out(config: Seq2SeqConfig) -> Seq2SeqConfig:
    """The same model with the width of its heads given, where it follows from others."""

    def stack(own: StackConfig) -> StackConfig:
        attention = own.block.attention
        attention = replace(attention, head_dim=attention.head_dim or config.d_model // attention.n_heads)
        cross = own.block.cross
        if cross is not None:
            cross = replace(cross, head_dim=cross.head_dim or config.d_model // cross.n_heads)
        return replace(own, block=replace(own.block, attention=attention, cross=cross))

    return replace(config, encoder=stack(config.encoder), decoder=stack(config.decoder))
