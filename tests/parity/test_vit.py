"""The Vision Transformer against Hugging Face's ViT and DeiT, with loud weights: N(0, 0.4) in every matrix, bias and
token, N(1, 0.4) in every norm.

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
from transformers import (
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    ViTForImageClassification,
)
from transformers import ViTConfig as TheirConfig

from heedful.errors import InputError
from heedful.exchange.hf.rules import Rule, to_ours
from heedful.exchange.hf.vit import TABLE, config_from_hf, config_to_hf, rules
from heedful.models.vision_presets import VISION_TRANSFORMERS, vit_config
from heedful.models.vit import ViT, ViTConfig
from nearly import close, close_gradients, copy_weights
from pictures import check_names, check_there_and_back, loud, saved

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "image_size": 24,
    "patch_size": 6,
    "num_labels": 5,
}
VARIANTS: dict[str, Any] = {
    "vit": TheirConfig(**TINY),
    "vit, grey, relu": TheirConfig(**TINY | {"num_channels": 1, "hidden_act": "relu", "layer_norm_eps": 1e-3}),
    "vit, wide pictures": TheirConfig(**TINY | {"image_size": [12, 30]}),
    "vit, tall patches": TheirConfig(**TINY | {"image_size": [24, 30], "patch_size": [12, 6]}),
    "deit": DeiTConfig(**TINY),
}
LABELS = ["a", "b", "c", "d", "e"]


class Pair(NamedTuple):
    theirs: Any
    ours: ViT
    rules: tuple[Rule, ...]


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    config = VARIANTS[request.param]
    kind = DeiTForImageClassificationWithTeacher if isinstance(config, DeiTConfig) else ViTForImageClassification
    theirs = kind(config).eval()
    loud(theirs)
    ours = ViT(config_from_hf(theirs.config.to_dict())).eval()
    table = rules(ours.config)
    copy_weights(ours, table, saved(theirs, theirs.state_dict()))
    return Pair(theirs, ours, table)


def pictures(config: ViTConfig, *size: int) -> Tensor:
    return torch.randn(2, config.patches.channels, *(size or config.patches.size))


def test_logits(pair: Pair) -> None:
    pixels = pictures(pair.ours.config)
    theirs = pair.theirs(pixels)
    assert float(theirs.logits.detach().abs().max()) > 2, "weights are loud"
    close(pair.ours(pixels), theirs.logits)
    if pair.ours.config.teacher:
        close(pair.ours.each(pixels), torch.stack([theirs.cls_logits, theirs.distillation_logits], 1))


def test_hidden_states_of_every_block(pair: Pair) -> None:
    pixels, found = pictures(pair.ours.config), []
    for block in pair.ours.stack.blocks:
        block.register_forward_pre_hook(lambda _, given: found.append(given[0]))
    last = pair.ours.hidden(pixels)
    inner = pair.theirs.deit if pair.ours.config.teacher else pair.theirs.vit
    theirs = inner(pixels, output_hidden_states=True)
    assert len(found) == 3
    for i, hidden in enumerate(found):
        close(hidden, theirs.hidden_states[i], f"before block {i}")
    close(last, theirs.last_hidden_state)


@pytest.mark.parametrize("size", [(36, 36), (12, 24), (18, 42), (24, 24), (27, 31)])
def test_positions_between(pair: Pair, size: tuple[int, int]) -> None:
    """Of pictures of other sizes, with pixels over at the edges too."""
    if pair.ours.config.patches.size != (24, 24):
        pytest.skip("theirs takes the positions for a square")
    pixels = pictures(pair.ours.config, *size)
    close(pair.ours(pixels), pair.theirs(pixels, interpolate_pos_encoding=True).logits)


def test_gradients_of_every_parameter(pair: Pair) -> None:
    """With positions interpolated where theirs can."""
    for model in pair[:2]:
        model.double()
    square = pair.ours.config.patches.size == (24, 24)
    pixels = pictures(pair.ours.config, *((18, 30) if square else ())).double()
    words = torch.tensor([4, 1])
    F.cross_entropy(pair.ours(pixels), words, reduction="sum").backward()
    F.cross_entropy(pair.theirs(pixels, interpolate_pos_encoding=square).logits, words, reduction="sum").backward()
    own = dict(pair.ours.named_parameters())
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    expected = to_ours(pair.rules, saved(pair.theirs, gradients), own)
    close_gradients(own, expected)


def test_names_are_those_of_their_files(pair: Pair, tmp_path: Path) -> None:
    check_names(pair.theirs, tmp_path)


def test_there_and_back(pair: Pair) -> None:
    theirs = config_to_hf(pair.ours.config, labels=LABELS)
    check_there_and_back(pair.theirs, pair.ours, pair.rules, config_from_hf, theirs)


def test_what_they_leave_out_is_their_default() -> None:
    for name, theirs in (("vit", TheirConfig()), ("deit", DeiTConfig())):
        assert config_from_hf({"model_type": name}) == config_from_hf(theirs.to_dict())
    assert config_from_hf({"model_type": "vit"}).n_classes == 2


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_registers'"):
        config_from_hf(config | {"n_registers": 4})
    own, weights = dict(pair.ours.named_parameters()), saved(pair.theirs, pair.theirs.state_dict())
    with pytest.raises(InputError, match=r"no rule for their tensor 'vit\.pooler\.dense\.bias'"):
        to_ours(pair.rules, weights | {"vit.pooler.dense.bias": torch.zeros(1)}, own)
    name = next(name for name in weights if name.endswith("cls_token"))
    with pytest.raises(InputError, match="nothing of theirs for our tensor 'cls'"):
        to_ours(pair.rules, {key: value for key, value in weights.items() if key != name}, own)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "vit_mae"}, "model_type is 'vit_mae': only 'vit' and 'deit' can be read"),
        ({"qkv_bias": False}, "qkv_bias is False: only True can be read"),
        ({"patch_size": [6, 8, 8]}, r"patch_size is \[6, 8, 8\]: only one number, or rows and columns, can be read"),
        ({"patch_size": ["6", 8]}, r"patches\.patch_rows: expected int, found '6'"),
        ({"image_size": "24"}, r"patches\.size\[0\]: expected int, found '24'"),
        ({"image_size": 4}, r"pictures of \(4, 4\) pixels in patches of 6"),
        ({"hidden_act": "mish"}, "hidden_act 'mish' is not one of"),
        ({"id2label": {"1": "one"}}, "id2label does not number the classes from 0"),
    ],
)
def test_what_we_cannot_build_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_from_hf(VARIANTS["vit"].to_dict() | change)


@pytest.mark.parametrize("key", sorted(TABLE.keys))
def test_every_key_that_is_read_makes_a_difference(key: str) -> None:
    base = VARIANTS["vit"].to_dict()
    other = {
        "attention_probs_dropout_prob": 0.5,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.5,
        "id2label": {0: "a"},
        "layer_norm_eps": 0.1,
        "model_type": "deit",
    }.get(key, 8)
    assert config_from_hf(base | {key: other}) != config_from_hf(base)


def test_presets_have_their_names_there() -> None:
    thousand = [str(i) for i in range(1000)]
    for name, row in VISION_TRANSFORMERS.items():
        if row.depths:  # Swin's
            continue
        config = vit_config(row)
        theirs = config_to_hf(config, labels=thousand[: config.n_classes])
        assert theirs["model_type"] == ("deit" if "distilled" in name else "vit")
    with pytest.raises(InputError, match=r"ViT cannot hold model\.patches\.position_embeddings = 'sinusoidal'"):
        config_to_hf(
            vit_config(replace(VISION_TRANSFORMERS["vit-b16"], position_embeddings="sinusoidal")), labels=thousand
        )
    with pytest.raises(InputError, match=r"ViT cannot hold model\.n_classes = 1000"):
        config_to_hf(vit_config(VISION_TRANSFORMERS["vit-b16"]), labels=["too", "few"])
