"""Figure 1 of every family: what it says is what the model is."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig
from heedful.figures import FIGURES, architecture
from heedful.figures.stacks import Sizes, block, reach
from heedful.look.architecture import Add, Architecture, Box, DrawnResidual, Repeat, rows
from heedful.look.architecture_layout import lay_out, picture
from heedful.look.architecture_text import text
from heedful.look.canvas import Rectangle, TextLine, width_of
from heedful.models import KINDS, kind_of_config, make_model, preset
from heedful.models.actor_critic import ActorCriticConfig
from heedful.models.classifier import ClassifierConfig
from heedful.models.counts import PARAMETERS
from heedful.models.decision import DecisionTransformerConfig
from heedful.models.evoformer import EvoformerConfig
from heedful.models.named import PRESETS
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, encoder_config, lm_config
from heedful.models.speech import CTCConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.models.wave import WaveEncoderConfig

ONE_EACH = {
    "transformer-base": {},
    "transformer-deep-shallow": {"order": "sandwich"},
    "fold-nano": {},
    "marian": {},
    "t5-small": {},
    "t5-v1.1-small": {},
    "bart-base": {},
    "decoder-small": {},
    "rnn-small": {},
    "rnn-plain": {},
    "gpt-nano": {},
    "llama-nano": {},
    "mixtral-nano": {},
    "bert-base": {},
    "modern-tiny": {},
    "vit-nano28": {},
    "deit-tiny-distilled": {},
    "swin-tiny": {},
    "clip-nano32": {},
    "segformer-b0": {},
    "detr-nano": {},
    "vectors-100": {},
    "speech-nano": {},
    "describe-nano": {},
    "trocr-base": {},
    "ctc-nano": {},
    "sounds-nano": {},
}


def heads() -> dict[str, Any]:
    small, tiny = ENCODERS["encoder-tiny"], LANGUAGE_MODELS["gpt-nano"]
    stack_of_8 = lm_config(replace(tiny, d_model=8)).stack
    body = encoder_config(small, pooler=True, mlm_head=False)
    return {
        "encoder classifier": ClassifierConfig(encoder=body, answers=3),
        "lm classifier": ClassifierConfig(lm=lm_config(tiny), answers=None),
        "token classifier": TokenClassifierConfig(encoder=encoder_config(small, mlm_head=False), answers=5),
        "actor and critic": ActorCriticConfig(lm=lm_config(tiny)),
        "letters of samples": CTCConfig(
            d_model=8,
            encoder=WaveEncoderConfig(
                channels=(4, 6),
                kernels=(3, 2),
                strides=(2, 2),
                position_groups=2,
                stack=replace(stack_of_8, final_norm=False),
            ),
            vocab_size=9,
        ),
        "decisions": DecisionTransformerConfig(d_model=8, d_state=3, n_actions=4, longest=9, stack=stack_of_8),
        "proteins": EvoformerConfig(
            d_msa=8, d_pair=6, n_heads=2, head_dim=4, d_outer=3, d_product=5, n_layers=2, n_kinds=7
        ),
        "three heads": encoder_config(small, pooler=True, nsp_head=True),
    }


def configs() -> dict[str, Any]:
    return {name: preset(name, changes=changes) for name, changes in ONE_EACH.items()} | heads()


@pytest.fixture(scope="module")
def drawings() -> dict[str, Architecture]:
    return {name: architecture(config, name) for name, config in configs().items()}


def test_every_family_is_drawn() -> None:
    assert set(FIGURES) == set(KINDS)
    assert {kind_of_config(config) for config in configs().values()} == set(KINDS)


def test_the_boxes_have_all_parameters(drawings: dict[str, Architecture]) -> None:
    for name, drawn in drawings.items():
        assert sum(row.times * row.box.parameters for row in rows(drawn)) == drawn.parameters, name
        if not ONE_EACH.get(name, True):
            assert drawn.parameters == PARAMETERS[name]


@pytest.mark.full
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_drawn(name: str) -> None:
    drawn = architecture(preset(name), name)
    assert sum(row.times * row.box.parameters for row in rows(drawn)) == drawn.parameters == PARAMETERS[name]


def residuals(drawn: Architecture, column: int) -> list[tuple[list[str], str]]:
    (layers,) = [part for part in drawn.columns[column].parts if isinstance(part, Repeat)]
    found = [part for part in layers.parts if isinstance(part, DrawnResidual)]
    return [([box.label for box in part.branch], "" if part.norm is None else part.norm.label) for part in found]


def test_norms_stand_where_the_order_has_them(drawings: dict[str, Architecture]) -> None:
    masked, cross, mlp, norm = "Masked multi-head attention", "Cross-attention", "Feed forward", "LayerNorm"
    post = residuals(drawings["transformer-base"], 1)
    assert post == [([part], "Add & LayerNorm") for part in (masked, cross, mlp)]
    sandwich = residuals(drawings["transformer-deep-shallow"], 1)
    assert sandwich == [([norm, part, norm], "") for part in (masked, cross, mlp)]
    assert residuals(drawings["llama-nano"], 0) == [(["RMSNorm", part], "") for part in (masked, mlp)]
    assert residuals(drawings["bert-base"], 0)[0] == (["Multi-head attention"], "Add & LayerNorm")


def test_sizes_and_what_is_shared_are_said(drawings: dict[str, Architecture]) -> None:
    base, llama = text(drawings["transformer-base"]), text(drawings["llama-nano"])
    for said in ("6 x", "8 heads of 64", "512 → 2,048 → 512, ReLU", "37,000 x 512", "tied to the embedding"):
        assert said in base
    assert "One matrix is the embedding of source and target and the output." in base
    assert "4 heads of 32, 2 of keys, values, rotary positions" in llama
    assert "SiLU, gated" in llama
    assert "8 experts, 2 for each token, 128 → 192 → 128, SiLU, gated" in text(drawings["mixtral-nano"])
    assert "expert" not in llama
    assert "(relative positions, shared)" in text(drawings["t5-small"])
    assert "No matrix is shared" not in base


def test_the_maps_of_a_box_have_the_widths_that_are_said(drawings: dict[str, Architecture]) -> None:
    """Of a detector's: three of them (Carion et al. 2020, section 3.2)."""
    (box,) = [row.box for row in rows(drawings["detr-nano"]) if row.box.label == "Box"]
    widths = [int(width) for width in box.notes[0].split(" → ")]
    assert sum(inputs * outputs + outputs for inputs, outputs in pairwise(widths)) == box.parameters


def test_layers_by_turns_and_blocks_of_other_kinds() -> None:
    config = preset("vit-nano28", changes={"size": 56, "readout": "mean", "window": 7, "n_layers": 3})
    drawn = architecture(config, "windows")
    repeats = [part for part in drawn.columns[0].parts if isinstance(part, Repeat)]
    assert [(part.times, len(part.parts)) for part in repeats] == [(1, 4), (1, 2)]
    assert sum(row.times * row.box.parameters for row in rows(drawn)) == drawn.parameters
    assert "7 x 7 patches, shifted" in text(drawn)


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_well_formed_and_the_same_again(drawings: dict[str, Architecture], dark: bool) -> None:
    for name, drawn in drawings.items():
        made = picture(drawn, "svg", dark=dark)
        words = {element.text for element in ET.fromstring(made).iter() if element.tag.endswith("text")}
        assert {drawn.title, f"{drawn.parameters:,} parameters"} <= words, name
        assert made == picture(drawn, "svg", dark=dark)
    assert picture(drawings["gpt-nano"], "png", dark=dark).startswith(b"\x89PNG")


def test_words_lie_inside_and_no_two_boxes_overlap(drawings: dict[str, Architecture]) -> None:
    for name, drawn in drawings.items():
        shapes, width, height = lay_out(drawn)
        words = [shape for shape in shapes if isinstance(shape, TextLine)]
        for shape in words:
            long = width_of(shape.text, shape.size, bold=shape.bold)
            left = shape.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[shape.anchor] * long
            assert left >= 0, (name, shape)
            assert left + long <= width + 1, (name, shape)
            assert 0 < shape.y < height
        filled = [shape for shape in shapes if isinstance(shape, Rectangle) and shape.fill != "frame"]
        for i, one in enumerate(filled):
            for other in filled[:i]:
                apart = one.x + one.width <= other.x or other.x + other.width <= one.x
                assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y, name


def test_a_bias_that_layers_share_is_one_row(drawings: dict[str, Architecture]) -> None:
    shared = [row for row in rows(drawings["t5-small"]) if isinstance(row.box, Add)]
    assert [(row.times, row.box.parameters) for row in shared] == [(1, 256), (1, 256)]


def test_an_unknown_kind_of_block_is_one_box() -> None:
    config = BlockConfig(kind="state_space", attention=AttentionConfig(n_heads=2), d_ff=8)
    (box,) = block(config, 16, Sizes(make_model("gpt-nano")), "stack.blocks.0", causal=True)
    assert isinstance(box, Box)
    assert (box.label, box.parameters) == ("State space", 198_272)


def test_what_a_layer_sees_is_said() -> None:
    attention = AttentionConfig(n_heads=2)
    every = {"window": 9, "dilation": 2, "block": 8, "stride": 7, "global_tokens": 3}
    assert [*reach(BlockConfig(attention=attention, d_ff=8, **every))] == [
        "window of 9 in steps of 2",
        "blocks of 8",
        "the last of each 7",
        "the first 3",
    ]
    assert [*reach(BlockConfig(attention=attention, d_ff=8, compress=4))] == ["keys of 4 tokens as one"]
    assert [*reach(BlockConfig(attention=attention, d_ff=8))] == []
