"""ModernBERT (Warner et al. 2024), as the Hub holds it: rotary positions, a gated MLP, and a norm of the embeddings.

Its first layer has no norm before its attention, which is a kind of block here (`UNNORMED`). An encoder whose first
layer has one follows a layer that adds nothing, with zeros for weights; on the way here such a layer is left out. Nor
does it have types of tokens: that of a text alone is added to the embeddings, which are then no longer the output
matrix. Its norms have no biases where a file does not say so, and ours then have zeros.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from heedful.core.block import StackConfig
from heedful.errors import InputError
from heedful.exchange.hf import bert, causal, keys
from heedful.exchange.hf.causal import FULL, SLIDING
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key, KeyTable
from heedful.exchange.hf.rules import Recast, Rule
from heedful.models.encoder import UNNORMED, EncoderConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their ModernBertConfig).
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
        "local_attention": Key(128),  # both sides of a token together
        "local_rope_theta": Key(10_000.0),
        "max_position_embeddings": Key(8192, "embed.context_length"),
        "mlp_bias": Key(False, "stack.block.bias"),
        "mlp_dropout": Key(0.0, "stack.block.mlp_dropout"),
        "norm_bias": Key(False),
        "norm_eps": Key(1e-5, "{stack.block,embed}.norm_eps"),
        "num_attention_heads": Key(12, "stack.block.attention.n_heads"),
        "num_hidden_layers": Key(22, "stack.n_layers"),
        "rope_parameters": Key(None),  # both thetas, as their fifth major version says it
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
        "layer_norm_eps",  # which the first files hold beside norm_eps, and nothing reads
        "reference_compile",
        "repad_logits_with_grad",
        "sparse_pred_ignore_index",
        "sparse_prediction",
    },
)

_FIRST = "model.layers.0."


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these layers and heads."""
    block = config.stack.block
    found = [*_both("model.embeddings.norm", "embed.norm"), *_both("model.final_norm", "stack.norm")]
    found.append(Rule("model.embeddings.tok_embeddings.weight", "embed.tokens.weight"))
    for i, layer in enumerate(config.stack.layers):
        theirs, ours = f"model.layers.{i + _added(config.stack)}", f"stack.blocks.{i}"
        if layer.kind != UNNORMED:
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


def _added(stack: StackConfig) -> int:
    """How many layers of theirs come before ours."""
    return 0 if stack.layers[:1] and stack.layers[0].kind == UNNORMED else 1


def _both(theirs: str, ours: str) -> Iterator[Rule]:
    return _stacked(theirs, [ours], bias=True)


def _stacked(theirs: str, ours: list[str], *, bias: bool) -> Iterator[Rule]:
    """Their map is these of ours, one below the other."""
    for kind in ("weight", "bias") if bias else ("weight",):
        for i, name in enumerate(ours):
            yield Rule(f"{theirs}.{kind}", f"{name}.{kind}", part=(i, len(ours)))


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds the bare model under the names that they have in the whole, without a first
    layer that adds nothing, and with zeros for the biases that norms and the head have not."""
    bare = "embeddings.tok_embeddings.weight" in theirs
    found = {f"model.{name}" if bare else name: tensor for name, tensor in theirs.items()}
    for kind in ("norm", "head.dense"):
        maps = [name.removesuffix("weight") for name in found if name.endswith(f"{kind}.weight")]
        if not any(f"{name}bias" in found for name in maps):
            found |= {f"{name}bias": torch.zeros(len(found[f"{name}weight"])) for name in maps}
    last = [found.get(f"{_FIRST}{name}.Wo.weight") for name in ("attn", "mlp")]
    if any(tensor is None or tensor.any() for tensor in last):
        return found
    return {name: tensor for name, tensor in found.items() if not name.startswith(_FIRST)}


def made(config: EncoderConfig) -> dict[str, Tensor]:
    """Their first layer, where it adds nothing."""
    if not _added(config.stack):
        return {}
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
    head = any(name.startswith(("head.", "decoder.")) for name in names)
    if head and got["classifier_activation"] != got["hidden_activation"]:
        raise InputError(f"classifier_activation is {got['classifier_activation']!r}, unlike the layers'", where=where)
    kinds = _kinds(got, where)
    rope, near_rope = causal.ropes_of_layers(got["rope_parameters"] or {}, where)
    real = any(name.startswith(_FIRST) for name in names)
    got["num_hidden_layers"] -= not real
    config = keys.built(EncoderConfig, TABLE.in_ours(got, where) | {"mlm_head": head}, where)
    context, block = config.embed.context_length, config.stack.block
    near = got["global_rope_theta"] if got["local_rope_theta"] is None else got["local_rope_theta"]
    whole = causal.turned(block, causal.rope_from_hf(rope, got["global_rope_theta"], context, where=where))
    blocks = {FULL: whole}
    if SLIDING in kinds:
        local = causal.turned(block, causal.rope_from_hf(near_rope, near, context, where=where))
        blocks[SLIDING] = causal.windowed_block(local, _window(got["local_attention"], where), where)
    layers = [blocks[kind] for kind in kinds]
    layers = [replace(layers[0], kind=UNNORMED), *layers[1:]] if real else layers[1:]
    return replace(config, stack=causal.layered(replace(config.stack, block=whole), layers))


def _kinds(got: Mapping[str, Any], where: str) -> Sequence[str]:
    """What each of their layers sees."""
    n, every = got["num_hidden_layers"], got["global_attn_every_n_layers"]
    if type(n) is not int or n < 1 or type(every) is not int or every < 1:
        what = f"num_hidden_layers {n!r} and global_attn_every_n_layers {every!r}, which are no numbers above 0"
        raise InputError(what, where=where)
    return causal.layer_types(got, _alternating(n, every), where)


def _alternating(n: int, every: int) -> list[str]:
    return [SLIDING if i % every else FULL for i in range(n)]


def _window(local: object, where: str) -> int:
    """Ours, which counts the token itself and one side."""
    if type(local) is not int or local < 0:
        raise InputError(f"local_attention is {local!r}, and some layers have one", where=where)
    return local // 2 + 1


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    theirs = TABLE.in_theirs(config)
    layers, added = config.stack.layers, _added(config.stack)
    kinds = [FULL] * added + [FULL if layer.window is None else SLIDING for layer in layers]
    rope = {kind: causal.rope_to_hf(config.stack.block.attention.position) for kind in (FULL, SLIDING)}
    rope |= {
        kind: causal.rope_to_hf(layer.attention.position) for kind, layer in zip(kinds[added:], layers, strict=True)
    }
    windows = [layer.window for layer in layers if layer.window is not None]
    theirs |= {"local_attention": 2 * (windows[0] - 1)} if windows else {}
    regular = [every for every in range(1, len(kinds) + 1) if _alternating(len(kinds), every) == kinds]
    theirs |= {"global_attn_every_n_layers": regular[0]} if regular else {}
    theirs |= {
        "architectures": ["ModernBertForMaskedLM" if config.mlm_head else "ModernBertModel"],
        "classifier_activation": theirs["hidden_activation"],
        "classifier_bias": True,
        "layer_types": kinds,
        "local_rope_theta": rope[SLIDING]["rope_theta"],
        "norm_bias": True,
        "num_hidden_layers": len(kinds),
        "rope_parameters": rope,
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
    made=made,
    recast=untyped,
    tokens={"bos_token_id": 50281, "eos_token_id": 50282, "pad_token_id": 50283},
)
