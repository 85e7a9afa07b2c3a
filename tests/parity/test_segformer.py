"""SegFormer against Hugging Face's, with loud weights: N(0, 0.4) in every matrix and bias, N(1, 0.4) in every norm,
and statistics of batches that are not those of a beginning.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared. Names are those of the files that they save, which are the Hub's.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import SegformerConfig, SegformerForSemanticSegmentation

from heedful.errors import InputError
from heedful.exchange.hf.rules import Rule, to_ours
from heedful.exchange.hf.segformer import TABLE, config_from_hf, config_to_hf, rules
from heedful.models.pyramid import Pyramid
from heedful.models.vision_presets import SEGMENTERS, segformer_config
from nearly import close, close_gradients, copy_weights
from pictures import check_names, check_there_and_back, loud, saved

TINY: dict[str, Any] = {
    "num_encoder_blocks": 3,
    "depths": [2, 1, 2],
    "sr_ratios": [4, 2, 1],
    "hidden_sizes": [8, 16, 24],
    "patch_sizes": [7, 3, 3],
    "strides": [4, 2, 2],
    "num_attention_heads": [1, 2, 3],
    "mlp_ratios": [3, 2, 2],
    "decoder_hidden_size": 12,
    "num_labels": 5,
}
VARIANTS = {
    "plain": SegformerConfig(**TINY),
    "grey, relu": SegformerConfig(**TINY | {"num_channels": 1, "hidden_act": "relu", "strides": [2, 2, 1]}),
}
LABELS = ["a", "b", "c", "d", "e"]


class Pair(NamedTuple):
    theirs: SegformerForSemanticSegmentation
    ours: Pyramid
    rules: tuple[Rule, ...]


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = SegformerForSemanticSegmentation(VARIANTS[request.param]).eval()
    loud(theirs)
    ours = Pyramid(config_from_hf(theirs.config.to_dict())).eval()
    table = rules(ours.config)
    copy_weights(ours, table, saved(theirs, theirs.state_dict()))
    return Pair(theirs, ours, table)


def pictures(pair: Pair, *size: int) -> Tensor:
    return torch.randn(2, pair.ours.config.channels, *size)


@pytest.mark.parametrize("size", [(64, 64), (40, 72), (51, 38)])
def test_logits_and_features(pair: Pair, size: tuple[int, int]) -> None:
    """Of pictures of any size, also where squares are cut off."""
    pixels = pictures(pair, *size)
    theirs = pair.theirs(pixels, output_hidden_states=True)
    assert float(theirs.logits.detach().abs().max()) > 3, "weights are loud"
    features = pair.ours.features(pixels)
    assert len(features) == len(theirs.hidden_states) == 3
    for i, (one, other) in enumerate(zip(features, theirs.hidden_states, strict=True)):
        close(one, other, f"stage {i}")
    close(pair.ours(pixels), theirs.logits)


def test_every_block(pair: Pair) -> None:
    pixels, ours, theirs = pictures(pair, 48, 64), [], []
    for stage in pair.ours.stages:
        for block in stage.blocks:
            block.register_forward_hook(lambda _, given, out: ours.append(out))
    for stage in pair.theirs.segformer.stages:
        for block in stage.blocks:
            block.register_forward_hook(lambda _, given, out: theirs.append(out))
    pair.ours(pixels)
    pair.theirs(pixels)
    assert len(ours) == len(theirs) == 5
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        close(one, other, f"block {i}")


def test_gradients_of_every_parameter(pair: Pair) -> None:
    for model in pair[:2]:
        model.double()
    pixels = pictures(pair, 32, 48).double()
    ours, theirs = pair.ours(pixels), pair.theirs(pixels).logits
    classes = torch.randint(0, 5, (2, *ours.shape[2:]))
    F.cross_entropy(ours, classes, reduction="sum").backward()
    F.cross_entropy(theirs, classes, reduction="sum").backward()
    own = {name: weight for name, weight in pair.ours.named_parameters() if weight.requires_grad}
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    expected = to_ours(pair.rules, saved(pair.theirs, gradients), own)
    close_gradients(own, expected, zero=1e-11)


def test_names_are_those_of_their_files(pair: Pair, tmp_path: Path) -> None:
    check_names(pair.theirs, tmp_path)


def test_there_and_back(pair: Pair) -> None:
    theirs = config_to_hf(pair.ours.config, labels=LABELS)
    batches = {"decode_head.batch_norm.num_batches_tracked"}
    check_there_and_back(pair.theirs, pair.ours, pair.rules, config_from_hf, theirs, not_ours=batches)


def test_what_they_leave_out_is_their_default() -> None:
    assert config_from_hf({"model_type": "segformer"}) == config_from_hf(SegformerConfig().to_dict())


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_pyramids'"):
        config_from_hf(config | {"n_pyramids": 2})
    own, weights = dict(pair.ours.named_parameters()), saved(pair.theirs, pair.theirs.state_dict())
    with pytest.raises(InputError, match=r"no rule for their tensor 'classifier\.weight'"):
        to_ours(pair.rules, weights | {"classifier.weight": torch.zeros(1)}, own)
    for name, ours in {"decode_head.batch_norm.running_var": "head.norm.variance"}.items():
        with pytest.raises(InputError, match=f"nothing of theirs for our tensor '{ours}'"):
            to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "swin"}, "model_type is 'swin': only 'segformer' can be read"),
        ({"reshape_last_stage": False}, "reshape_last_stage is False: only True can be read"),
        ({"depths": [2, 1]}, r"depths is \[2, 1\], num_encoder_blocks 3"),
        ({"strides": 4}, "strides is 4, num_encoder_blocks 3"),
        ({"mlp_ratios": [3, 2, "2"]}, "hidden_sizes 24 and mlp_ratios '2' of stage 2"),
        ({"sr_ratios": [4, 2, "1"]}, r"stages\[2\]\.shorten: expected int, found '1'"),
        ({"hidden_act": "mish"}, "hidden_act 'mish' is not one of"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_from_hf(VARIANTS["plain"].to_dict() | change)


@pytest.mark.parametrize("key", sorted(set(TABLE.keys) - {"num_encoder_blocks"}))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = VARIANTS["plain"].to_dict()
    value = base.get(key)
    other = {"hidden_act": "relu", "id2label": {0: "a"}}.get(key)
    if other is None:
        other = [5, 5, 5] if isinstance(value, list | tuple) else 0.5 if isinstance(value, float) else 7
    assert config_from_hf(base | {key: other}) != config_from_hf(base)


def test_presets_have_their_names_there() -> None:
    labels = [str(i) for i in range(150)]
    for name, row in SEGMENTERS.items():
        if row.head_norm == "batch":
            own = config_to_hf(segformer_config(row), labels=labels[: row.n_classes])
            assert own["depths"] == list(row.depths), name
    config = segformer_config(SEGMENTERS["segformer-b0"])
    with pytest.raises(InputError, match=r"SegFormer cannot hold model\.head_norm = 'group'"):
        config_to_hf(replace(config, head_norm="group"), labels=labels)
