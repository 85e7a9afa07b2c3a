"""ModernBERT (Warner et al. 2024), as the Hub holds it: rotary positions, a gated MLP, and a norm of the embeddings.

Its first layer has no norm before its attention, and every layer of ours has one. So on the way there the first layer
is one that adds nothing, with zeros for weights, and ours follow it; on the way here only such a file can be read, and
that layer is left out. Nor does it have types of tokens: that of a text alone is added to the embeddings, which are
then no longer the output matrix.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, How, Key, Table
from heedful.exchange.hf.rules import Recast, Rule
from heedful.models.encoder import EncoderConfig

TABLE = Table(
    # With what each is where a file leaves it out (their ModernBertConfig). They have one layer more than we.
    keys={
        "attention_bias": Key(False, "stack.block.attention.bias"),
        "attention_dropout": Key(0.0, "stack.block.{attention.dropout,dropout}"),
        "classifier_activation": Key("gelu"),
        "classifier_bias": Key(False),
        "embedding_dropout": Key(0.0, "embed.dropout"),
        "global_rope_theta": Key(160_000.0, "stack.block.attention.position.theta"),
        "hidden_activation": Key("gelu", "stack.block.activation", ACTIVATION),
        "hidden_size": Key(768, "d_model"),
        "intermediate_size": Key(1152, "stack.block.d_ff"),
        "global_attn_every_n_layers": Key(3),
        "layer_types": Key(None),  # the one before, layer by layer, as their fifth major version says it
        "max_position_embeddings": Key(8192, "embed.context_length"),
        "mlp_bias": Key(False, "stack.block.bias"),
        "mlp_dropout": Key(0.0, "stack.block.mlp_dropout"),
        "norm_bias": Key(False),
        "norm_eps": Key(1e-5, "{stack.block,embed}.norm_eps"),
        "num_attention_heads": Key(12, "stack.block.attention.n_heads"),
        "num_hidden_layers": Key(22, "stack.n_layers", How(lambda key, n, where: n - 1, lambda n: n + 1)),
        "rope_parameters": Key(None),  # the theta, as their fifth major version says it
        "tie_word_embeddings": Key(True, "tied"),
        "vocab_size": Key(50368, "embed.vocab_size"),
    },
    always={
        "embed.scaled": False,
        "embed.position_embeddings": "none",
        "stack.block.attention.position.kind": "rotary",
        "stack.block.order": "pre",
        "stack.block.gated": True,
        "stack.final_norm": True,
    },
    # Another value would make another model.
    fixed=keys.FIXED | {"decoder_bias": True, "model_type": "modernbert", "position_embedding_type": "absolute"},
    irrelevant=EVERYWHERE
    | {
        "classifier_dropout",
        "classifier_pooling",
        "cls_token_id",
        "deterministic_flash_attn",
        "initializer_cutoff_factor",
        "initializer_range",
        "local_attention",  # of layers that do not see the whole text, which are not read
        "local_rope_theta",
        "reference_compile",
        "repad_logits_with_grad",
        "sep_token_id",
        "sparse_pred_ignore_index",
        "sparse_prediction",
    },
)

_EVERY, _FIRST = "full_attention", "model.layers.0."


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these layers and heads."""
    block = config.stack.block
    found = [*_both("model.embeddings.norm", "embed.norm"), *_both("model.final_norm", "stack.norm")]
    found.append(Rule("model.embeddings.tok_embeddings.weight", "embed.tokens.weight"))
    for i in range(config.stack.n_layers):
        theirs, ours = f"model.layers.{i + 1}", f"stack.blocks.{i}"
        found += _both(f"{theirs}.attn_norm", f"{ours}.self_residual.in_norm")
        found += _both(f"{theirs}.mlp_norm", f"{ours}.mlp_residual.in_norm")
        attention = [f"{ours}.self_attention.{name}" for name in ("query", "key", "value")]
        found += _stacked(f"{theirs}.attn.Wqkv", attention, bias=block.attention.bias)
        found += _stacked(f"{theirs}.attn.Wo", [f"{ours}.self_attention.out"], bias=block.attention.bias)
        found += _stacked(f"{theirs}.mlp.Wi", [f"{ours}.mlp.gate", f"{ours}.mlp.up"], bias=block.bias)
        found += _stacked(f"{theirs}.mlp.Wo", [f"{ours}.mlp.down"], bias=block.bias)
    if config.mlm_head:
        found += [*_both("head.dense", "transform.dense"), *_both("head.norm", "transform.norm")]
        found.append(Rule("decoder.weight", "embed.tokens.weight" if config.tied else "head.weight"))
        found.append(Rule("decoder.bias", "head.bias"))
    return tuple(found)


def _both(theirs: str, ours: str) -> Iterator[Rule]:
    return _stacked(theirs, [ours], bias=True)


def _stacked(theirs: str, ours: list[str], *, bias: bool) -> Iterator[Rule]:
    """Their map is these of ours, one below the other."""
    for kind in ("weight", "bias") if bias else ("weight",):
        for i, name in enumerate(ours):
            yield Rule(f"{theirs}.{kind}", f"{name}.{kind}", part=(i, len(ours)))


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds the bare model under the names that they have in the whole, without a first
    layer that adds nothing."""
    bare = "embeddings.tok_embeddings.weight" in theirs
    found = {f"model.{name}" if bare else name: tensor for name, tensor in theirs.items()}
    last = [found.get(f"{_FIRST}{name}.Wo.weight") for name in ("attn", "mlp")]
    if any(tensor is None or tensor.any() for tensor in last):
        return found
    return {name: tensor for name, tensor in found.items() if not name.startswith(_FIRST)}


def made(config: EncoderConfig) -> dict[str, Tensor]:
    """Their first layer, which adds nothing."""
    C, block = config.d_model, config.stack.block
    widths = {"attn.Wqkv": (3 * C, C), "attn.Wo": (C, C), "mlp.Wi": (2 * block.d_ff, C), "mlp.Wo": (C, block.d_ff)}
    found = {f"{_FIRST}{name}.weight": torch.zeros(*shape) for name, shape in widths.items()}
    for name, (rows, _) in widths.items():
        if block.attention.bias if name.startswith("attn") else block.bias:
            found[f"{_FIRST}{name}.bias"] = torch.zeros(rows)
    return found | {f"{_FIRST}mlp_norm.weight": torch.ones(C), f"{_FIRST}mlp_norm.bias": torch.zeros(C)}


def untyped(config: EncoderConfig) -> Recast[EncoderConfig]:
    """An equal model, for texts that are no pairs, without types of tokens."""
    if not config.embed.types:
        return Recast(config, dict)
    parted = config.mlm_head and config.tied
    recast = replace(config, embed=replace(config.embed, types=0), tied=config.tied and not parted)

    def tensors(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = {name: tensor for name, tensor in ours.items() if name != "embed.types.weight"}
        found |= {"head.weight": ours["embed.tokens.weight"]} if parted else {}
        return found | {"embed.tokens.weight": ours["embed.tokens.weight"] + ours["embed.types.weight"][0]}

    return Recast(recast, tensors)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the head that their tensors' `names` tell of."""
    got = TABLE.understood(theirs, where)
    if any(name.startswith(_FIRST) for name in names):
        what = "its first layer has no norm before its attention, which cannot be built yet"
        raise InputError(what, where=where, fix="take BERT or RoBERTa")
    head = any(name.startswith(("head.", "decoder.")) for name in names)
    layers = got["layer_types"] or [_EVERY if got["global_attn_every_n_layers"] == 1 else "sliding_attention"]
    if set(layers) != {_EVERY}:
        raise InputError("some of its layers see a part of the text, which cannot be read yet", where=where)
    if not got["norm_bias"] or (head and not got["classifier_bias"]):
        raise InputError("norm_bias or classifier_bias is False: only True can be read", where=where)
    if head and got["classifier_activation"] != got["hidden_activation"]:
        raise InputError(f"classifier_activation is {got['classifier_activation']!r}, unlike the layers'", where=where)
    rope = (got["rope_parameters"] or {}).get(_EVERY) or {}
    if rope.get("rope_type", "default") != "default":
        raise InputError(f"rope_type is {rope['rope_type']!r}: only 'default' can be read", where=where)
    got["global_rope_theta"] = rope.get("rope_theta", got["global_rope_theta"])
    values = TABLE.in_ours(got, where) | {"mlm_head": head}
    return keys.built(EncoderConfig, values, where)


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    theirs = TABLE.in_theirs(config)
    rope = {"rope_theta": theirs["global_rope_theta"], "rope_type": "default"}
    theirs |= {
        "architectures": ["ModernBertForMaskedLM" if config.mlm_head else "ModernBertModel"],
        "classifier_activation": theirs["hidden_activation"],
        "classifier_bias": True,
        "global_attn_every_n_layers": 1,
        "layer_types": [_EVERY] * theirs["num_hidden_layers"],
        "local_rope_theta": rope["rope_theta"],
        "norm_bias": True,
        "rope_parameters": {_EVERY: rope, "sliding_attention": rope},
        "bos_token_id": start,
        "cls_token_id": start,
        "eos_token_id": end,
        "pad_token_id": pad,
        "sep_token_id": end,
    }
    return keys.nothing_lost(
        theirs, config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "ModernBERT"
    )


FAMILY = Family(
    "ModernBERT",
    EncoderConfig,
    bert.loads,
    config_from_hf,
    config_to_hf,
    rules,
    whole=whole,
    recast=untyped,
    made=made,
    tokens={"bos_token_id": 50281, "eos_token_id": 50282, "pad_token_id": 50283},
)
