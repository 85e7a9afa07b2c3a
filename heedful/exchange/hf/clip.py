"""CLIP (Radford et al. 2021), as the Hub holds it: both towers, each with a configuration of its own.

Where their text tower says that a text ends with token 2, it means the highest token: so the first files were written,
with the tokenizer's own last token behind.
"""

from collections.abc import Collection
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, PICTURE, WORDLESS, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.clip import CLIPConfig

MEANS_HIGHEST = 2


def _tower_keys(ours: str, *, d_model: int, n_heads: int) -> dict[str, Key]:
    """What both towers have."""
    return {
        "attention_dropout": Key(0.0, f"{ours}.stack.block.attention.dropout"),
        "hidden_act": Key("quick_gelu", f"{ours}.stack.block.activation", ACTIVATION),
        "hidden_size": Key(d_model, f"{ours}.d_model"),
        "intermediate_size": Key(4 * d_model, f"{ours}.stack.block.d_ff"),
        "layer_norm_eps": Key(1e-5, f"{ours}.stack.block.norm_eps"),
        "num_attention_heads": Key(n_heads, f"{ours}.stack.block.attention.n_heads"),
        "num_hidden_layers": Key(12, f"{ours}.stack.n_layers"),
    }


# Their CLIPConfig, CLIPTextConfig and CLIPVisionConfig.
TABLE = KeyTable(
    keys={
        "logit_scale_init_value": Key(2.6592, "log_scale"),
        "projection_dim": Key(512, "d_common"),
        "text_config": Key({}),
        "text_config_dict": Key(None),
        "vision_config": Key({}),
        "vision_config_dict": Key(None),
    },
    always={
        "image.patches.bias": False,
        "image.n_classes": 0,
        "image.input_norm": True,
        "text.embed.scaled": False,
        "text.embed.position_embeddings": "learned",
        "{image,text}.stack.block.order": "pre",
        "{image,text}.stack.final_norm": True,
    },
    fixed={"chunk_size_feed_forward": 0, "is_encoder_decoder": False, "model_type": "clip"},
    irrelevant=WORDLESS | {"initializer_factor"},
)
_IRRELEVANT = WORDLESS | {"initializer_factor", "projection_dim"}  # the width of what only CLIP projects
TEXT_TABLE = KeyTable(
    keys=_tower_keys("text", d_model=512, n_heads=8)
    | {
        "eos_token_id": Key(49407, "text.end"),
        "max_position_embeddings": Key(77, "text.embed.context_length"),
        "vocab_size": Key(49408, "text.embed.vocab_size"),
    },
    fixed=keys.FIXED | {"dropout": 0.0, "model_type": "clip_text_model"},
    irrelevant=_IRRELEVANT,
)
VISION_TABLE = KeyTable(
    keys=_tower_keys("image", d_model=768, n_heads=12)
    | {
        "image_size": Key(224, "image.patches.size", PICTURE),
        "num_channels": Key(3, "image.patches.channels"),
        "patch_size": Key(32, "image.patches.patch"),
    },
    fixed=keys.FIXED | {"dropout": 0.0, "model_type": "clip_vision_model"},
    irrelevant=_IRRELEVANT,
)

_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "layer_norm1": "self_residual.in_norm",
    "layer_norm2": "mlp_residual.in_norm",
    "mlp.fc1": "mlp.up",
    "mlp.fc2": "mlp.down",
}
_MAPS = {
    **inside("text_model.encoder.layers.{i}", "text.stack.blocks.{i}", _BLOCK),
    **inside("vision_model.encoder.layers.{i}", "image.stack.blocks.{i}", _BLOCK),
    "text_model.final_layer_norm": "text.stack.norm",
    "vision_model.pre_layrnorm": "image.input_norm",
    "vision_model.post_layernorm": "image.stack.norm",
}
RULES = (
    *modules(_MAPS),
    Rule("text_model.embeddings.token_embedding.weight", "text.embed.tokens.weight"),
    Rule("text_model.embeddings.position_embedding.weight", "text.embed.position_embeddings.table.weight"),
    Rule("text_model.embeddings.position_ids", None),  # 0, 1, 2 and so on, which old files hold
    Rule("vision_model.embeddings.position_ids", None),
    Rule("vision_model.embeddings.class_embedding", "image.cls"),
    Rule("vision_model.embeddings.patch_embedding.weight", "image.patches.map.weight"),
    Rule("vision_model.embeddings.position_embedding.weight", "image.position_embeddings.table.weight"),
    Rule("text_projection.weight", "text_out.weight"),
    Rule("visual_projection.weight", "image_out.weight"),
    Rule("logit_scale", "log_scale"),
)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> CLIPConfig:
    got = TABLE.understood(theirs, where)
    text = _tower(got, "text_config", TEXT_TABLE, where)
    image = _tower(got, "vision_config", VISION_TABLE, where)
    vocab_size, end = text["vocab_size"], text["eos_token_id"]
    if not isinstance(vocab_size, int) or not isinstance(end, int):
        raise InputError(f"text_config: eos_token_id {end!r} of vocab_size {vocab_size!r}", where=where)
    if end == MEANS_HIGHEST:
        text["eos_token_id"] = vocab_size - 1
    values = TABLE.in_ours(got, where)
    values |= VISION_TABLE.in_ours(image, f"{where}: vision_config")
    values |= TEXT_TABLE.in_ours(text, f"{where}: text_config")
    return keys.built(CLIPConfig, values, where)


def config_to_hf(config: CLIPConfig, *, start: int, pad: int) -> dict[str, Any]:
    text = {"bos_token_id": start, "pad_token_id": pad, "projection_dim": config.d_common}
    theirs = TABLE.in_theirs(config)
    theirs |= {
        "architectures": ["CLIPModel"],
        "text_config": TEXT_TABLE.in_theirs(config) | text,
        "vision_config": VISION_TABLE.in_theirs(config) | {"projection_dim": config.d_common},
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "CLIP")


def _tower(got: dict[str, Any], side: str, table: KeyTable, where: str) -> dict[str, Any]:
    """The keys of one tower. Old files say some of them twice, the second time under `side`_dict."""
    own, again = got[side] or {}, got[f"{side}_dict"] or {}
    if not isinstance(own, dict) or not isinstance(again, dict):
        raise InputError(f"{side} is {own!r}, {side}_dict {again!r}: expected objects", where=where)
    for key in again:
        if key in own and own[key] != again[key]:
            raise InputError(f"{side} says {key} = {own[key]!r}, {side}_dict {again[key]!r}", where=where)
    whole = {"model_type": table.fixed["model_type"], **own, **again}
    return table.understood(whole, f"{where}: {side}")


FAMILY = Family("CLIP", CLIPConfig, always("CLIPModel"), config_from_hf, config_to_hf, always(RULES))
