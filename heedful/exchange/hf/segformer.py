"""SegFormer (Xie et al. 2021) that tells the class of every place, as the Hub holds it."""

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
from heedful.models.pyramid import PyramidConfig

# What they leave out of a file is what these say (their SegformerConfig).
USED: dict[str, Any] = {
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout_prob": 0.1,
    "decoder_hidden_size": 256,
    "depths": [2, 2, 2, 2],
    "drop_path_rate": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_sizes": [32, 64, 160, 256],
    "id2label": None,
    "mlp_ratios": [4, 4, 4, 4],
    "num_attention_heads": [1, 2, 5, 8],
    "num_channels": 3,
    "num_encoder_blocks": 4,
    "patch_sizes": [7, 3, 3, 3],
    "sr_ratios": [8, 4, 2, 1],
    "strides": [4, 2, 2, 2],
}

# Another value would make another model.
FIXED: dict[str, Any] = {
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "model_type": "segformer",
    "reshape_last_stage": True,
}

IRRELEVANT = EVERYWHERE | {
    "downsampling_rates",  # the products of the strides
    "image_size",  # pictures may have any
    "initializer_range",
    "layer_norm_eps",  # never read there: all norms have 1e-5
    "semantic_loss_ignore_index",
}

_STAGES = {  # of a stage in both names
    "depths": "n_layers",
    "hidden_sizes": "d_model",
    "num_attention_heads": "n_heads",
    "patch_sizes": "patch",
    "sr_ratios": "shorten",
    "strides": "stride",
}
_BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    "attention.output.dense": "self_attention.out",
    "layer_norm_1": "self_residual.in_norm",
    "layer_norm_2": "mlp_residual.in_norm",
    "mlp.dense1": "mlp.up",
    "mlp.dwconv.dwconv": "mlp.neighbours",
    "mlp.dense2": "mlp.down",
}
_SHORTEN = {"attention.self.sr": "shorten.map", "attention.self.layer_norm": "shorten.norm"}


def rules(config: PyramidConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: how many stages there are, and which shorten their keys, differs."""
    maps = {"decode_head.classifier": "head.out", "decode_head.batch_norm": "head.norm"}
    for i, stage in enumerate(config.stages):
        maps |= {
            f"segformer.encoder.patch_embeddings.{i}.proj": f"stages.{i}.patches",
            f"segformer.encoder.patch_embeddings.{i}.layer_norm": f"stages.{i}.patches_norm",
            f"segformer.encoder.layer_norm.{i}": f"stages.{i}.norm",
            f"decode_head.linear_c.{i}.proj": f"head.stages.{i}",
        }
        for theirs, ours in (_BLOCK | _SHORTEN if stage.shorten > 1 else _BLOCK).items():
            maps[f"segformer.encoder.block.{i}.{{i}}.{theirs}"] = f"stages.{i}.blocks.{{i}}.{ours}"
    return (
        *(Rule(f"{theirs}.{kind}", f"{ours}.{kind}") for theirs, ours in maps.items() for kind in ("weight", "bias")),
        Rule("decode_head.linear_fuse.weight", "head.fuse.weight"),
        Rule("decode_head.batch_norm.running_mean", "head.norm.mean"),
        Rule("decode_head.batch_norm.running_var", "head.norm.variance"),
        Rule("decode_head.batch_norm.num_batches_tracked", None),  # our statistics stand still
    )


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> PyramidConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    lists = {key: got[key] for key in (*_STAGES, "mlp_ratios")}
    for key, values in lists.items():
        if not isinstance(values, list | tuple) or len(values) != got["num_encoder_blocks"]:
            raise InputError(f"{key} is {values!r}, num_encoder_blocks {got['num_encoder_blocks']!r}", where=where)
    stages = []
    for i, (width, ratio) in enumerate(zip(got["hidden_sizes"], got["mlp_ratios"], strict=True)):
        if not isinstance(width, int) or not isinstance(ratio, int):
            raise InputError(f"hidden_sizes {width!r} and mlp_ratios {ratio!r} of stage {i}", where=where)
        stages.append({ours: got[theirs][i] for theirs, ours in _STAGES.items()} | {"d_ff": width * ratio})
    ours = {
        "stages": stages,
        "d_head": got["decoder_hidden_size"],
        "n_classes": n_labels(got, where=where),
        "channels": got["num_channels"],
        "activation": activation(got, "hidden_act", where=where),
        "head_norm": "batch",
        "dropout": got["hidden_dropout_prob"],
        "attention_dropout": got["attention_probs_dropout_prob"],
        "head_dropout": got["classifier_dropout_prob"],
        "drop_path": got["drop_path_rate"],
    }
    return from_json(PyramidConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: PyramidConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from; `labels` are the names of the classes. Raises InputError
    for what SegFormer has no words for."""
    stages = config.stages
    theirs = (
        FIXED
        | labels_to_hf(labels)
        | {their: [getattr(stage, our) for stage in stages] for their, our in _STAGES.items()}
        | {
            "architectures": ["SegformerForSemanticSegmentation"],
            "attention_probs_dropout_prob": config.attention_dropout,
            "classifier_dropout_prob": config.head_dropout,
            "decoder_hidden_size": config.d_head,
            "drop_path_rate": config.drop_path,
            "hidden_act": activation_to_hf(config.activation),
            "hidden_dropout_prob": config.dropout,
            "mlp_ratios": [stage.d_ff // stage.d_model for stage in stages],
            "num_channels": config.channels,
            "num_encoder_blocks": len(stages),
        }
    )
    nothing_lost(config, config_from_hf(theirs), "SegFormer")
    return theirs
