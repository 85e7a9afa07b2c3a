"""DETR (Carion et al. 2020) that finds things, as the Hub holds it: with a residual network under Hugging Face's own
names, which are written, or, in the files of the authors' weights, under those of timm."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import (
    EVERYWHERE,
    FIXED_INSIDE,
    INSIDE,
    activation,
    activation_to_hf,
    labels_to_hf,
    n_labels,
    nothing_lost,
    understood,
)
from heedful.exchange.hf.rules import Rule
from heedful.models.detr import DETRConfig
from heedful.models.resnet import ResNetConfig

# What they leave out of a file is what these say (their DetrConfig).
USED: dict[str, Any] = {
    "activation_function": "relu",
    "attention_dropout": 0.0,
    "backbone": "resnet50",
    "backbone_config": None,
    "backbone_kwargs": None,
    "d_model": 256,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layers": 6,
    "dropout": 0.1,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layers": 6,
    "id2label": None,
    "num_channels": 3,
    "num_queries": 100,
    "use_timm_backbone": True,
}
USED_RESNET: dict[str, Any] = {  # their ResNetConfig
    "depths": [3, 4, 6, 3],
    "embedding_size": 64,
    "hidden_sizes": [256, 512, 1024, 2048],
    "layer_type": "bottleneck",
    "num_channels": 3,
    "out_features": None,
    "out_indices": None,
}
USED_TIMM: dict[str, Any] = {"backbone": None, "num_channels": 3}  # their TimmBackboneConfig

# Another value would make another model, or another training.
FIXED: dict[str, Any] = {
    "activation_dropout": 0.0,
    # With it, their decoder hands each layer's norm on to the next layer, which the authors' does not.
    "auxiliary_loss": False,
    "chunk_size_feed_forward": 0,
    "decoder_layerdrop": 0.0,
    "dilation": False,
    "encoder_layerdrop": 0.0,
    "is_decoder": False,
    "is_encoder_decoder": True,
    "model_type": "detr",
    "position_embedding_type": "sine",
    "scale_embedding": False,
}
FIXED_RESNET: dict[str, Any] = {
    "downsample_in_bottleneck": False,
    "downsample_in_first_stage": False,
    "hidden_act": "relu",
    "model_type": "resnet",
}
FIXED_TIMM: dict[str, Any] = {
    "features_only": True,
    "model_type": "timm_backbone",
    "out_indices": [1, 2, 3, 4],
    "output_stride": None,
}

IRRELEVANT = EVERYWHERE | {
    # of the loss: heedful.training.detection has its own
    "bbox_cost",
    "bbox_loss_coefficient",
    "class_cost",
    "dice_loss_coefficient",
    "eos_coefficient",
    "giou_cost",
    "giou_loss_coefficient",
    "mask_loss_coefficient",
    # of what was never read
    "classifier_dropout",
    "init_std",
    "init_xavier_std",
    "max_position_embeddings",
    "num_hidden_layers",
    "use_pretrained_backbone",
}
IRRELEVANT_RESNET = INSIDE | {"stage_names"}
IRRELEVANT_TIMM = INSIDE | {"freeze_batch_norm_2d", "out_features", "use_pretrained_backbone"}

TIMM: dict[str, dict[str, Any]] = {
    "resnet18": {"kind": "basic", "widths": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    "resnet34": {"kind": "basic", "widths": [64, 128, 256, 512], "depths": [3, 4, 6, 3]},
    "resnet50": {"depths": [3, 4, 6, 3]},
    "resnet101": {"depths": [3, 4, 23, 3]},
    "resnet152": {"depths": [3, 8, 36, 3]},
}

_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.out",
    "self_attn_layer_norm": "self_residual.out_norm",
    "fc1": "mlp.up",
    "fc2": "mlp.down",
    "final_layer_norm": "mlp_residual.out_norm",
}
_CROSS = {
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.out",
    "encoder_attn_layer_norm": "cross_residual.out_norm",
}
_MAPS = {
    **{f"model.encoder.layers.{{i}}.{theirs}": f"encoder.blocks.{{i}}.{ours}" for theirs, ours in _BLOCK.items()},
    **{
        f"model.decoder.layers.{{i}}.{theirs}": f"decoder.blocks.{{i}}.{ours}"
        for theirs, ours in (_BLOCK | _CROSS).items()
    },
    "model.decoder.layernorm": "decoder.norm",
    "model.input_projection": "input",
    "class_labels_classifier": "class_head",
    "bbox_predictor.layers.{i}": "box_head.maps.{i}",
}
_NORM = {
    "weight": "weight",
    "bias": "bias",
    "running_mean": "mean",
    "running_var": "variance",
    "num_batches_tracked": None,  # statistics stand still
}


def rules(config: DETRConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration."""
    here = "model.backbone.conv_encoder.model"
    return (
        *(Rule(f"{theirs}.{kind}", f"{ours}.{kind}") for theirs, ours in _MAPS.items() for kind in ("weight", "bias")),
        Rule("model.query_position_embeddings.weight", "queries.weight"),
        *(
            rule
            for timm in (False, True)
            for conv, norm, ours in _resnet_names(config.backbone, timm=timm)
            for rule in (
                Rule(f"{here}.{conv}.weight", f"backbone.{ours}.conv.weight", written=not timm),
                *(
                    Rule(f"{here}.{norm}.{kind}", own and f"backbone.{ours}.norm.{own}", written=not timm)
                    for kind, own in _NORM.items()
                ),
            )
        ),
    )


def _resnet_names(config: ResNetConfig, *, timm: bool) -> Iterator[tuple[str, str, str]]:
    """Their name of each convolution and of the norm behind it, and ours of both."""
    if timm:
        yield "conv1", "bn1", "stem"
    else:
        yield "embedder.embedder.convolution", "embedder.embedder.normalization", "stem"
    for i in range(len(config.widths)):
        ours = f"stages.{i}.{{i}}"
        theirs = f"layer{i + 1}.{{i}}" if timm else f"encoder.stages.{i}.layers.{{i}}"
        for j in range(2 if config.kind == "basic" else 3):
            if timm:
                yield f"{theirs}.conv{j + 1}", f"{theirs}.bn{j + 1}", f"{ours}.maps.{j}"
            else:
                yield f"{theirs}.layer.{j}.convolution", f"{theirs}.layer.{j}.normalization", f"{ours}.maps.{j}"
        if i or config.stem != config.widths[0]:
            names = ("downsample.0", "downsample.1") if timm else ("shortcut.convolution", "shortcut.normalization")
            yield f"{theirs}.{names[0]}", f"{theirs}.{names[1]}", f"{ours}.shortcut"


def _named_by_timm(theirs: Mapping[str, Any]) -> bool:
    """Whether the residual network is told by timm's name of it."""
    backbone = theirs.get("backbone_config")
    return theirs.get("use_timm_backbone", True) if backbone is None else backbone["model_type"] == "timm_backbone"


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> DETRConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)

    def stack(side: str, *, looks_at_memory: bool) -> dict[str, Any]:
        attention = {
            "n_heads": got[f"{side}_attention_heads"],
            "dropout": got["attention_dropout"],
            "position": {"kind": "added"},
        }
        block = {
            "attention": attention,
            "cross": attention if looks_at_memory else None,
            "d_ff": got[f"{side}_ffn_dim"],
            "activation": activation(got, "activation_function", where=where),
            "dropout": got["dropout"],
        }
        return {"n_layers": got[f"{side}_layers"], "block": block, "final_norm": looks_at_memory}

    ours = {
        "d_model": got["d_model"],
        "backbone": _backbone(got, where),
        "encoder": stack("encoder", looks_at_memory=False),
        "decoder": stack("decoder", looks_at_memory=True),
        "n_queries": got["num_queries"],
        "n_classes": n_labels(got, where=where),
    }
    return from_json(DETRConfig, ours, where)  # which looks at the type of every value


def _backbone(got: dict[str, Any], where: str) -> dict[str, Any]:
    own, options = got["backbone_config"], got["backbone_kwargs"] or {}
    if own is not None and (not isinstance(own, dict) or "model_type" not in own):
        raise InputError(f"backbone_config is {own!r}", where=where)
    inside = f"{where}: backbone_config"
    if _named_by_timm(got):
        if own is None:
            if not isinstance(options, dict) or not options.keys() <= {"in_chans", "num_channels", "out_indices"}:
                raise InputError(
                    f"backbone_kwargs is {options!r}: only in_chans and out_indices can be read", where=where
                )
            own = {"model_type": "timm_backbone", "backbone": got["backbone"]}
            own["num_channels"] = options.get("in_chans", options.get("num_channels", got["num_channels"]))
            own["out_indices"] = options.get("out_indices", FIXED_TIMM["out_indices"])
        fixed = FIXED_INSIDE | FIXED_TIMM
        timm = understood(own, used=USED_TIMM, fixed=fixed, irrelevant=IRRELEVANT_TIMM, where=inside)
        if timm["backbone"] not in TIMM:
            raise InputError(f"backbone {timm['backbone']!r} is not one of {', '.join(TIMM)}", where=where)
        return TIMM[timm["backbone"]] | {"channels": timm["num_channels"]}
    own = {"model_type": "resnet"} if own is None else own
    fixed = FIXED_INSIDE | FIXED_RESNET
    resnet = understood(own, used=USED_RESNET, fixed=fixed, irrelevant=IRRELEVANT_RESNET, where=inside)
    depths = resnet["depths"]
    if not isinstance(depths, list | tuple) or not isinstance(resnet["hidden_sizes"], list | tuple):
        raise InputError(f"depths {depths!r} and hidden_sizes {resnet['hidden_sizes']!r}", where=inside)
    for key, last in (("out_features", f"stage{len(depths)}"), ("out_indices", len(depths))):
        if resnet[key] is not None and list(resnet[key])[-1:] != [last]:
            raise InputError(f"{key} is {resnet[key]!r}: only the last stage can be looked at", where=inside)
    return {
        "widths": resnet["hidden_sizes"],
        "depths": depths,
        "kind": resnet["layer_type"],
        "stem": resnet["embedding_size"],
        "channels": resnet["num_channels"],
    }


def config_to_hf(config: DETRConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from, with Hugging Face's own residual network; `labels` are the
    names of the classes. Raises InputError for what DETR has no words for."""
    encoder, decoder, resnet = config.encoder.block, config.decoder.block, config.backbone
    if resnet.norm != "batch":
        what = "the residual network has norms of groups of channels (model.backbone.norm = 'group')"
        raise InputError(f"{what}, where DETR on the Hub has batch norms that stand still")
    backbone = FIXED_RESNET | {
        "depths": list(resnet.depths),
        "embedding_size": resnet.stem,
        "hidden_sizes": list(resnet.widths),
        "layer_type": resnet.kind,
        "num_channels": resnet.channels,
        "out_features": [f"stage{len(resnet.depths)}"],
    }
    theirs = (
        FIXED
        | labels_to_hf(labels)
        | {
            "architectures": ["DetrForObjectDetection"],
            "activation_function": activation_to_hf(decoder.activation),
            "attention_dropout": decoder.attention.dropout,
            "backbone": None,
            "backbone_config": backbone,
            "d_model": config.d_model,
            "decoder_attention_heads": decoder.attention.n_heads,
            "decoder_ffn_dim": decoder.d_ff,
            "decoder_layers": config.decoder.n_layers,
            "dropout": decoder.dropout,
            "encoder_attention_heads": encoder.attention.n_heads,
            "encoder_ffn_dim": encoder.d_ff,
            "encoder_layers": config.encoder.n_layers,
            "num_channels": resnet.channels,
            "num_queries": config.n_queries,
            "use_timm_backbone": False,
        }
    )
    nothing_lost(config, config_from_hf(theirs), "DETR")
    return theirs
