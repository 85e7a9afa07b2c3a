"""DETR against Hugging Face's, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4) in every norm, and
statistics of batches that are not those of a beginning. Only the residual network's convolutions keep the size of what
goes through them (He et al. 2015): its norms do not hold it down, and with 0.4 the positions would drown.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared. Names are those of the files that they save, which are the Hub's.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.exchange.hf import detr
from heedful.exchange.hf.detr import config_from_hf, config_to_hf, rules
from heedful.exchange.hf.rules import Rule, to_ours, to_theirs
from heedful.models.detr import DETR, DETRConfig
from heedful.models.vision_presets import DETECTORS, detr_config
from heedful.training.detection import SetConfig, Target, set_loss
from nearly import close, close_gradients, copy_weights
from pictures import check_names, check_there_and_back, loud, saved

TINY: dict[str, Any] = {
    "use_timm_backbone": False,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 20,
    "num_queries": 6,
    "num_labels": 4,
}
RESNET: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [2, 1], "layer_type": "basic"}
BOTTLENECK = {"layer_type": "bottleneck", "hidden_sizes": [16, 24], "num_channels": 1}


def theirs_of(resnet: dict[str, Any], **whole: Any) -> DetrConfig:
    return DetrConfig(backbone_config=ResNetConfig(**RESNET | resnet, out_features=["stage2"]), **TINY | whole)


VARIANTS = {
    "basic": theirs_of({}),
    "bottleneck": theirs_of(BOTTLENECK, activation_function="gelu"),
}
LABELS = ["a", "b", "c", "d"]


class Pair(NamedTuple):
    theirs: DetrForObjectDetection
    ours: DETR
    rules: tuple[Rule, ...]


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = DetrForObjectDetection(VARIANTS[request.param]).eval()
    loud(theirs)
    for module in theirs.model.backbone.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
    ours = DETR(config_from_hf(theirs.config.to_dict())).eval()
    table = rules(ours.config)
    copy_weights(ours, table, saved(theirs, theirs.state_dict()))
    return Pair(theirs, ours, table)


def padded(pair: Pair) -> tuple[Tensor, Tensor]:
    """Three pictures of different sizes, padded at the right and below with what is not zero, and which pixels are
    theirs."""
    pixels = torch.randn(3, pair.ours.config.backbone.channels, 56, 72)
    valid = torch.zeros(3, 56, 72, dtype=torch.bool)
    for i, (rows, columns) in enumerate(((56, 40), (31, 72), (25, 50))):
        valid[i, :rows, :columns] = True
    return pixels, valid


def test_what_is_found(pair: Pair) -> None:
    pixels, valid = padded(pair)
    for given in (valid, None):
        theirs = pair.theirs(pixels, pixel_mask=None if given is None else given.long())
        ours = pair.ours(pixels, given)
        assert float(theirs.logits.detach().abs().max()) > 2, "weights are loud"
        close(ours.logits[-1], theirs.logits)
        close(ours.boxes[-1], theirs.pred_boxes)


def test_what_is_looked_at(pair: Pair) -> None:
    pixels, valid = padded(pair)
    memory, own, _ = pair.ours.encode(pixels, valid)
    theirs = pair.theirs.model(pixels, pixel_mask=valid.long()).encoder_last_hidden_state
    assert 0 < int(own.sum()) < own.numel()
    close(memory[own], theirs[own])


def test_what_every_layer_finds(pair: Pair) -> None:
    pixels, valid = padded(pair)
    found: list[Tensor] = []
    for layer in pair.theirs.model.decoder.layers:
        layer.register_forward_hook(lambda _, given, out: found.append(out))
    pair.theirs(pixels, pixel_mask=valid.long())
    expected = pair.theirs.model.decoder.layernorm(torch.stack(found))
    close(pair.ours.hidden(pixels, valid), expected)
    ours = pair.ours(pixels, valid)
    close(ours.logits, pair.theirs.class_labels_classifier(expected))
    close(ours.boxes, pair.theirs.bbox_predictor(expected).sigmoid())


def test_gradients_of_every_parameter(pair: Pair) -> None:
    """Theirs holds the whole residual network still; ours only what they keep as buffers."""
    for model in pair[:2]:
        model.double()
    pair.theirs.requires_grad_()
    pixels, valid = padded(pair)
    pixels = pixels.double()
    ours, theirs = pair.ours(pixels, valid), pair.theirs(pixels, pixel_mask=valid.long())
    for logits, boxes in ((ours.logits[-1], ours.boxes[-1]), (theirs.logits, theirs.pred_boxes)):
        loss = logits.log_softmax(-1)[..., 1].sum() + boxes.square().sum()
        (1000 * loss).backward()  # loud attention is nearly all or nothing, and its gradients are small
    own = {name: weight for name, weight in pair.ours.named_parameters() if weight.requires_grad}
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    expected = to_ours(pair.rules, saved(pair.theirs, gradients), own)
    # At first all queries hold zeros: whom they look at makes no difference, nor a map of what they hold.
    idle = tuple(f"decoder.blocks.0.self_attention.{name}" for name in ("query", "key", "value.weight"))
    close_gradients(own, expected, idle=idle, zero=1e-9)


def test_names_are_those_of_their_files(pair: Pair, tmp_path: Path) -> None:
    check_names(pair.theirs, tmp_path)


def test_there_and_back(pair: Pair) -> None:
    theirs = config_to_hf(pair.ours.config, labels=LABELS)
    check_there_and_back(pair.theirs, pair.ours, pair.rules, config_from_hf, theirs)
    again = DetrForObjectDetection(DetrConfig.from_dict(theirs)).eval()
    again.load_state_dict(pair.theirs.state_dict())
    pixels, valid = padded(pair)
    close(pair.ours(pixels, valid).boxes[-1], again(pixels, pixel_mask=valid.long()).pred_boxes)


def targets(*counts: int) -> list[Target]:
    return [Target(torch.randint(0, 4, (n,)), torch.rand(n, 4) * 0.5 + 0.1) for n in counts]


def as_theirs(things: list[Target]) -> list[dict[str, Tensor]]:
    return [{"class_labels": thing.classes, "boxes": thing.boxes} for thing in things]


@pytest.mark.parametrize("counts", [(3, 1, 5), (2, 0, 0), (0, 0, 0), (6, 6, 8)])
@pytest.mark.parametrize("changed", [False, True])
def test_the_loss_of_a_set(counts: tuple[int, ...], changed: bool) -> None:
    """With every layer's, its gradients, no thing at all, and more things than queries."""
    config = theirs_of({}, auxiliary_loss=True)
    ours = SetConfig()
    if changed:
        config.class_cost, config.bbox_cost, config.giou_cost = 2, 3, 4
        config.bbox_loss_coefficient, config.giou_loss_coefficient, config.eos_coefficient = 6, 7, 0.3
        ours = SetConfig(pair_class=2.0, pair_distance=3.0, pair_overlap=4.0, distance=6.0, overlap=7.0, nothing=0.3)
    logits = (2 * torch.randn(3, 3, 6, 5)).requires_grad_()
    boxes = (torch.rand(3, 3, 6, 4) * 0.6 + 0.1).requires_grad_()
    there = targets(*counts)
    expected, parts, _ = ForObjectDetectionLoss(
        logits[-1], as_theirs(there), "cpu", boxes[-1], config, outputs_class=logits, outputs_coord=boxes
    )
    assert "loss_giou_1" in parts
    found = set_loss(logits, boxes, there, ours)
    assert found.count == max(1, sum(counts))
    torch.testing.assert_close(found.total / found.count, expected, rtol=1e-5, atol=0)
    for one, other in zip(
        torch.autograd.grad(found.total / found.count, (logits, boxes), allow_unused=True),
        torch.autograd.grad(expected, (logits, boxes), allow_unused=True),
        strict=True,
    ):
        if other is None or not other.any():
            assert one is None or not one.any()
        else:
            close(one, other)


def test_the_whole_loss_is_theirs(pair: Pair) -> None:
    pixels, valid = padded(pair)
    things = targets(3, 1, 2)
    theirs = pair.theirs(pixels, pixel_mask=valid.long(), labels=as_theirs(things))
    ours = pair.ours(pixels, valid)
    loss = set_loss(ours.logits[-1:], ours.boxes[-1:], things)
    torch.testing.assert_close(loss.total / loss.count, theirs.loss, rtol=1e-5, atol=0)


def test_what_they_leave_out_is_their_default() -> None:
    """But that a file without a word about the residual network means timm's of 50 layers."""
    plain = {"model_type": "detr", "use_timm_backbone": False}
    assert config_from_hf(plain) == config_from_hf(
        DetrConfig(use_timm_backbone=False, backbone_config=ResNetConfig()).to_dict()
    )
    assert config_from_hf({"model_type": "detr"}) == config_from_hf(plain)
    old = {"model_type": "resnet", "add_cross_attention": False, "bad_words_ids": None, "pruned_heads": {}, "top_k": 50}
    assert config_from_hf(plain | {"backbone_config": old}) == config_from_hf(plain)


OLD = {  # what the Hub's file of the authors' weights says
    "activation_dropout": 0.0,
    "activation_function": "relu",
    "architectures": ["DetrForObjectDetection"],
    "attention_dropout": 0.0,
    "auxiliary_loss": False,
    "backbone": "resnet50",
    "bbox_cost": 5,
    "bbox_loss_coefficient": 5,
    "class_cost": 1,
    "classifier_dropout": 0.0,
    "d_model": 256,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layerdrop": 0.0,
    "decoder_layers": 6,
    "dice_loss_coefficient": 1,
    "dilation": False,
    "dropout": 0.1,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layerdrop": 0.0,
    "encoder_layers": 6,
    "eos_coefficient": 0.1,
    "giou_cost": 2,
    "giou_loss_coefficient": 2,
    "id2label": {str(i): f"LABEL_{i}" for i in range(91)},
    "init_std": 0.02,
    "init_xavier_std": 1.0,
    "is_encoder_decoder": True,
    "mask_loss_coefficient": 1,
    "max_position_embeddings": 1024,
    "model_type": "detr",
    "num_hidden_layers": 6,
    "num_queries": 100,
    "position_embedding_type": "sine",
    "scale_embedding": False,
}


def by_timm(config: DETRConfig) -> list[Rule]:
    """The rules by which the authors' weights were written."""
    resnet = "model.backbone.conv_encoder.model."
    return [replace(one, written=not one.written) if one.theirs.startswith(resnet) else one for one in rules(config)]


def test_the_authors_weights_have_timm_s_names() -> None:
    config = config_from_hf(OLD)
    assert config == replace(
        detr_config(DETECTORS["detr-r50"]),
        encoder=replace(config.encoder, block=config.encoder.block),
        decoder=replace(config.decoder, block=config.decoder.block),
    )
    newer = {"model_type": "timm_backbone", "backbone": "resnet50", "out_indices": [1, 2, 3, 4], "features_only": True}
    assert config_from_hf(OLD | {"backbone_config": newer}) == config
    with torch.device("meta"), uninitialised():
        own = {name: weight.detach() for name, weight in DETR(config).named_parameters()}
    theirs, timm = to_theirs(rules(config), own), to_theirs(by_timm(config), own)
    assert len(theirs) == len(timm) == len(own)
    assert to_ours(rules(config), timm, own).keys() == own.keys()
    here = "model.backbone.conv_encoder.model"
    shapes = {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.conv1.weight": (64, 64, 1, 1),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.running_var": (256,),
        "layer2.3.conv2.weight": (128, 128, 3, 3),
        "layer3.5.bn3.bias": (1024,),
        "layer4.2.conv3.weight": (2048, 512, 1, 1),
    }
    assert {name: tuple(timm[f"{here}.{name}"].shape) for name in shapes} == shapes
    assert f"{here}.layer1.1.downsample.0.weight" not in timm


@pytest.mark.parametrize(("name", "layers"), [("resnet18", 8), ("resnet34", 16), ("resnet101", 33), ("resnet152", 50)])
def test_timm_s_residual_networks(name: str, layers: int) -> None:
    config = config_from_hf(OLD | {"backbone": name, "backbone_kwargs": {"in_chans": 1}})
    assert sum(config.backbone.depths) == layers
    assert config.backbone.channels == 1
    with torch.device("meta"), uninitialised():
        own = {name: weight.detach() for name, weight in DETR(config).named_parameters()}
    shortcut = "model.backbone.conv_encoder.model.layer1.0.downsample.0.weight" in to_theirs(by_timm(config), own)
    assert shortcut == (config.backbone.kind == "bottleneck")


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_anchors'"):
        config_from_hf(config | {"n_anchors": 2})
    own, weights = dict(pair.ours.named_parameters()), saved(pair.theirs, pair.theirs.state_dict())
    with pytest.raises(InputError, match=r"no rule for their tensor 'mask_head\.lay1\.weight'"):
        to_ours(pair.rules, weights | {"mask_head.lay1.weight": torch.zeros(1)}, own)
    name = "model.backbone.conv_encoder.model.embedder.embedder.normalization.running_var"
    with pytest.raises(InputError, match=r"nothing of theirs for our tensor 'backbone\.stem\.norm\.variance'"):
        to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)


@pytest.mark.parametrize(
    ("change", "resnet", "message"),
    [
        ({"model_type": "yolos"}, {}, "model_type is 'yolos': only 'detr' can be read"),
        ({"position_embedding_type": "learned"}, {}, "position_embedding_type is 'learned': only 'sine'"),
        ({"auxiliary_loss": True}, {}, "auxiliary_loss is True: only False can be read"),
        ({"dilation": True}, {}, "dilation is True: only False can be read"),
        ({"activation_function": "mish"}, {}, "activation_function 'mish' is not one of"),
        ({"num_queries": "6"}, {}, "n_queries: expected int, found '6'"),
        ({"backbone_config": 5}, {}, "backbone_config is 5"),
        ({"backbone_config": None, "use_timm_backbone": True, "backbone": "swin"}, {}, "backbone 'swin' is not one of"),
        (
            {"backbone_config": None, "use_timm_backbone": True, "backbone_kwargs": {"output_stride": 16}},
            {},
            "backbone_kwargs is {'output_stride': 16}: only in_chans and out_indices",
        ),
        ({}, {"model_type": "convnext"}, "backbone_config: model_type is 'convnext': only 'resnet' can be read"),
        ({}, {"downsample_in_bottleneck": True}, "backbone_config: downsample_in_bottleneck is True"),
        ({}, {"layer_type": "wide"}, "kind: 'wide' is not one of 'basic', 'bottleneck'"),
        ({}, {"out_features": ["stage1"]}, r"out_features is \['stage1'\]: only the last stage"),
        ({}, {"out_indices": [1]}, r"out_indices is \[1\]: only the last stage"),
        (
            {},
            {"depths": [1], "out_features": None, "out_indices": None},
            r"stages of widths \(8, 12\) and depths \(1,\)",
        ),
        ({}, {"depths": 2}, r"backbone_config: depths 2 and hidden_sizes \[8, 12\]"),
        ({}, {"n_stems": 2}, "backbone_config: unknown key 'n_stems'"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], resnet: dict[str, Any], message: str) -> None:
    config = VARIANTS["basic"].to_dict()
    config["backbone_config"] |= resnet
    with pytest.raises(InputError, match=message):
        config_from_hf(config | change)


KEPT = {"backbone", "backbone_config", "backbone_kwargs", "num_channels", "use_timm_backbone"}  # of timm's alone


@pytest.mark.parametrize("key", sorted(set(detr.TABLE.keys) - KEPT))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = VARIANTS["basic"].to_dict()
    other = {"activation_function": "gelu", "attention_dropout": 0.5, "dropout": 0.5, "id2label": {0: "a"}}.get(key, 8)
    assert config_from_hf(base | {key: other}) != config_from_hf(base)


@pytest.mark.parametrize(
    ("key", "value"),
    [("depths", [1, 1]), ("embedding_size", 4), ("hidden_sizes", [8, 8]), ("layer_type", "bottleneck")],
)
def test_every_key_of_the_residual_network_makes_a_difference(key: str, value: Any) -> None:
    base, other = VARIANTS["basic"].to_dict(), VARIANTS["basic"].to_dict()
    other["backbone_config"] |= {key: value}
    assert config_from_hf(other) != config_from_hf(base)
    assert config_from_hf(OLD | {"num_channels": 1}).backbone.channels == 1


def test_presets_have_their_names_there() -> None:
    labels = [str(i) for i in range(91)]
    for name in ("detr-r50", "detr-r101"):
        assert config_to_hf(detr_config(DETECTORS[name]), labels=labels)["num_queries"] == 100
    with pytest.raises(InputError, match=r"model\.backbone\.norm = 'group'\), where DETR on the Hub has batch norms"):
        config_to_hf(detr_config(DETECTORS["detr-nano"]), labels=labels[:10])
