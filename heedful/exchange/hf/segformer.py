"""SegFormer (Xie et al. 2021) that tells the class of every place, as the Hub holds it."""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, LABELS, WORDLESS, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.pyramid import PyramidConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their SegformerConfig).
    keys={
        "attention_probs_dropout_prob": Key(0.0, "attention_dropout"),
        "classifier_dropout_prob": Key(0.1, "head_dropout"),
        "decoder_hidden_size": Key(256, "d_head"),
        "depths": Key([2, 2, 2, 2]),  # lists have an item for each stage
        "drop_path_rate": Key(0.1, "drop_path"),
        "hidden_act": Key("gelu", "activation", ACTIVATION),
        "hidden_dropout_prob": Key(0.0, "dropout"),
        "hidden_sizes": Key([32, 64, 160, 256]),
        "id2label": Key(None, "n_classes", LABELS),
        "mlp_ratios": Key([4, 4, 4, 4]),
        "num_attention_heads": Key([1, 2, 5, 8]),
        "num_channels": Key(3, "channels"),
        "num_encoder_blocks": Key(4),
        "patch_sizes": Key([7, 3, 3, 3]),
        "sr_ratios": Key([8, 4, 2, 1]),
        "strides": Key([4, 2, 2, 2]),
    },
    # Another value would make another model.
    fixed=keys.FIXED | {"model_type": "segformer", "reshape_last_stage": True},
    irrelevant=WORDLESS
    | {
        "downsampling_rates",  # the products of the strides
        "image_size",  # pictures may have any
        "layer_norm_eps",  # never read there: all norms have 1e-5
        "semantic_loss_ignore_index",
    },
)

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
_COUNT = "decode_head.batch_norm.num_batches_tracked"
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
        block = _BLOCK | _SHORTEN if stage.shorten > 1 else _BLOCK
        maps |= inside(f"segformer.encoder.block.{i}.{{i}}", f"stages.{i}.blocks.{{i}}", block)
    return (
        *modules(maps),
        Rule("decode_head.linear_fuse.weight", "head.fuse.weight"),
        Rule("decode_head.batch_norm.running_mean", "head.norm.mean"),
        Rule("decode_head.batch_norm.running_var", "head.norm.variance"),
        Rule(_COUNT, None),  # our statistics stand still
    )


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> PyramidConfig:
    got = TABLE.understood(theirs, where)
    values = {"stages": _stages(got, where), "head_norm": "batch"}
    return keys.built(PyramidConfig, values | TABLE.in_ours(got, where), where)


def made(config: PyramidConfig) -> dict[str, Tensor]:
    """How many batches their norm has counted, without which they tell of a part that was not trained."""
    return {_COUNT: torch.tensor(0)}


def _stages(got: dict[str, Any], where: str) -> list[dict[str, Any]]:
    for key in (*_STAGES, "mlp_ratios"):
        if not isinstance(got[key], list | tuple) or len(got[key]) != got["num_encoder_blocks"]:
            raise InputError(f"{key} is {got[key]!r}, num_encoder_blocks {got['num_encoder_blocks']!r}", where=where)
    stages = []
    for i, (width, ratio) in enumerate(zip(got["hidden_sizes"], got["mlp_ratios"], strict=True)):
        if not isinstance(width, int) or not isinstance(ratio, int):
            raise InputError(f"hidden_sizes {width!r} and mlp_ratios {ratio!r} of stage {i}", where=where)
        stages.append({ours: got[theirs][i] for theirs, ours in _STAGES.items()} | {"d_ff": width * ratio})
    return stages


def config_to_hf(config: PyramidConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """`labels` are the names of the classes."""
    stages = config.stages
    theirs = TABLE.in_theirs(config) | keys.labels_to_hf(labels)
    theirs |= {their: [getattr(stage, our) for stage in stages] for their, our in _STAGES.items()}
    theirs |= {
        "architectures": ["SegformerForSemanticSegmentation"],
        "mlp_ratios": [stage.d_ff // stage.d_model for stage in stages],
        "num_encoder_blocks": len(stages),
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "SegFormer")


FAMILY = Family(
    "SegFormer",
    PyramidConfig,
    always("AutoModelForSemanticSegmentation"),
    config_from_hf,
    config_to_hf,
    rules,
    made=made,
)
