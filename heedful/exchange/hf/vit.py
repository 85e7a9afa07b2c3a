"""ViT (Dosovitskiy et al. 2021) and DeiT (Touvron et al. 2021) that tell classes, as the Hub holds them.

DeiT is read with its teacher's token and both heads (DeiTForImageClassificationWithTeacher). The Hub calls DeiT
without them "vit".
"""

from collections.abc import Sequence
from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import (
    EVERYWHERE,
    activation,
    activation_to_hf,
    labels_to_hf,
    n_labels,
    nothing_lost,
    understood,
)
from heedful.exchange.hf.rules import Rule
from heedful.models.vit import ViTConfig

# What they leave out of a file is what these say (their ViTConfig and DeiTConfig).
USED: dict[str, Any] = {
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 768,
    "id2label": None,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "model_type": "vit",
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 16,
}

# Another value would make another model.
FIXED: dict[str, Any] = {
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "qkv_bias": True,
}

# Of models that fill in pixels, or that end in a pooler.
IRRELEVANT = EVERYWHERE | {"encoder_stride", "initializer_range", "pooler_act", "pooler_output_size"}

_BLOCK = {
    "attention.attention.query": "self_attention.query",
    "attention.attention.key": "self_attention.key",
    "attention.attention.value": "self_attention.value",
    "attention.output.dense": "self_attention.out",
    "layernorm_before": "self_residual.in_norm",
    "layernorm_after": "mlp_residual.in_norm",
    "intermediate.dense": "mlp.up",
    "output.dense": "mlp.down",
}


def rules(config: ViTConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: with a teacher it is DeiT's."""
    name = "deit" if config.teacher else "vit"
    heads = {"classifier": "head"}
    teacher: tuple[Rule, ...] = ()
    if config.teacher:
        heads = {"cls_classifier": "head", "distillation_classifier": "teacher_head"}
        teacher = (Rule("deit.embeddings.distillation_token", "teacher", "token"),)
    maps = {
        **{f"{name}.encoder.layer.{{i}}.{theirs}": f"stack.blocks.{{i}}.{ours}" for theirs, ours in _BLOCK.items()},
        f"{name}.embeddings.patch_embeddings.projection": "patches.map",
        f"{name}.layernorm": "stack.norm",
        **(heads if config.n_classes else {}),
    }
    return (
        *(Rule(f"{theirs}.{kind}", f"{ours}.{kind}") for theirs, ours in maps.items() for kind in ("weight", "bias")),
        Rule(f"{name}.embeddings.cls_token", "cls", "token"),
        Rule(f"{name}.embeddings.position_embeddings", "position_embeddings.table.weight", "row"),
        *teacher,
    )


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> ViTConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    if got["model_type"] not in ("vit", "deit"):
        raise InputError(f"model_type is {got['model_type']!r}: only 'vit' and 'deit' can be read", where=where)
    size = got["image_size"]
    block = {
        "attention": {"n_heads": got["num_attention_heads"], "dropout": got["attention_probs_dropout_prob"]},
        "d_ff": got["intermediate_size"],
        "order": "pre",
        "norm_eps": got["layer_norm_eps"],
        "activation": activation(got, "hidden_act", where=where),
        "dropout": got["hidden_dropout_prob"],
    }
    ours = {
        "d_model": got["hidden_size"],
        "patches": {
            "size": size if isinstance(size, list | tuple) else [size, size],
            "patch": got["patch_size"],
            "channels": got["num_channels"],
        },
        "stack": {"n_layers": got["num_hidden_layers"], "block": block, "final_norm": True},
        "n_classes": n_labels(got, where=where),
        "teacher": got["model_type"] == "deit",
        "dropout": got["hidden_dropout_prob"],
    }
    return from_json(ViTConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: ViTConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from; `labels` are the names of the classes. Raises InputError
    for what ViT and DeiT have no words for."""
    block, (rows, columns) = config.stack.block, config.patches.size
    theirs = (
        FIXED
        | labels_to_hf(labels)
        | {
            "architectures": [
                "DeiTForImageClassificationWithTeacher" if config.teacher else "ViTForImageClassification"
            ],
            "attention_probs_dropout_prob": block.attention.dropout,
            "hidden_act": activation_to_hf(block.activation),
            "hidden_dropout_prob": config.dropout,
            "hidden_size": config.d_model,
            "image_size": rows if rows == columns else [rows, columns],
            "intermediate_size": block.d_ff,
            "layer_norm_eps": block.norm_eps,
            "model_type": "deit" if config.teacher else "vit",
            "num_attention_heads": block.attention.n_heads,
            "num_channels": config.patches.channels,
            "num_hidden_layers": config.stack.n_layers,
            "patch_size": config.patches.patch,
        }
    )
    nothing_lost(config, config_from_hf(theirs), "ViT")
    return theirs
