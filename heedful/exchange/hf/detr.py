"""DETR (Carion et al. 2020) that finds things, as the Hub holds it: with a residual network under Hugging Face's own
names, which are written, or, in the files of the authors' weights, under those of timm."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import COPY, LABELS, WORDLESS, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, modules
from heedful.models.detr import DETRConfig
from heedful.models.resnet import ResNetConfig

LIST = How(COPY.ours, list)
# Their DetrConfig, ResNetConfig and TimmBackboneConfig.
TABLE = KeyTable(
    keys=seq2seq.stack_keys(activation="relu", d_model=256, n_heads=8, d_ff=2048, n_layers=6)
    | {
        "backbone": Key("resnet50"),
        "backbone_config": Key(None),
        "backbone_kwargs": Key(None),
        "id2label": Key(None, "n_classes", LABELS),
        "num_channels": Key(3),
        "num_queries": Key(100, "n_queries"),
        "use_timm_backbone": Key(True),
    },
    always={
        "{encoder.block.attention,decoder.block.attention,decoder.block.cross}.position.kind": "added",
        "decoder.final_norm": True,
    },
    fixed=seq2seq.FIXED
    | {
        "activation_dropout": 0.0,
        # With it, their decoder hands each layer's norm on to the next layer, which the authors' does not.
        "auxiliary_loss": False,
        "dilation": False,
        "model_type": "detr",
        "position_embedding_type": "sine",
        "scale_embedding": False,
    },
    irrelevant=seq2seq.IRRELEVANT
    | {
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
        "init_xavier_std",
        "max_position_embeddings",
        "use_pretrained_backbone",
        "tie_word_embeddings",
    },
)
RESNET_TABLE = KeyTable(
    keys={
        "depths": Key([3, 4, 6, 3], "backbone.depths", LIST),
        "embedding_size": Key(64, "backbone.stem"),
        "hidden_sizes": Key([256, 512, 1024, 2048], "backbone.widths", LIST),
        "layer_type": Key("bottleneck", "backbone.kind"),
        "num_channels": Key(3, "backbone.channels"),
        "out_features": Key(None),
        "out_indices": Key(None),
    },
    fixed=keys.FIXED
    | {
        "downsample_in_bottleneck": False,
        "downsample_in_first_stage": False,
        "hidden_act": "relu",
        "model_type": "resnet",
    },
    irrelevant=WORDLESS | {"stage_names"},
)
TIMM_TABLE = KeyTable(
    keys={"backbone": Key(None), "num_channels": Key(3, "backbone.channels")},
    fixed=keys.FIXED
    | {
        "features_only": True,
        "model_type": "timm_backbone",
        "out_indices": [1, 2, 3, 4],
        "output_stride": None,
    },
    irrelevant=WORDLESS | {"freeze_batch_norm_2d", "out_features", "use_pretrained_backbone"},
)
TIMM: dict[str, dict[str, Any]] = {
    "resnet18": {"kind": "basic", "widths": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    "resnet34": {"kind": "basic", "widths": [64, 128, 256, 512], "depths": [3, 4, 6, 3]},
    "resnet50": {"depths": [3, 4, 6, 3]},
    "resnet101": {"depths": [3, 4, 23, 3]},
    "resnet152": {"depths": [3, 8, 36, 3]},
}

_MAPS = {
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
        *seq2seq.block_rules(),
        *modules(_MAPS),
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


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> DETRConfig:
    got = TABLE.understood(theirs, where)
    return keys.built(DETRConfig, _backbone(got, where) | TABLE.in_ours(got, where), where)


def _backbone(got: dict[str, Any], where: str) -> dict[str, Any]:
    """Our values of the residual network, by their paths."""
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
            own["out_indices"] = options.get("out_indices", TIMM_TABLE.fixed["out_indices"])
        timm = TIMM_TABLE.understood(own, inside)
        if timm["backbone"] not in TIMM:
            raise InputError(f"backbone {timm['backbone']!r} is not one of {', '.join(TIMM)}", where=where)
        values = {f"backbone.{key}": value for key, value in TIMM[timm["backbone"]].items()}
        return values | TIMM_TABLE.in_ours(timm, inside)
    own = {"model_type": "resnet"} if own is None else own
    resnet = RESNET_TABLE.understood(own, inside)
    depths = resnet["depths"]
    if not isinstance(depths, list | tuple) or not isinstance(resnet["hidden_sizes"], list | tuple):
        raise InputError(f"depths {depths!r} and hidden_sizes {resnet['hidden_sizes']!r}", where=inside)
    for key, last in (("out_features", f"stage{len(depths)}"), ("out_indices", len(depths))):
        if resnet[key] is not None and list(resnet[key])[-1:] != [last]:
            raise InputError(f"{key} is {resnet[key]!r}: only the last stage can be looked at", where=inside)
    return RESNET_TABLE.in_ours(resnet, inside)


def config_to_hf(config: DETRConfig, *, labels: Sequence[str]) -> dict[str, Any]:
    """With Hugging Face's own residual network; `labels` are the names of the classes."""
    resnet = config.backbone
    if resnet.norm != "batch":
        what = "the residual network has norms of groups of channels (model.backbone.norm = 'group')"
        raise InputError(f"{what}, where DETR on the Hub has batch norms that stand still; detr-nano-affine has those")
    own = {key: value for key, value in RESNET_TABLE.in_theirs(config).items() if key not in keys.FIXED}
    last = {"out_features": [f"stage{len(resnet.depths)}"]}
    theirs = TABLE.in_theirs(config) | keys.labels_to_hf(labels)
    theirs |= {
        "architectures": ["DetrForObjectDetection"],
        "backbone": None,
        "backbone_config": own | last,
        "num_channels": resnet.channels,
        "use_timm_backbone": False,
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "DETR")


FAMILY = Family("DETR", DETRConfig, always("AutoModelForObjectDetection"), config_from_hf, config_to_hf, rules)
