"""Swin Transformer (Liu et al. 2021) that tells classes, as the Hub holds it."""

from collections.abc import Collection, Sequence
from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf import keys, vit
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import LABELS, PICTURE, WORDLESS, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.vision_presets import ViTSize, vit_config
from heedful.models.vit import ViTConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their SwinConfig).
    keys={
        "attention_probs_dropout_prob": Key(0.0),
        "depths": Key([2, 2, 6, 2]),  # lists have an item for each stage
        "embed_dim": Key(96, "d_model"),
        "hidden_dropout_prob": Key(0.0, "dropout"),
        "id2label": Key(None, "n_classes", LABELS),
        "image_size": Key(224, "patches.size", PICTURE),
        "num_channels": Key(3, "patches.channels"),
        "num_heads": Key([3, 6, 12, 24]),
        "patch_size": Key(4, "patches.patch"),
        "window_size": Key(7),
    },
    # Another value would make another model.
    fixed=keys.FIXED
    | {
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "mlp_ratio": 4.0,
        "model_type": "swin",
        "qkv_bias": True,
        "use_absolute_embeddings": False,
    },
    irrelevant=WORDLESS
    | {
        "drop_path_rate",  # of a training
        "encoder_stride",  # of models that fill in pixels
        "hidden_size",  # the width of the last stage
        "num_layers",  # the number of stages
        "out_features",  # of backbones
        "out_indices",
        "path_norm",  # never read there
        "stage_names",
    },
)
_BLOCK = {name.replace("attention.attention", "attention.self"): ours for name, ours in vit.BLOCK.items()}


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> ViTConfig:
    """Raises InputError for tensors, by their `names`, of a model that tells no classes too."""
    if names and not any(name.startswith("classifier.") for name in names):
        fix = "take one that was trained to tell classes (SwinForImageClassification)"
        raise InputError("a Swin Transformer without a head that tells classes", where=where, fix=fix)
    got = TABLE.understood(theirs, where)
    ours, depths, heads = TABLE.in_ours(got, where), got["depths"], got["num_heads"]
    if not depths or not heads or [*heads] != [heads[0] << i for i in range(len(depths))]:
        what = f"num_heads is {heads!r} for depths {depths!r}"
        raise InputError(what, where=where, fix="take one whose stages have twice the heads of the one before")
    if got["attention_probs_dropout_prob"] != ours["dropout"]:
        what = f"attention_probs_dropout_prob is not hidden_dropout_prob, {ours['dropout']!r}"
        raise InputError(what, where=where)
    row = {
        "d_model": ours["d_model"],
        "n_layers": depths[0],
        "n_heads": heads[0],
        "patch": ours["patches.patch"],
        "channels": ours["patches.channels"],
        "n_classes": ours["n_classes"],
        "readout": "mean",
        "position_embeddings": "none",
        "window": got["window_size"],
        "depths": [*depths[1:]],
        "dropout": ours["dropout"],
    }
    return vit_config(from_json(ViTSize, row, where), size=tuple(ours["patches.size"]))


def rules(config: ViTConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: how many stages there are differs."""
    maps = {"swin.embeddings.patch_embeddings.projection": "patches.map", "swin.embeddings.norm": "input_norm"}
    maps |= {"classifier": "head"} if config.n_classes else {}
    others = list[Rule]()
    stages = ["stack", *(f"stages.{i}" for i in range(len(config.stages)))]
    for i, ours in enumerate(stages):
        block = f"swin.encoder.layers.{i}.blocks.{{i}}"
        maps |= inside(block, f"{ours}.blocks.{{i}}", _BLOCK)
        table = f"{block}.attention.self.relative_position"
        others.append(Rule(f"{table}_bias_table", f"{ours}.blocks.{{i}}.offsets.weight"))
        others.append(Rule(f"{table}_index", None))  # which old files hold
    for i in range(len(config.stages)):
        maps[f"swin.encoder.layers.{i}.downsample.norm"] = f"merges.{i}.norm"
        others.append(Rule(f"swin.encoder.layers.{i}.downsample.reduction.weight", f"merges.{i}.map.weight"))
    return (*modules(maps | {"swin.layernorm": f"{stages[-1]}.norm"}), *others)


def config_to_hf(config: ViTConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """`labels` are the names of the classes."""
    stacks = (config.stack, *config.stages)
    theirs = TABLE.in_theirs(config) | keys.labels_to_hf(labels)
    theirs |= {
        "architectures": ["SwinForImageClassification"],
        "attention_probs_dropout_prob": config.dropout,
        "depths": [stack.n_layers for stack in stacks],
        "num_heads": [stack.block.attention.n_heads for stack in stacks],
        "window_size": config.stack.layers[0].window,
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Swin")


FAMILY = Family(
    "Swin",
    ViTConfig,
    always("AutoModelForImageClassification"),
    config_from_hf,
    config_to_hf,
    rules,
    suits=lambda config: bool(config.stages),
)
