"""CLIP (Radford et al. 2021), as the Hub holds it: both towers, each with a configuration of its own.

Where their text tower says that a text ends with token 2, it means the highest token: so the first files were written,
with the tokenizer's own last token behind.
"""

from typing import Any

from heedful.core.block import StackConfig
from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import (
    EVERYWHERE,
    FIXED_INSIDE,
    INSIDE,
    activation,
    activation_to_hf,
    nothing_lost,
    understood,
)
from heedful.exchange.hf.rules import Rule
from heedful.models.clip import CLIPConfig

MEANS_HIGHEST = 2

# What they leave out of a file is what these say (their CLIPConfig, CLIPTextConfig and CLIPVisionConfig).
USED: dict[str, Any] = {
    "logit_scale_init_value": 2.6592,
    "projection_dim": 512,
    "text_config": {},
    "text_config_dict": None,
    "vision_config": {},
    "vision_config_dict": None,
}
USED_TEXT: dict[str, Any] = {
    "attention_dropout": 0.0,
    "eos_token_id": 49407,
    "hidden_act": "quick_gelu",
    "hidden_size": 512,
    "intermediate_size": 2048,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 77,
    "num_attention_heads": 8,
    "num_hidden_layers": 12,
    "vocab_size": 49408,
}
USED_VISION: dict[str, Any] = {
    "attention_dropout": 0.0,
    "hidden_act": "quick_gelu",
    "hidden_size": 768,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-5,
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 32,
}

# Another value would make another model, or another training.
FIXED: dict[str, Any] = {"chunk_size_feed_forward": 0, "is_encoder_decoder": False, "model_type": "clip"}
FIXED_TOWER = FIXED_INSIDE | {"dropout": 0.0}
FIXED_TEXT = FIXED_TOWER | {"model_type": "clip_text_model"}
FIXED_VISION = FIXED_TOWER | {"model_type": "clip_vision_model"}

IRRELEVANT = EVERYWHERE | {"initializer_factor"}
IRRELEVANT_TOWER = INSIDE | {"initializer_factor", "projection_dim"}  # the width of what only CLIP projects

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
    **{
        f"{theirs}.encoder.layers.{{i}}.{part}": f"{ours}.stack.blocks.{{i}}.{own}"
        for theirs, ours in (("text_model", "text"), ("vision_model", "image"))
        for part, own in _BLOCK.items()
    },
    "text_model.final_layer_norm": "text.stack.norm",
    "vision_model.pre_layrnorm": "image.input_norm",
    "vision_model.post_layernorm": "image.stack.norm",
}
RULES = (
    *(Rule(f"{theirs}.{kind}", f"{ours}.{kind}") for theirs, ours in _MAPS.items() for kind in ("weight", "bias")),
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


def rules(config: CLIPConfig) -> tuple[Rule, ...]:
    return RULES


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> CLIPConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    text = _tower(got, "text_config", USED_TEXT, FIXED_TEXT, where)
    image = _tower(got, "vision_config", USED_VISION, FIXED_VISION, where)
    size, vocab_size, end = image["image_size"], text["vocab_size"], text["eos_token_id"]
    if not isinstance(vocab_size, int) or not isinstance(end, int):
        raise InputError(f"text_config: eos_token_id {end!r} of vocab_size {vocab_size!r}", where=where)
    ours = {
        "d_common": got["projection_dim"],
        "image": {
            "d_model": image["hidden_size"],
            "patches": {
                "size": size if isinstance(size, list | tuple) else [size, size],
                "patch": image["patch_size"],
                "channels": image["num_channels"],
                "bias": False,
            },
            "stack": _stack(image, f"{where}: vision_config"),
            "n_classes": 0,
            "input_norm": True,
        },
        "text": {
            "d_model": text["hidden_size"],
            "embed": {
                "vocab_size": vocab_size,
                "scaled": False,
                "position_embeddings": "learned",
                "context_length": text["max_position_embeddings"],
            },
            "stack": _stack(text, f"{where}: text_config"),
            "end": vocab_size - 1 if end == MEANS_HIGHEST else end,
        },
        "log_scale": got["logit_scale_init_value"],
    }
    return from_json(CLIPConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: CLIPConfig, *, start: int, pad: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, complete with the special tokens' numbers. Raises InputError
    for what CLIP has no words for."""
    text, image = config.text, config.image
    rows, columns = image.patches.size
    theirs = FIXED | {
        "architectures": ["CLIPModel"],
        "logit_scale_init_value": config.log_scale,
        "projection_dim": config.d_common,
        "text_config": FIXED_TEXT
        | _stack_to_hf(text.d_model, text.stack)
        | {
            "eos_token_id": text.end,
            "max_position_embeddings": text.embed.context_length,
            "vocab_size": text.embed.vocab_size,
            "bos_token_id": start,
            "pad_token_id": pad,
            "projection_dim": config.d_common,
        },
        "vision_config": FIXED_VISION
        | _stack_to_hf(image.d_model, image.stack)
        | {
            "image_size": rows if rows == columns else [rows, columns],
            "num_channels": image.patches.channels,
            "patch_size": image.patches.patch,
            "projection_dim": config.d_common,
        },
    }
    nothing_lost(config, config_from_hf(theirs), "CLIP")
    return theirs


def _tower(got: dict[str, Any], side: str, used: dict[str, Any], fixed: dict[str, Any], where: str) -> dict[str, Any]:
    """The keys of one tower. Old files say some of them twice, the second time under `side`_dict."""
    own, again = got[side] or {}, got[f"{side}_dict"] or {}
    if not isinstance(own, dict) or not isinstance(again, dict):
        raise InputError(f"{side} is {own!r}, {side}_dict {again!r}: expected objects", where=where)
    for key in again:
        if key in own and own[key] != again[key]:
            raise InputError(f"{side} says {key} = {own[key]!r}, {side}_dict {again[key]!r}", where=where)
    whole = {"model_type": fixed["model_type"], **own, **again}
    return understood(whole, used=used, fixed=fixed, irrelevant=IRRELEVANT_TOWER, where=f"{where}: {side}")


def _stack(got: dict[str, Any], where: str) -> dict[str, Any]:
    block = {
        "attention": {"n_heads": got["num_attention_heads"], "dropout": got["attention_dropout"]},
        "d_ff": got["intermediate_size"],
        "order": "pre",
        "norm_eps": got["layer_norm_eps"],
        "activation": activation(got, "hidden_act", where=where),
    }
    return {"n_layers": got["num_hidden_layers"], "block": block, "final_norm": True}


def _stack_to_hf(d_model: int, stack: StackConfig) -> dict[str, Any]:
    block = stack.block
    return {
        "attention_dropout": block.attention.dropout,
        "hidden_act": activation_to_hf(block.activation),
        "hidden_size": d_model,
        "intermediate_size": block.d_ff,
        "layer_norm_eps": block.norm_eps,
        "num_attention_heads": block.attention.n_heads,
        "num_hidden_layers": stack.n_layers,
    }
