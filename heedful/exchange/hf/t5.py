"""T5 (Raffel et al. 2020) and its version 1.1, of which Flan-T5 is one, as the Hub holds them.

The first version has one matrix for source, target and output, and scales what goes into the last by d_model^-0.5; the
second has an output matrix of its own, and scales nothing. Their files say so by `tie_word_embeddings` False, or since
their fifth major version by `scale_decoder_outputs` False, where a file may also have no output matrix, and it is then
that of source and target. Which tokens begin, end and pad a text is no part of our
configuration: `config_to_hf` is told, and who imports reads it from theirs (`decoder_start_token_id`, which is the
padding's, `eos_token_id`, `pad_token_id`).
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.core.block import StackConfig
from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATIONS, EVERYWHERE, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.seq2seq import Seq2SeqConfig

_ATTENTIONS = "{encoder.block.attention,decoder.block.attention,decoder.block.cross}"
_ALL_DROPOUTS = (
    "{encoder,decoder}.block.{dropout,mlp_dropout,attention.dropout} decoder.block.cross.dropout"
    " {encoder,decoder,source,target}.dropout"
)


TABLE = KeyTable(
    # With what each is where a file leaves it out (their T5Config).
    keys={
        "d_ff": Key(2048, "{encoder,decoder}.block.d_ff"),
        "d_kv": Key(64, f"{_ATTENTIONS}.head_dim"),
        "d_model": Key(512, "d_model"),
        "dense_act_fn": Key(None),  # what feed_forward_proj says, once more; so does is_gated_act
        "dropout_rate": Key(0.1, _ALL_DROPOUTS),
        "feed_forward_proj": Key("relu"),
        "is_gated_act": Key(None),
        "layer_norm_epsilon": Key(1e-6, "{encoder,decoder}.block.norm_eps"),
        "num_decoder_layers": Key(None, "decoder.n_layers"),
        "num_heads": Key(8, f"{_ATTENTIONS}.n_heads"),
        "num_layers": Key(6, "encoder.n_layers"),
        "relative_attention_max_distance": Key(128, "{encoder,decoder}.shared_position.furthest"),
        "relative_attention_num_buckets": Key(32, "{encoder,decoder}.shared_position.buckets"),
        "scale_decoder_outputs": Key(None, "scaled_output"),
        "tie_word_embeddings": Key(True),
        "vocab_size": Key(32128, "{source,target}.vocab_size"),
    },
    always={
        "{source,target}.scaled": False,
        "{source,target}.position_embeddings": "none",
        "{encoder,decoder}.shared_position.kind": "buckets",
        "encoder.shared_position.two_sided": True,
        "decoder.shared_position.two_sided": False,
        f"{_ATTENTIONS}.scale": 1.0,
        f"{_ATTENTIONS}.bias": False,
        "{encoder,decoder}.block.order": "pre",
        "{encoder,decoder}.block.norm": "rms",
        "{encoder,decoder}.block.bias": False,
        "{encoder,decoder}.final_norm": True,
        "init": "t5",
    },
    fixed=keys.FIXED_SEQ2SEQ | {"model_type": "t5"},
    # These have no effect on the model's mathematics.
    irrelevant=EVERYWHERE
    | {
        "classifier_dropout",
        "initializer_factor",
        "n_positions",  # how long the texts of the first training were
    },
)

_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "out"}
_MLP = {"wi": "up", "wo": "down"}
_GATED = {"wi_0": "gate", "wi_1": "up", "wo": "down"}
HEAD = "lm_head.weight"
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
        Rule(HEAD, head),
    )


def _stack(name: str, attentions: dict[str, str], mlp: dict[str, str]) -> tuple[Rule, ...]:
    """Their layers are numbered inside a block: attentions first, the MLP last."""
    table: dict[str, str] = {}
    for n, (theirs, ours) in enumerate(attentions.items()):
        table |= inside(f"layer.{n}.{theirs}", f"{ours}_attention", _ATTENTION)
        table[f"layer.{n}.layer_norm"] = f"{ours}_residual.in_norm"
    last = len(attentions)
    table |= inside(f"layer.{last}.DenseReluDense", "mlp", mlp)
    table[f"layer.{last}.layer_norm"] = "mlp_residual.in_norm"
    table = inside(f"{name}.block.{{i}}", f"{name}.blocks.{{i}}", table)
    return (
        *modules(table | {f"{name}.final_layer_norm": f"{name}.norm"}, kinds=("weight",)),
        Rule(f"{name}.block.0.layer.0.{BIAS}", f"{name}.position.table.weight"),
    )


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> Seq2SeqConfig:
    got = TABLE.understood(theirs, where)
    function, gated = _feed_forward(got, where)
    if got["scale_decoder_outputs"] is None:
        got["scale_decoder_outputs"] = got["tie_word_embeddings"]
    elif got["scale_decoder_outputs"] and not got["tie_word_embeddings"]:
        raise InputError("scale_decoder_outputs is True where tie_word_embeddings is False", where=where)
    if got["num_decoder_layers"] is None:
        got["num_decoder_layers"] = got["num_layers"]
    more = {
        "{encoder,decoder}.block.activation": function,
        "{encoder,decoder}.block.gated": gated,
        "tied": "all" if got["scale_decoder_outputs"] or (names and HEAD not in names) else "inputs",
    }
    return keys.built(Seq2SeqConfig, TABLE.in_ours(got, where) | more, where)


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    config, block = _written_out(config), config.encoder.block
    gated = "gated-" if block.gated else ""
    function = "gelu" if gated and block.activation == "gelu_tanh" else keys.activation_to_hf(block.activation)
    theirs = TABLE.in_theirs(config)
    theirs |= {
        "architectures": ["T5ForConditionalGeneration"],
        "feed_forward_proj": gated + function,
        "tie_word_embeddings": config.tied == "all",
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "pad_token_id": pad,
    }
    names = [rule.theirs for rule in rules(config) if rule.theirs != HEAD or config.tied != "all"]
    return keys.nothing_lost(theirs, config, config_from_hf(theirs, names), "T5")


def _feed_forward(got: dict[str, Any], where: str) -> tuple[str, bool]:
    """The MLP's activation, and whether it is gated. Their "gated-gelu" is the tanh approximation."""
    said = str(got["feed_forward_proj"])
    gated, name = said.startswith("gated-"), said.removeprefix("gated-")
    function = keys.activation("feed_forward_proj", "gelu_new" if gated and name == "gelu" else name, where)
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


FAMILY = Family(
    "T5",
    Seq2SeqConfig,
    always("AutoModelForSeq2SeqLM"),
    config_from_hf,
    config_to_hf,
    rules,
    tokens={"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0},
)
