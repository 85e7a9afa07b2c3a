"""Swin Transformer against Hugging Face's, with loud weights (see `test_vit.py`), its hierarchy of stages included."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import SwinConfig, SwinForImageClassification

from heedful.errors import InputError
from heedful.exchange.hf.rules import Rule, to_ours
from heedful.exchange.hf.swin import TABLE, config_from_hf, config_to_hf, rules
from heedful.models.vision_presets import VISION_TRANSFORMERS, vit_config
from heedful.models.vit import ViT, ViTConfig
from nearly import close, close_gradients, copy_weights
from pictures import check_names, check_there_and_back, loud, saved

TINY = {"embed_dim": 8, "depths": [2, 3, 1], "num_heads": [2, 4, 8], "window_size": 3, "patch_size": 2}
VARIANTS: dict[str, Any] = {
    "square": SwinConfig(**TINY, image_size=24, num_labels=5),  # grids of 12, 6 and 3: the last is one window
    "wide, grey": SwinConfig(**TINY, image_size=[24, 48], num_channels=1, num_labels=5),
    "two stages": SwinConfig(
        **TINY | {"depths": [1, 2], "num_heads": [1, 2], "window_size": 2}, image_size=16, num_labels=5
    ),
}
LABELS = ["a", "b", "c", "d", "e"]


class Pair(NamedTuple):
    theirs: Any
    ours: ViT
    rules: tuple[Rule, ...]


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = SwinForImageClassification(VARIANTS[request.param]).eval()
    loud(theirs)
    ours = ViT(config_from_hf(theirs.config.to_dict())).eval()
    table = rules(ours.config)
    copy_weights(ours, table, saved(theirs, theirs.state_dict()))
    return Pair(theirs, ours, table)


def pictures(config: ViTConfig) -> Tensor:
    return torch.randn(2, config.patches.channels, *config.patches.size)


def test_logits_and_hidden_states(pair: Pair) -> None:
    pixels = pictures(pair.ours.config)
    theirs = pair.theirs(pixels, output_hidden_states=True)
    assert float(theirs.logits.detach().abs().max()) > 2, "weights are loud"
    close(pair.ours(pixels), theirs.logits)
    before = [pair.ours.stack, *pair.ours.stages]
    found: list[Tensor] = []
    for stack in before:
        stack.register_forward_pre_hook(lambda _, given: found.append(given[0]))
    pair.ours(pixels)
    for stage, hidden in enumerate(found):
        close(hidden, theirs.hidden_states[stage], f"before stage {stage}")


def test_gradients_of_every_parameter(pair: Pair) -> None:
    for model in pair[:2]:
        model.double()
    pixels, labels = pictures(pair.ours.config).double(), torch.tensor([4, 1])
    F.cross_entropy(pair.ours(pixels), labels, reduction="sum").backward()
    F.cross_entropy(pair.theirs(pixels).logits, labels, reduction="sum").backward()
    own = dict(pair.ours.named_parameters())
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    close_gradients(own, to_ours(pair.rules, saved(pair.theirs, gradients), own))


def test_names_are_those_of_their_files(pair: Pair, tmp_path: Path) -> None:
    check_names(pair.theirs, tmp_path)


def test_there_and_back(pair: Pair) -> None:
    theirs = config_to_hf(pair.ours.config, labels=LABELS)
    check_there_and_back(pair.theirs, pair.ours, pair.rules, config_from_hf, theirs)


def test_indices_that_old_files_hold_are_no_weights(pair: Pair) -> None:
    weights = saved(pair.theirs, pair.theirs.state_dict())
    name = "swin.encoder.layers.0.blocks.0.attention.self.relative_position_index"
    own = dict(pair.ours.named_parameters())
    assert to_ours(pair.rules, weights | {name: torch.zeros(9, 9)}, own).keys() == own.keys()


def test_what_they_leave_out_is_their_default() -> None:
    assert config_from_hf({"model_type": "swin"}) == config_from_hf(SwinConfig().to_dict())
    swin = config_from_hf(SwinConfig(num_labels=1000).to_dict())
    assert swin == vit_config(VISION_TRANSFORMERS["swin-tiny"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "swinv2"}, "model_type is 'swinv2': only 'swin' can be read"),
        ({"mlp_ratio": 2.0}, r"mlp_ratio is 2.0: only 4.0 can be read"),
        ({"use_absolute_embeddings": True}, "use_absolute_embeddings is True"),
        ({"num_heads": [2, 2, 2]}, r"num_heads is \[2, 2, 2\] for depths \[2, 3, 1\]"),
        ({"num_heads": [2, 4]}, r"num_heads is \[2, 4\] for depths"),
        ({"attention_probs_dropout_prob": 0.5}, "attention_probs_dropout_prob is not hidden_dropout_prob, 0.0"),
        ({"window_size": "3"}, "window: expected int"),
        ({"n_registers": 4}, "unknown key 'n_registers'"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_from_hf(VARIANTS["square"].to_dict() | change)


@pytest.mark.parametrize("key", sorted(TABLE.keys.keys() - {"attention_probs_dropout_prob"}))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = VARIANTS["square"].to_dict()
    other = {
        "depths": [1, 1, 1],
        "hidden_dropout_prob": 0.5,
        "id2label": {0: "a"},
        "num_heads": [4, 8, 16],
        "patch_size": 4,
    }.get(key, 12)
    beside = {"attention_probs_dropout_prob": 0.5} if key == "hidden_dropout_prob" else {}
    assert config_from_hf(base | {key: other} | beside) != config_from_hf(base)


def test_a_model_with_another_head_is_refused() -> None:
    with pytest.raises(InputError, match="without a head that tells classes"):
        config_from_hf(SwinConfig().to_dict(), ["swin.layernorm.weight"])
